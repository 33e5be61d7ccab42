//! `bellwire deliveries` and `bellwire remind`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use crate::hub::Hub;
use crate::program::{assert_output, shown, text};

/// A mail server that refuses every recipient permanently.
fn refusing_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines().map_while(Result::ok);
            let mut answer = |words: &str| stream.write_all(format!("{words}\r\n").as_bytes()).is_ok();
            let mut goes_on = answer("220 here");
            while let Some(line) = lines.next().filter(|_| goes_on) {
                let refused = line.starts_with("RCPT");
                goes_on = answer(if refused { "550 5.1.1 no such user" } else { "250 fine" }) && line != "QUIT";
            }
        }
    });
    port
}

/// A hub with that mail server and a user, ada, with an address.
fn hub_with_a_dead_letter() -> Hub {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/bellwire");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let email = format!("[email]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n", refusing_server());
    std::fs::write(folder.join("bellwire.toml"), email).expect("it can be written");
    let hub = Hub::start_in(home, &["--port", "0"]);
    let answer = set_address(&hub, "ada@example.org");
    assert!(answer.contains("200 OK"), "{answer}");
    hub
}

/// Sets ada's address over HTTP, because no command does.
fn set_address(hub: &Hub, address: &str) -> String {
    let token = hub.run(&["token", "create", "--scope", "user", "--user", "ada"]);
    let body = format!("{{\"email\": {{\"enabled\": true, \"address\": \"{address}\"}}}}");
    let host = hub.url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = std::net::TcpStream::connect(host).expect("the hub listens");
    let head = format!(
        "PATCH /v1/users/ada/settings HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\ncontent-type: \
         application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        text(&token.stdout).trim(),
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it can be sent");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("it answers");
    answer
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
