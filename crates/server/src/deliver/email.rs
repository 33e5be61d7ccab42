//! Notifications as email: a [`MailMessage`] is composed into the bytes of a message, and [`Smtp`] hands it to a server.
//!
//! What must not be wrong is a type that cannot be: an [`EmailAddress`] is one mailbox, a [`Link`] has no character that could
//! end a header, a [`MessageId`] is the same on every attempt. From there composing cannot fail, and the same letter always
//! gives the same bytes. Sending is one connection for one message; what is known afterwards is an [`SmtpOutcome`], and where
//! the server fell silent between the last byte and its answer that outcome is *unknown*, never a guess.
//!
//! Not here: when a mail is sent, to whom it may be sent, and whether it is tried again.
//!
//! ```
//! use bellwire_core::Time;
//! use bellwire_server::deliver::email::{EmailAddress, Content, MailItem, MailItemKind, MailMessage, Links, NamedAddress, MessageId, compose};
//!
//! let from = NamedAddress::parse("Bellwire <bell@example.org>")?;
//! let at: Time = "2026-11-15T21:00:00Z".parse().map_err(|_| "a time")?;
//! let item = MailItem::new("butler", MailItemKind::Reminder, "Buy milk", at);
//! let letter = MailMessage {
//!     message_id: MessageId::new("019a8f7e-1111-7000-8000-000000000000", &from.address)?,
//!     to: EmailAddress::parse("ada@example.org")?,
//!     from,
//!     at,
//!     zone: None,
//!     content: Content::Notification { item, subject: None },
//!     links: Links::default(),
//! };
//! let message = String::from_utf8(compose(&letter)).map_err(|_| "mail is ASCII")?;
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
