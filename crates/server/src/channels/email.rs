//! The email channel: [`compose`] makes the bytes of a [`MailMessage`], and [`Smtp`] sends them to a server.
//!
//! Types exclude invalid input: an [`EmailAddress`] is exactly one address, a [`Link`] has no character that could end a
//! header, a [`MessageId`] is the same on every attempt. So composing cannot fail, and the same message always gives the same
//! bytes. Each message is sent over a connection of its own. The result is an [`SmtpOutcome`]; if the server does not reply
//! to the end of the message, the outcome is *unknown*, never a guess.
//!
//! The store decides when a mail is sent, to whom, and whether it is retried.
//!
//! ```
//! use bellwire_core::Time;
//! use bellwire_server::channels::email::{EmailAddress, Content, MailItem, MailItemKind, MailMessage, Links, NamedAddress, MessageId, compose};
//!
//! let from = NamedAddress::parse("Bellwire <bell@example.org>")?;
//! let at: Time = "2026-11-15T21:00:00Z".parse().map_err(|_| "a time")?;
//! let item = MailItem::new("butler", MailItemKind::Reminder, "Buy milk", at);
//! let mail = MailMessage {
//!     message_id: MessageId::new("019a8f7e-1111-7000-8000-000000000000", &from.address)?,
//!     to: EmailAddress::parse("ada@example.org")?,
//!     from,
//!     at,
//!     zone: None,
//!     in_reply_to: None,
//!     content: Content::Notification { item, subject: None },
//!     links: Links::default(),
//! };
//! let message = String::from_utf8(compose(&mail)).map_err(|_| "mail is ASCII")?;
//! assert!(message.contains("\r\nSubject: [butler] Reminder: Buy milk\r\n"));
//! # Ok::<(), String>(())
//! ```

mod address;
pub use address::{EmailAddress, NamedAddress};

mod mail_message;
pub use mail_message::{Content, Link, Links, MailItem, MailItemKind, MailMessage, MessageId};

mod subject;

mod plain;

mod html;

mod header;

mod quoted_printable;

mod compose;
pub use compose::compose;

mod outcome;
pub use outcome::{SmtpOutcome, SmtpStep};

mod smtp;
pub use smtp::{SetupError, Smtp};

mod mail_test;

mod channel;
pub use channel::EmailChannel;
