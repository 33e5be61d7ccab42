use bellwire_core::person::one_line;
use bellwire_server::channels::email::{
    Content, EmailAddress, MailItem, MailItemKind, MailMessage, NamedAddress, compose,
};
use proptest::prelude::*;

use super::{at, mail};

const HEADERS: [&str; 10] = [
    "Date",
    "From",
    "To",
    "Subject",
    "Message-ID",
    "Auto-Submitted",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "MIME-Version",
    "Content-Type",
];

/// Any text, with a bias to texts that often break mail headers.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[ -~]{0,80}",
        prop::sample::select(vec!["\r\n", "\n", "\r", "\0", "\r\n\r\n", ".", "\r\n.\r\n", "=?utf-8?B?", "?=", "=\r\n"])
            .prop_map(str::to_owned),
        prop::sample::select(vec!["--=_bellwire_alternative--", "Bcc: eve@example.org", "\u{202e}", "😀", "\u{2028}"])
            .prop_map(str::to_owned),
        (prop::sample::select(vec!["x", " ", "é", "😀", "=", "."]), 0..1200_usize).prop_map(|(one, n)| one.repeat(n)),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn item() -> impl Strategy<Value = MailItem> {
    let kind = prop::sample::select(vec![
        MailItemKind::Reminder,
        MailItemKind::Info,
        MailItemKind::Success,
        MailItemKind::Warning,
        MailItemKind::Error,
    ]);
    (text(), text(), text(), text(), kind).prop_map(|(origin, message, title, conversation, kind)| {
        MailItem::new(&origin, kind, &message, at()).titled(&title).in_conversation(&conversation)
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        (item(), prop::option::of(text())).prop_map(|(item, subject)| Content::Notification { item, subject }),
        prop::collection::vec(item(), 0..4).prop_map(Content::Digest),
        text().prop_map(|code| Content::Confirmation { code }),
    ]
}

fn mails() -> impl Strategy<Value = MailMessage> {
    (content(), prop::option::of(text()), text()).prop_map(|(content, name, zone)| {
        let mut mail = mail(content);
        mail.zone = Some(zone);
        mail.from.name = name.map(|name| one_line(&name)).filter(|name| !name.is_empty());
        mail
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_input_gives_exactly_our_headers(mail in mails()) {
        let bytes = compose(&mail);
        prop_assert!(bytes.is_ascii());
        let message = String::from_utf8(bytes).expect("it is ASCII");
        let (block, body) = message.split_once("\r\n\r\n").expect("a block and a body");
        let fields = block.split("\r\n").filter(|line| !line.starts_with(' '));
        let names: Vec<&str> = fields.map(|line| line.split(": ").next().unwrap_or(line)).collect();
        let stoppable = !matches!(mail.content, Content::Confirmation { .. });
        let expected = HEADERS.into_iter().filter(|name| stoppable || !name.starts_with("List-"));
        prop_assert_eq!(names, expected.collect::<Vec<_>>());
        for line in message.split("\r\n") {
            prop_assert!(line.len() <= 78, "{} characters: {line}", line.len());
            prop_assert!(!line.contains(['\r', '\n']), "{line:?}");
            prop_assert!(line.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{line:?}");
        }
        prop_assert_eq!(body.matches("\r\n--=_bellwire_alternative\r\n").count(), 2 - usize::from(body.starts_with("--")));
        prop_assert_eq!(body.matches("--=_bellwire_alternative--").count(), 1);
        prop_assert_eq!(compose(&mail), message.into_bytes(), "the same mail gives the same message");
    }

    #[test]
    fn an_accepted_address_has_no_spaces_and_survives_a_round_trip(text in text(), domain in "[a-zé.-]{0,12}") {
        for candidate in [text.clone(), format!("{text}@{domain}"), format!("ada@{text}"), format!("{text}@example.org")] {
            let Ok(address) = EmailAddress::parse(&candidate) else { continue };
            let written = address.to_string();
            prop_assert!(written.chars().all(|c| c.is_ascii_graphic() && !"<>,;:\"()[]\\".contains(c)), "{written:?}");
            prop_assert_eq!(written.matches('@').count(), 1);
            prop_assert_eq!(EmailAddress::parse(&written), Ok(address));
        }
    }

    #[test]
    fn a_named_address_survives_a_round_trip(name in text()) {
        let name = one_line(&name).chars().take(100).collect::<String>();
        let name = Some(one_line(&name)).filter(|name| !name.is_empty());
        let mailbox = NamedAddress { name, address: EmailAddress::parse("ada@example.org").expect("an address") };
        prop_assert_eq!(NamedAddress::parse(&mailbox.to_string()), Ok(mailbox));
    }
}
