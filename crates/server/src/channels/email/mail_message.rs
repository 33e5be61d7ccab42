use std::fmt;

use bellwire_core::Time;
use bellwire_core::person::{MessageType, ToastSeverity, clean, one_line};

use super::{EmailAddress, NamedAddress};

/// The longest link, in bytes: it must fit into one header line of 998.
const LINK_MAX: usize = 900;
/// The longest id before the @ of a Message-ID.
const ID_MAX: usize = 128;
/// The longest Message-ID from outside, in bytes: it must fit into one header line of 998.
const FOREIGN_ID_MAX: usize = 900;
/// How many characters of an invalid text an error repeats.
const SHOWN_MAX: usize = 60;
/// The longest origin, source, title or conversation name, in characters.
const NAME_MAX: usize = 100;

/// A mail that can be composed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailMessage {
    /// The same on every attempt of a delivery, so that a mail client can recognize a duplicate.
    pub message_id: MessageId,
    /// The sender: the hub, not the agent.
    pub from: NamedAddress,
    /// The recipient.
    pub to: EmailAddress,
    /// The date header; the same on every attempt.
    pub at: Time,
    /// The recipient's time zone, by its IANA name; none or an unknown one = UTC.
    pub zone: Option<String>,
    /// The mail that this one answers.
    pub in_reply_to: Option<MessageId>,
    /// The body.
    pub content: Content,
    /// The links at the end; a confirmation has none.
    pub links: Links,
}

/// The body of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// One notification.
    Notification {
        /// The notification.
        item: MailItem,
        /// The agent's own subject, shown after the origin. None = made from the item.
        subject: Option<String>,
    },
    /// Notifications held during quiet hours, in this order. A digest of one looks like a single notification.
    Digest(Vec<MailItem>),
    /// The code that confirms the address.
    Confirmation {
        /// What the person types in.
        code: String,
    },
}

/// A notification in a mail. The constructor cleans the texts: no control characters, no bidirectional overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailItem {
    pub(super) origin: String,
    pub(super) source: Option<String>,
    pub(super) kind: MailItemKind,
    pub(super) title: Option<String>,
    pub(super) message: String,
    pub(super) conversation: Option<String>,
    pub(super) at: Time,
}

/// The type of a notification, shown as a label.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MailItemKind {
    /// A reminder.
    Reminder,
    /// Information.
    Info,
    /// Something succeeded.
    Success,
    /// Something needs attention.
    Warning,
    /// Something failed.
    Error,
    /// A message that an agent sends directly to an address.
    Message,
}

/// The links at the end of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The person's inbox, or the one notification in it.
    pub inbox: Option<Link>,
    /// Stops these mails: GET shows a page, POST unsubscribes (RFC 8058).
    pub unsubscribe: Option<Link>,
}

/// An http or https URL that is safe in a header and in an HTML attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link(String);

/// The Message-ID, `<id@domain>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageId(String);

impl MailMessage {
    /// The links to show. A confirmation has none: before the address is confirmed there is nothing to stop.
    pub(super) fn links(&self) -> Links {
        match self.content {
            Content::Confirmation { .. } => Links::default(),
            _ => self.links.clone(),
        }
    }
}

impl MailItem {
    /// A notification from an agent, named by its authenticated origin.
    pub fn new(origin: &str, kind: MailItemKind, message: &str, at: Time) -> Self {
        let origin = cut(&one_line(origin), NAME_MAX);
        Self { origin, source: None, kind, title: None, message: clean(message), conversation: None, at }
    }

    /// Adds the agent's title.
    pub fn titled(mut self, title: &str) -> Self {
        self.title = Some(cut(&one_line(title), NAME_MAX)).filter(|title| !title.is_empty());
        self
    }

    /// Adds the source that its events name; it is not authenticated.
    pub fn from_source(mut self, source: &str) -> Self {
        self.source = Some(cut(&one_line(source), NAME_MAX)).filter(|source| !source.is_empty());
        self
    }

    /// Adds the conversation: its title, else its id.
    pub fn in_conversation(mut self, name: &str) -> Self {
        self.conversation = Some(cut(&one_line(name), NAME_MAX)).filter(|name| !name.is_empty());
        self
    }
}

impl MailItemKind {
    /// The label that the person reads.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Reminder => "Reminder",
            Self::Info => "Info",
            Self::Success => "Success",
            Self::Warning => "Warning",
            Self::Error => "Error",
            Self::Message => "Message",
        }
    }
}

impl From<MessageType> for MailItemKind {
    fn from(kind: MessageType) -> Self {
        match kind {
            MessageType::Reminder => Self::Reminder,
            MessageType::Info => Self::Info,
            MessageType::Warning => Self::Warning,
        }
    }
}

