//! Notifications as email: a [`Letter`] is composed into the bytes of a message, and [`Smtp`] hands it to a server.
//!
//! What must not be wrong is a type that cannot be: an [`Address`] is one mailbox, a [`Link`] has no character that could
//! end a header, a [`MessageId`] is the same on every attempt. From there composing cannot fail, and the same letter always
//! gives the same bytes. Sending is one connection for one message; what is known afterwards is an [`Outcome`], and where
//! the server fell silent between the last byte and its answer that outcome is *unknown*, never a guess.
//!
//! Not here: when a mail is sent, to whom it may be sent, and whether it is tried again.
//!
//! ```
//! use bellwire_core::Time;
//! use bellwire_server::deliver::email::{Address, Content, Item, Kind, Letter, Links, Mailbox, MessageId, compose};
//!
//! let from = Mailbox::parse("Bellwire <bell@example.org>")?;
//! let at: Time = "2026-11-15T21:00:00Z".parse().map_err(|_| "a time")?;
//! let item = Item::new("butler", Kind::Reminder, "Buy milk", at);
//! let letter = Letter {
//!     message_id: MessageId::new("019a8f7e-1111-7000-8000-000000000000", &from.address)?,
//!     to: Address::parse("ada@example.org")?,
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
pub use address::{Address, Mailbox};

mod letter;
pub use letter::{Content, Item, Kind, Letter, Link, Links, MessageId};

mod subject;

mod plain;

mod html;

mod header;

mod quoted_printable;

mod compose;
pub use compose::compose;

mod outcome;
pub use outcome::{Outcome, Step};

mod smtp;
pub use smtp::{SetupError, Smtp};
