//! Sends notifications out of the hub: the channels, and the [`Outbox`] worker that uses them.
//!
//! A channel sends one finished message once and reports the outcome. It knows nothing of batching, quiet hours, limits or
//! retries, and reads no clock and no store: the store decides when a message is sent and, from the outcome, whether it is
//! sent again.

pub mod email;
mod mail_sender;
mod outbox;
mod unsubscribe;

pub(crate) use mail_sender::MailSender;
pub use outbox::{Outbox, SendFn};
pub use unsubscribe::UnsubscribeLinks;
