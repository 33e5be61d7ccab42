//! `bellwire settings`.

use crate::hub::Hub;
use crate::mail_server::MailServer;
use crate::program::{assert_output, shown, text};

/// The six digits that stand alone on a line of a mail.
fn code_in(mail: &str) -> &str {
    let is_code = |line: &&str| line.len() == 6 && line.bytes().all(|byte| byte.is_ascii_digit());
    mail.lines().map(str::trim).find(is_code).expect("the mail has a code")
}

#[test]
fn settings_are_shown_and_changed_one_by_one() {
    let hub = Hub::start();
    let set = |flags: &[&str]| hub.run(&[&["settings", "set", "--user", "ada"], flags].concat());
    let first = hub.run(&["settings", "--user", "ada"]);
    let night = set(&["--quiet-hours", "22:00-07:00", "--timezone", "Europe/Berlin", "--toasts", "off"]);
    let later = set(&["--quiet-hours", "23:30-07:00", "--mute", "ci", "--mute", "cron", "--disable", "source_stale"]);
    let back = set(&["--unmute", "ci", "--enable", "source_stale", "--toasts", "on"]);
    let none = set(&["--quiet-hours", "none", "--unmute", "cron"]);
    let said = [&first, &night, &later, &back, &none].map(shown).join("\n");
    assert_output!(said);
    let own = hub.json(&["settings", "--json", "--token", &hub.user_token_of("ada")]);
    assert_eq!(own, hub.json(&["settings", "--json", "--user", "ada"]));
}

#[test]
fn an_address_is_confirmed_with_the_mailed_code() {
    let server = MailServer::start(|_| None);
    let hub = Hub::configured(&server.config());
    let set = hub.run(&["settings", "set", "--email", "ada@example.org", "--user", "ada"]);
    let mail = server.next();
    let wrong = hub.run(&["settings", "confirm", "1", "--user", "ada"]);
    let confirmed = hub.run(&["settings", "--user", "ada", "confirm", code_in(&mail)]);
    let off = hub.json(&["settings", "set", "--email-enabled", "off", "--user", "ada", "--json"]);
    assert_eq!((&off["email"]["enabled"], &off["email"]["confirmed"]), (&false.into(), &true.into()), "{off}");
    let removed = hub.json(&["settings", "set", "--email", "none", "--user", "ada", "--json"]);
    assert!(removed["email"]["address"].is_null(), "{removed}");
    assert_output!([&set, &wrong, &confirmed].map(shown).join("\n"));
}

#[test]
fn mistakes_with_settings_are_explained() {
    let hub = Hub::start();
    let mistakes: [&[&str]; 12] = [
        &["settings"],
        &["settings", "set", "--user", "ada"],
        &["settings", "set", "--toasts", "maybe", "--user", "ada"],
        &["settings", "set", "--email", "ada", "--user", "ada"],
        &["settings", "set", "--quiet-hours", "22:00", "--user", "ada"],
        &["settings", "set", "--quiet-hours", "22:00-07:00", "--user", "ada"],
        &["settings", "set", "--quiet-hours", "22-7", "--timezone", "Europe/Berlin", "--user", "ada"],
        &["settings", "set", "--quiet-hours", "22:00-07:00", "--timezone", "Mars/Olympus", "--user", "ada"],
        &["settings", "set", "--unmute", "ci", "--user", "ada"],
        &["settings", "set", "--disable", "tool_failure", "--user", "ada"],
        &["settings", "set", "--disable", "tool_failures", "--user", "ada"],
        &["settings", "confirm", "123456", "--user", "ada"],
    ];
    let said = mistakes.map(|arguments| {
        let output = hub.run(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        format!("$ bellwire {}\n{}", arguments.join(" "), text(&output.stderr))
    });
    assert_output!(said.concat());
}
