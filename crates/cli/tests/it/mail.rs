//! `bellwire mail test`.

use crate::hub::Hub;
use crate::mail_server::{Answer, MailServer};
use crate::program::{assert_output, shown, text};

const PASSWORD: &str = "correct horse battery";

fn test(answer: Answer, login: bool) -> String {
    let login = if login { format!("username = \"bell\"\npassword = \"{PASSWORD}\"\n") } else { String::new() };
    let hub = Hub::configured(&(MailServer::start(answer).config() + &login));
    let output = hub.run(&["mail", "test", "ada@example.org"]);
    let said = shown(&output);
    assert!(!said.contains(PASSWORD) && !said.contains(&PASSWORD[..10]), "{said}");
    said
}

#[test]
fn each_step_of_a_test_email_is_reported() {
    let cases: [(&str, Answer, bool); 5] = [
        ("accepted", |_| None, true),
        ("refused", |line| line.starts_with("RCPT").then(|| "550 5.1.1 no such user".to_owned()), false),
        // The server repeats what it was sent, as it came and decoded.
        ("login", |line| line.starts_with("AUTH").then(|| format!("535 {line} is not {PASSWORD}")), true),
        ("unknown", |line| (line == ".").then(String::new), false),
        ("later", |line| line.starts_with("MAIL").then(|| "451 4.3.0 busy".to_owned()), false),
    ];
    let said = cases.map(|(name, answer, login)| format!("=== {name}\n{}", test(answer, login)));
    assert_output!(said.concat());
}

#[test]
fn a_test_email_arrives_and_says_what_it_is() {
    let server = MailServer::start(|_| None);
    let hub = Hub::configured(&server.config());
    let report = hub.json(&["mail", "test", "ada@example.org", "--json"]);
    assert_eq!(report["outcome"], "accepted", "{report}");
    let mail = server.next();
    assert!(mail.contains("Subject: Bellwire test email\n") && mail.contains("To: ada@example.org\n"), "{mail}");
    let unknown = hub.run(&["mail", "test", "--user", "ada"]);
    assert!(text(&unknown.stderr).contains("bellwire settings set --email ADDRESS --user ada"), "{}", shown(&unknown));
    hub.json(&["settings", "set", "--email", "ada@example.com", "--user", "ada", "--json"]);
    let unconfirmed = hub.run(&["mail", "test", "--user", "ada"]);
    assert!(text(&unconfirmed.stderr).contains("ada@example.com is not confirmed"), "{}", shown(&unconfirmed));
    assert_eq!(unconfirmed.status.code(), Some(0), "{}", shown(&unconfirmed));
}

#[test]
fn a_hub_without_a_mail_server_says_what_to_set() {
    let off = Hub::start();
    let nothing = off.run(&["mail", "test", "ada@example.org"]);
    let wrong = off.run(&["mail", "test", "ada"]);
    let neither = off.run(&["mail", "test"]);
    let persons = off.run(&["mail", "test", "ada@example.org", "--token", &off.user_token_of("ada")]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let closed = format!("[email]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n", free.port());
    let closed = Hub::configured(&closed).run(&["mail", "test", "ada@example.org"]);
    assert_output!([&nothing, &wrong, &neither, &persons, &closed].map(shown).join("\n"));
}
