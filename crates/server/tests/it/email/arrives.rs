use bellwire_server::channels::email::{Content, MailItem, MailItemKind, SmtpOutcome};
use bellwire_server::config::{EmailConfig, EmailTls, Secret};
use serde_json::{Value, json};

use super::peer::{MailServer, listener, smtp, unencrypted};
use super::{at, mail, note};

fn logged_in(settings: EmailConfig) -> EmailConfig {
    EmailConfig { username: "bell".into(), password: Some(Secret::new("pass word:1")), ..settings }
}

fn part<'a>(mail: &'a Value, kind: &str) -> &'a str {
    let parts = mail["parts"].as_array().expect("parts");
    parts.iter().find(|part| part[0] == kind).and_then(|part| part[1].as_str()).expect("the part is there")
}

#[tokio::test]
async fn a_mail_arrives_whole_over_every_kind_of_connection() {
    let login = "bell:pass word:1";
    let server = MailServer::start(&[
        json!({"name": "plain", "tls": "starttls", "login": login, "mechanisms": ["PLAIN"]}),
        json!({"name": "login", "tls": "starttls", "login": login, "mechanisms": ["LOGIN"]}),
        json!({"name": "implicit", "tls": "implicit", "login": login}),
        json!({"name": "open", "tls": "none"}),
        listener("nobody", json!([])),
    ]);
    let implicit = EmailConfig { tls: EmailTls::Implicit, ..logged_in(server.settings("implicit")) };
    let from_file =
        EmailConfig { password: None, password_file: Some(password_file()), ..logged_in(server.settings("login")) };
    for (name, settings) in [
        ("plain", logged_in(server.settings("plain"))),
        ("login", from_file),
        ("implicit", implicit),
        ("open", unencrypted(server.settings("open"))),
        ("nobody", server.settings("nobody")),
    ] {
        let sent = smtp(&settings).deliver(&note("Buy milk")).await;
        assert_eq!(sent, SmtpOutcome::Sent { reply: "250 2.0.0 taken as 42".into() }, "{name}");
        let received = server.received(name);
        assert_eq!(received.len(), 1, "{name}");
        assert_eq!(
            (&received[0]["from"], &received[0]["to"]),
            (&json!("bell@example.org"), &json!(["ada@example.org"]))
        );
        assert_eq!(received[0]["encrypted"], json!(name != "open"), "{name}");
        assert_eq!(received[0]["authenticated"], json!(!["open", "nobody"].contains(&name)), "{name}");
        assert_eq!(received[0]["hello"], "[127.0.0.1]");
    }
}

fn password_file() -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("mail-password");
    std::fs::write(&path, "pass word:1\n").expect("a file");
    path
}

#[tokio::test]
async fn a_mail_has_the_headers_mail_must_have_and_no_others() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let sent = server.smtp("x").deliver(&note("Buy milk")).await;
    assert!(matches!(sent, SmtpOutcome::Sent { .. }), "{sent:?}");
    let mail = server.received("x").remove(0);
    let headers = json!([
        ["Date", "Sun, 15 Nov 2026 21:05:00 +0000"],
        ["From", "Bellwire <bell@example.org>"],
        ["To", "ada@example.org"],
        ["Subject", "[butler] Reminder: Buy milk"],
        ["Message-ID", "<019a8f7e-1111-7000-8000-000000000000@example.org>"],
        ["Auto-Submitted", "auto-generated"],
        ["List-Unsubscribe", "<https://bell.example.org/u/signed>"],
        ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"],
        ["MIME-Version", "1.0"],
        ["Content-Type", "multipart/alternative; boundary=\"=_bellwire_alternative\""],
    ]);
    assert_eq!(mail["headers"], headers);
    assert_eq!(mail["defects"], json!([]));
    let kinds: Vec<&Value> = mail["parts"].as_array().expect("parts").iter().map(|part| &part[0]).collect();
    assert_eq!(kinds, ["text/plain", "text/html"], "the better one comes last");
    assert_eq!(mail["page"]["links"], json!(["https://bell.example.org/inbox", "https://bell.example.org/u/signed"]));
}

#[tokio::test]
async fn one_notification_goes_as_itself_and_several_as_a_digest_with_each_origin_outside_the_text() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let first = MailItem::new("butler", MailItemKind::Warning, "Disk is full.\nNinety-nine percent.", at());
    let first = first.titled("Disk").in_conversation("Weekly report");
    let second = MailItem::new("coder", MailItemKind::Info, "Tests pass.", at().plus(60_000));
    let smtp = server.smtp("x");
    let mut digest = mail(Content::Digest(vec![first.clone(), second]));
    digest.zone = Some("Europe/Berlin".into());
    for mail in [digest, mail(Content::Digest(vec![first]))] {
        let sent = smtp.deliver(&mail).await;
        assert!(matches!(sent, SmtpOutcome::Sent { .. }), "{sent:?}");
    }
    let received = server.received("x");
    assert_eq!(received[0]["headers"][3], json!(["Subject", "2 notifications from butler and coder"]));
    assert_eq!(
        part(&received[0], "text/plain"),
        "2 notifications\n\n\n\
         Warning from butler\nConversation: Weekly report\nSun 15 Nov 2026, 22:05 CET\n\n\
         | Disk\n|\n| Disk is full.\n| Ninety-nine percent.\n\n\n\
         Info from coder\nSun 15 Nov 2026, 22:06 CET\n\n\
         | Tests pass.\n\n\
         -- \nInbox: https://bell.example.org/inbox\nStop these mails: https://bell.example.org/u/signed\n\
         Sent by Bellwire, because email is on in your notification settings.\n"
    );
    assert_eq!(received[1]["headers"][3], json!(["Subject", "[butler] Warning: Disk"]));
    assert!(part(&received[1], "text/plain").starts_with("Warning from butler\n"), "one is no digest");
}

#[tokio::test]
async fn a_confirmation_shows_the_code_and_a_long_digest_counts_what_it_leaves_out() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let smtp = server.smtp("x");
    let item = |number: usize| MailItem::new("butler", MailItemKind::Info, &format!("Item {number}."), at());
    for content in [Content::Confirmation { code: "4711-0815".into() }, Content::Digest((1..=53).map(item).collect())] {
        let sent = smtp.deliver(&mail(content)).await;
        assert!(matches!(sent, SmtpOutcome::Sent { .. }), "{sent:?}");
    }
    let received = server.received("x");
    assert_eq!(received[0]["headers"][3], json!(["Subject", "4711-0815 is your Bellwire code"]));
    assert_eq!(received[0]["page"]["links"], json!([]), "it leads nowhere, whatever links were given");
    assert!(!received[0]["headers"].to_string().contains("List-Unsubscribe"));
    for mail in [part(&received[0], "text/plain"), received[0]["page"]["text"].as_str().expect("text")] {
        assert!(mail.contains("4711-0815") && mail.contains("do nothing"), "{mail}");
    }
    for mail in [part(&received[1], "text/plain"), received[1]["page"]["text"].as_str().expect("text")] {
        assert!(mail.contains("53 notifications") && mail.contains("and 3 more in your inbox"), "{mail}");
        assert!(mail.contains("Item 50.") && !mail.contains("Item 51."), "{mail}");
    }
}
