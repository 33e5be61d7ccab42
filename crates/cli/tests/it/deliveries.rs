//! `bellwire deliveries` and `bellwire remind`.

use crate::hub::Hub;
use crate::mail_server::MailServer;
use crate::program::{assert_output, shown, text};

/// A hub whose mail server refuses every recipient permanently, and a user, ada, with an address.
fn hub_with_a_dead_letter() -> Hub {
    let refuses = |line: &str| line.starts_with("RCPT").then(|| "550 5.1.1 no such user".to_owned());
    let hub = Hub::configured(&MailServer::start(refuses).config());
    let set = hub.run(&["settings", "set", "--email", "ada@example.org", "--user", "ada"]);
    assert!(set.status.success(), "{}", shown(&set));
    hub
}

#[test]
fn a_dead_letter_is_listed_tried_again_and_what_cannot_be_is_said() {
    let hub = hub_with_a_dead_letter();
    let failed = || hub.json(&["deliveries", "--state", "failed", "--json"]);
    let started = std::time::Instant::now();
    while failed()["items"].as_array().is_none_or(Vec::is_empty) {
        assert!(started.elapsed().as_secs() < 30, "the letter dies");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let list = hub.run(&["deliveries"]);
    let id = failed()["items"][0]["id"].as_str().expect("an id").to_owned();
    let retried = hub.json(&["deliveries", "--retry", &id, "--json"]);
    assert_eq!(retried["state"], "waiting", "{retried}");
    let nothing = hub.run(&["deliveries", "--cancel", "0198c0de-0000-7000-8000-000000000000"]);
    let wrong = hub.run(&["deliveries", "--state", "lost"]);
    let both = hub.run(&["deliveries", "--retry", &id, "--cancel", &id]);
    assert_output!([&list, &nothing, &wrong, &both].map(shown).join("\n"));
}

#[test]
fn a_reminder_is_set_listed_page_by_page_and_cancelled() {
    let hub = Hub::start();
    let set = hub.run(&["remind", "Call the dentist", "--at", "2h", "--user", "ada"]);
    let id = text(&set.stdout).trim().to_owned();
    let far = hub.run(&["remind", "Buy milk", "--at", "2099-01-01T00:00:00Z", "--user", "ada", "--json"]);
    assert_eq!(far.status.code(), Some(2), "a year ahead is the most");
    hub.json(&["remind", "Buy\n\u{1b}[31mmilk", "--at", "30d", "--user", "ada", "--json"]);
    hub.json(&["remind", "Feed the cat", "--at", "1d", "--user", "bob", "--json"]);
    let list = hub.run(&["remind", "--user", "ada"]);
    assert_eq!(hub.json(&["remind", "--json"])["items"].as_array().map(Vec::len), Some(3), "without --user, of all");
    assert_eq!(hub.json(&["remind", "--user", "carol", "--json"])["items"].as_array().map(Vec::len), Some(0));
    let first = hub.json(&["remind", "--limit", "1", "--json"]);
    let cursor = first["next_cursor"].as_str().expect("there are more");
    let second = hub.json(&["remind", "--limit", "1", "--cursor", cursor, "--json"]);
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    let cancelled = hub.run(&["remind", "--cancel", &id]);
    let nobody = hub.run(&["remind", "Call the dentist", "--at", "2h"]);
    let never = hub.run(&["remind", "Call the dentist", "--user", "ada"]);
    let past = hub.run(&["remind", "Call the dentist", "--at", "2020-01-01T00:00:00Z", "--user", "ada"]);
    let told = [&set, &list, &cancelled, &nobody, &never, &past].map(shown).join("\n");
    assert_output!(told);
    let left = hub.json(&["remind", "--user", "ada", "--json"]);
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1), "{left}");
}
