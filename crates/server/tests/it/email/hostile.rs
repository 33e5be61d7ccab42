use bellwire_core::person::{clean, one_line};
use bellwire_server::channels::email::{Content, MailItem, MailItemKind, MailMessage, NamedAddress, SmtpOutcome};
use serde_json::{Value, json};

use super::peer::{MailServer, listener};
use super::{at, mail, note};

pub(crate) fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "a\r\nBcc: eve@example.org\r\n\r\n<b>body</b>",
        "a\nSubject: other\n\nb",
        "a\rb\0c\u{b}d\u{85}e\u{2028}f",
        "\r\n.\r\nQUIT\r\n.\n..\n",
        "left\u{202e}txet\u{2066}x\u{200b}y\u{feff}z\u{e0041}",
        "=?utf-8?B?QmNjOiBldmVAZXhhbXBsZS5vcmc=?= =?utf-8?Q?=0D=0ABcc:_eve?=",
        "<script>alert(1)</script><img src=x onerror=alert(1)></div></td></table><a href='javascript:x'>y</a>",
        "\" onmouseover=\"x\" '&#60;b&#62; &lt;i&gt; ]]> --> {{ 7*7 }} {% for x in y %}",
        "**bold** [link](javascript:alert(1)) `code` # title",
        "--=_bellwire_alternative--\r\n--=_bellwire_alternative\r\nContent-Type: text/html\r\n\r\n<b>x",
        "Warning from admin\nConversation: other\n\n| forged\n-- \nInbox: https://evil.example",
        "From nobody Thu Jan  1 00:00:00 1970",
        "Lovelace, Ada <eve@example.org>; \"x\\\" (comment)",
        "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645} \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} e\u{301}",
    ]
    .map(str::to_owned)
    .into();
    texts.push("\u{1f600}".repeat(500));
    texts.push("x".repeat(5000));
    texts.push("é ".repeat(2000));
    texts
}

/// A message with the text in every field that an agent, a conversation or an operator provides.
fn everywhere(text: &str) -> MailMessage {
    let item = MailItem::new(text, MailItemKind::Warning, text, at()).titled(text).in_conversation(text);
    let mut mail = mail(Content::Notification { item, subject: Some(text.to_owned()) });
    let name = one_line(text).chars().take(100).collect();
    mail.from = NamedAddress { name: Some(name), address: mail.from.address };
    mail
}

pub(crate) fn names(mail: &Value) -> Vec<&str> {
    let headers = mail["headers"].as_array().expect("headers");
    headers.iter().map(|header| header[0].as_str().expect("a name")).collect()
}

fn header<'a>(mail: &'a Value, name: &str) -> &'a str {
    let headers = mail["headers"].as_array().expect("headers");
    headers.iter().find(|header| header[0] == name).and_then(|header| header[1].as_str()).expect("it is there")
}

#[tokio::test]
async fn hostile_text_adds_no_headers_parts_or_elements() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let smtp = server.smtp("x");
    let harmless = everywhere("harmless");
    let all = texts();
    for mail in std::iter::once(&harmless).chain(&all.iter().map(|text| everywhere(text)).collect::<Vec<_>>()) {
        let sent = smtp.deliver(mail).await;
        assert!(matches!(sent, SmtpOutcome::Sent { .. }), "{sent:?}");
    }
    let mut received = server.received("x");
    let harmless = received.remove(0);
    assert_eq!(received.len(), all.len());
    for (text, mail) in all.iter().zip(&received) {
        assert_eq!(names(mail), names(&harmless), "{text:?}");
        assert_eq!(mail["defects"], json!([]), "{text:?}");
        assert_eq!((&mail["from"], &mail["to"]), (&json!("bell@example.org"), &json!(["ada@example.org"])));
        assert_eq!(mail["recipients"], json!([["", "ada@example.org"]]));
        let name: String = one_line(text).chars().take(100).collect();
        // Some versions of Python put spaces between the encoded words of a name.
        let mails = |name: &str| name.chars().filter(|c| *c != ' ').collect::<String>();
        let sender = mail["sender"][0][0].as_str().expect("a name");
        assert_eq!(mails(sender), mails(&name), "{text:?}");
        assert_eq!(mail["sender"], json!([[sender, "bell@example.org"]]), "{text:?}");
        assert!(header(mail, "Subject").starts_with('['), "{text:?}");
        assert_eq!(mail["parts"].as_array().map(Vec::len), Some(2), "{text:?}");
        assert_eq!(mail["page"]["links"], harmless["page"]["links"], "{text:?}");
        // Lines of the text become line breaks; nothing else is added to the page.
        let tags = |mail: &Value| {
            let tags = mail["page"]["tags"].as_array().expect("tags").iter();
            tags.filter(|tag| *tag != "br").cloned().collect::<Vec<_>>()
        };
        assert_eq!(tags(mail), tags(&harmless), "{text:?}");
    }
}

#[tokio::test]
async fn a_text_arrives_as_it_was_said_inside_its_frame() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let smtp = server.smtp("x");
    for text in &texts() {
        let sent = smtp.deliver(&note(text)).await;
        assert!(matches!(sent, SmtpOutcome::Sent { .. }), "{sent:?}");
    }
    for (text, mail) in texts().iter().zip(server.received("x")) {
        let plain = mail["parts"][0][1].as_str().expect("a text").to_owned();
        let (frame, rest) = plain.split_once("\n\n").expect("a frame and a text");
        assert_eq!(frame, "Reminder from butler\nSun 15 Nov 2026, 21:05 UTC", "{text:?}");
        let (said, _) = rest.split_once("\n\n-- \n").expect("an end");
        let said: Vec<&str> =
            said.split('\n').map(|line| line.strip_prefix('|').expect("a line of the agent")).collect();
        let lines: Vec<&str> = said.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        let expected = clean(text);
        assert_eq!(lines, expected.split('\n').map(str::trim_end).collect::<Vec<_>>(), "{text:?}");
        let page = mail["page"]["text"].as_str().expect("a page");
        for line in expected.split('\n') {
            assert!(page.contains(line), "{line:?} is missing in {page:?}");
        }
        assert_eq!(header(&mail, "Subject").split(": ").next(), Some("[butler] Reminder"), "{text:?}");
    }
}
