//! The SMTP client against a real server that can be made to misbehave.

use bellwire_core::Time;
use bellwire_server::channels::email::{
    Content, EmailAddress, Link, Links, MailItem, MailItemKind, MailMessage, MessageId, NamedAddress,
};

pub(crate) mod peer;

mod arrives;
pub(crate) mod hostile;
mod outcomes;
mod properties;
mod settings;
mod trust;

pub(crate) fn at() -> Time {
    "2026-11-15T21:05:00Z".parse().expect("a time")
}

/// A message with this content, from Bellwire to Ada.
pub(crate) fn mail(content: Content) -> MailMessage {
    let from = NamedAddress::parse("Bellwire <bell@example.org>").expect("a mailbox");
    let link = |path: &str| Some(Link::parse(&format!("https://bell.example.org/{path}")).expect("a link"));
    MailMessage {
        message_id: MessageId::new("019a8f7e-1111-7000-8000-000000000000", &from.address).expect("an id"),
        from,
        to: EmailAddress::parse("ada@example.org").expect("an address"),
        at: at(),
        zone: None,
        in_reply_to: None,
        content,
        links: Links { inbox: link("inbox"), unsubscribe: link("u/signed") },
    }
}

pub(crate) fn note(message: &str) -> MailMessage {
    mail(Content::Notification { item: MailItem::new("butler", MailItemKind::Reminder, message, at()), subject: None })
}
