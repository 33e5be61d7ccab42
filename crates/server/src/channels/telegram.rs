//! The Telegram channel: a bot that sends to private chats, and reads what paired people write there.
//!
//! Sending: [`TelegramChannel`] composes a text, splits it and paces it. Receiving: an update is stored before Telegram is
//! told to forget it, by the poller or the webhook, and then handled once; the store decides what it means.
//!
//! Telegram has no idempotency key: a call whose answer is lost may have been carried out. Such an outcome is *unknown*
//! and is never repeated automatically.

mod channel;
pub use channel::TelegramChannel;

mod api;
mod bot;
mod compose;
mod deliver;
mod notify;
mod outcome;
mod pace;
mod parts;
mod reaction;
mod target;
mod text;

mod edits;
mod inbox;
mod poller;
mod replies;
mod update;
mod webhook;

/// The name of the channel.
const NAME: &str = "telegram";