impl From<ToastSeverity> for MailItemKind {
    fn from(severity: ToastSeverity) -> Self {
        match severity {
            ToastSeverity::Info => Self::Info,
            ToastSeverity::Success => Self::Success,
            ToastSeverity::Warning => Self::Warning,
            ToastSeverity::Error => Self::Error,
        }
    }
}

impl Link {
    /// Accepts an absolute URL of printable ASCII; other characters must be percent-encoded.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("'{}' {why}", text.escape_debug()));
        let safe = |c: char| c.is_ascii_graphic() && !"<>\"\\^`{|}".contains(c);
        match text {
            text if !text.starts_with("https://") && !text.starts_with("http://") => wrong("is no http or https link"),
            text if text.len() > LINK_MAX => wrong("is too long for a header"),
            text if !text.chars().all(safe) => wrong("has characters in it that must be percent-encoded"),
            text => Ok(Self(text.to_owned())),
        }
    }

    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl MessageId {
    /// From an id that is the same on all attempts, such as the mail id, and the sender's domain.
    pub fn new(id: &str, from: &EmailAddress) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let dots = id.starts_with('.') || id.ends_with('.') || id.contains("..");
        if id.is_empty() || id.len() > ID_MAX || dots || !id.chars().all(plain) {
            let allowed = format!("letters, digits, - and _ are allowed, at most {ID_MAX}");
            return Err(format!("the message id '{}' cannot stand in a header: {allowed}", id.escape_debug()));
        }
        Ok(Self(format!("<{id}@{}>", from.domain())))
    }

    /// Parses the Message-ID of a mail from outside, `<left@right>`, in the form without quotes (RFC 5322, 3.6.4).
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
        let is_literal = |right: &str| {
            let inside = right.strip_prefix('[').and_then(|right| right.strip_suffix(']'));
            inside.is_some_and(|inside| inside.chars().all(|c| c.is_ascii_graphic() && !"[]\\<>".contains(c)))
        };
        let parts = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')?.split_once('@'));
        let fits = parts.is_some_and(|(left, right)| {
            let is_right = !right.is_empty() && (right.chars().all(is_atom) || is_literal(right));
            !left.is_empty() && left.chars().all(is_atom) && is_right
        });
        match fits && text.len() <= FOREIGN_ID_MAX {
            true => Ok(Self(text.to_owned())),
            false => {
                let shown: String = text.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
                Err(format!("'{shown}' is not one Message-ID such as <id@example.org>"))
            }
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text cut to `max` characters, with an ellipsis if it was longer.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some(_) => text.chars().take(max - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_cannot_break_out_of_its_header() {
        for text in
            ["javascript:alert(1)", "//x.org", "https://x.org/ y", "https://x.org/\r\nBcc: x", "https://x.org/>"]
        {
            assert!(Link::parse(text).is_err(), "{text}");
        }
        assert!(Link::parse(&format!("https://x.org/{}", "x".repeat(900))).is_err());
        assert!(Link::parse("https://x.org/u/a.b-c?d=e&f=%20").is_ok());
    }

    #[test]
    fn a_message_id_is_the_mail_id_at_the_senders_domain() {
        let from = EmailAddress::parse("bell@example.org").expect("an address");
        assert_eq!(MessageId::new("019a-1", &from).map(|id| id.to_string()), Ok("<019a-1@example.org>".to_owned()));
        for id in ["", "a b", "a>\r\nBcc: x", "é", ".a", "a..b", &"x".repeat(129)] {
            assert!(MessageId::new(id, &from).is_err(), "{id}");
        }
    }

    #[test]
    fn a_message_id_from_outside_is_exactly_one_and_cannot_break_out_of_its_header() {
        for id in ["<a@b>", "<CAF+x=_1.2@mail.gmail.com>", "<20261116.1@[127.0.0.1]>", "<a..b@c>"] {
            assert_eq!(MessageId::parse(id).map(|id| id.to_string()), Ok(id.to_owned()));
        }
        let long = format!("<{}@b>", "x".repeat(900));
        for id in
            ["", "a@b", "<a>", "<@b>", "<a@>", "<a@b", "<a@b> <c@d>", "<a@b>\r\nBcc: x", "<a b@c>", "<é@b>", &long]
        {
            assert!(MessageId::parse(id).is_err(), "{id}");
        }
    }

    #[test]
    fn agent_text_is_cleaned_on_construction() {
        let item = MailItem::new("but\r\nler\0", MailItemKind::Info, "a\r\nb\u{202e}c", Time::ZERO);
        let item = item.titled("t\nu").in_conversation(&"x".repeat(200));
        assert_eq!((item.origin.as_str(), item.message.as_str()), ("but ler", "a\nbc"));
        assert_eq!(item.title.as_deref(), Some("t u"));
        assert_eq!(item.conversation.map(|name| name.chars().count()), Some(100));
    }
}
