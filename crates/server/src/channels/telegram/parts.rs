//! Sends a text into a chat: in parts, in order, each in its slot.

use std::fmt;
use std::time::Duration;

use bellwire_store::ChatMessage;
use tokio::time::Instant;

use super::api::{CallError, KeyboardButton, SentMessage, TextMessage};
use super::bot::Bot;
use super::text::TextPart;
use crate::channels::NoSlot;

/// How long the parts after the first wait together for their slots, besides the intervals of the chat, if a later attempt
/// can continue.
const REST_WAIT_SHORT: Duration = Duration::from_secs(10);
/// The same if none can.
const REST_WAIT_LONG: Duration = Duration::from_secs(5 * 60);
/// How many parts a text has at most: the longest has 16,000 characters, each of two UTF-16 units, in parts that are at
/// least half full.
const PARTS_MAX: u32 = 16;

/// A text on its way into a chat.
pub(super) struct Outgoing<'a> {
    pub(super) chat_id: i64,
    pub(super) parts: &'a [TextPart],
    /// The message that the first part answers.
    pub(super) reply_to: Option<i64>,
    /// The buttons under the last part.
    pub(super) buttons: &'a [Vec<KeyboardButton>],
    /// What is stored about each part; its notification only about the last one. None = the chat belongs to no person.
    pub(super) stored: Option<ChatMessage>,
    /// How many parts an earlier attempt has sent.
    pub(super) sent_before: usize,
    /// When the rest must be sent.
    pub(super) rest: Rest,
}

/// When the parts after the first must be sent.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Rest {
    /// In this attempt, because there is no other.
    Now,
    /// In this attempt if the chat soon has a slot, else in a later one.
    Later,
}

/// Not all parts were sent.
pub(super) struct Incomplete {
    /// The ids of the parts that were sent.
    pub(super) ids: Vec<i64>,
    /// How many parts there are.
    pub(super) parts: usize,
    /// Why the next part was not sent.
    pub(super) cause: Cause,
}

/// Why a part was not sent.
pub(super) enum Cause {
    /// The text is blank.
    Blank,
    /// There is no slot in time.
    NoSlot(NoSlot),
    /// The call failed.
    Call(CallError),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("the text is blank"),
            Self::NoSlot(no_slot) => no_slot.fmt(f),
            Self::Call(error) => error.fmt(f),
        }
    }
}

/// Sends a text, except what was sent before, and stores its parts. Returns the ids of the parts. The caller has a slot for
/// the first of them.
pub(super) async fn send(bot: &Bot, outgoing: &Outgoing<'_>) -> Result<Vec<i64>, Incomplete> {
    let parts = outgoing.parts;
    let deadline = Instant::now() + rest_wait_max(bot, outgoing.rest);
    let mut ids = Vec::new();
    for (index, part) in parts.iter().enumerate().skip(outgoing.sent_before) {
        let is_last = index + 1 == parts.len();
        let message = TextMessage {
            chat_id: outgoing.chat_id,
            part,
            reply_to: outgoing.reply_to.filter(|_| index == 0),
            buttons: if is_last { outgoing.buttons } else { &[] },
        };
        let sent = match ids.is_empty() {
            true => bot.send(&message).await.map_err(Cause::Call),
            false => further(bot, &message, outgoing.rest, deadline).await,
        };
        let message_id = match sent {
            Ok(sent) => sent.message_id,
            Err(cause) => return Err(Incomplete { ids, parts: parts.len(), cause }),
        };
        ids.push(message_id);
        if let Some(stored) = outgoing.stored.clone() {
            let notification_id = stored.notification_id.filter(|_| is_last);
            bot.remember(ChatMessage { message_id, notification_id, ..stored }).await;
        }
    }
    match ids.is_empty() {
        true => Err(Incomplete { ids, parts: 0, cause: Cause::Blank }),
        false => Ok(ids),
    }
}

/// Sends a further part. After a 429, which proves that nothing was sent, it is sent again when Telegram allows it.
async fn further(bot: &Bot, message: &TextMessage<'_>, rest: Rest, deadline: Instant) -> Result<SentMessage, Cause> {
    loop {
        let wait_max = deadline.saturating_duration_since(Instant::now());
        let slot = match rest {
            Rest::Now => bot.pace.slot(message.chat_id, wait_max).await.map_err(NoSlot::Busy),
            Rest::Later => bot.slot_unless_stopping(message.chat_id, wait_max).await,
        };
        slot.map_err(Cause::NoSlot)?;
        match bot.send(message).await {
            Err(error) if error.refusal(429).is_some() => {}
            sent => return sent.map_err(Cause::Call),
        }
    }
}

/// The longest time that sending a text takes: every part may have its slot and be answered late.
pub(super) fn time_max(bot: &Bot) -> Duration {
    bot.api.call_max() * PARTS_MAX + rest_wait_max(bot, Rest::Now)
}

fn rest_wait_max(bot: &Bot, rest: Rest) -> Duration {
    let longer = match rest {
        Rest::Now => REST_WAIT_LONG,
        Rest::Later => REST_WAIT_SHORT,
    };
    bot.pace.chat_interval() * PARTS_MAX + longer
}
