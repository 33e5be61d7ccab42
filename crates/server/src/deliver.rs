//! How a notification leaves the hub: the channels, and the outbox that uses them.
//!
//! A channel takes something that is ready to go, hands it over once, and tells the truth about what became of it. It
//! knows nothing of batching, quiet hours, limits or retries, and reads no clock and no store: whoever calls it has decided
//! that the message goes now and decides from the outcome whether it goes again.

pub mod email;
mod mail_sender;
mod outbox;
mod unsubscribe;

pub(crate) use mail_sender::MailSender;
pub use outbox::{Outbox, SendFn};
pub use unsubscribe::UnsubscribeLinks;
