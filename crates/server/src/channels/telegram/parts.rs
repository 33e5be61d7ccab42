//! Sends a text into a chat: in parts, in order, each in its slot.

use std::fmt;
use std::time::Duration;

use bellwire_store::ChatMessage;

use super::api::{CallError, KeyboardButton, SentMessage, TextMessage};
use super::bot::{Bot, NoSlot};
use super::text::Text;

/// How much longer than the interval of a chat a further part waits for its slot.
const NEXT_WAIT_MARGIN: Duration = Duration::from_secs(10);
/// How many parts a text has at most: the longest has 16,000 characters, each of two UTF-16 units, in parts that are at
/// least half full.
const PARTS_MAX: u32 = 16;

/// A text on its way into a chat.
pub(super) struct Outgoing<'a> {
    pub(super) chat_id: i64,
    pub(super) text: &'a Text,
    /// The message that the first part answers.
    pub(super) reply_to: Option<i64>,
    /// The buttons under the last part.
    pub(super) buttons: &'a [Vec<KeyboardButton>],
    /// What is stored about each part; its notification only about the last one. None = the chat belongs to no person.
    pub(super) stored: Option<ChatMessage>,
    /// How long the first part waits for its slot.
    pub(super) wait_max: Duration,
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

/// Sends a text and stores its parts. Returns the ids of the parts.
pub(super) async fn send(bot: &Bot, outgoing: &Outgoing<'_>) -> Result<Vec<i64>, Incomplete> {
    let parts = outgoing.text.split();
    let mut ids = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        let message = TextMessage {
            chat_id: outgoing.chat_id,
            part,
            reply_to: outgoing.reply_to.filter(|_| index == 0),
            buttons: if is_last { outgoing.buttons } else { &[] },
        };
        let sent = match index {
            0 => first(bot, &message, outgoing.wait_max).await,
            _ => further(bot, &message).await,
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

async fn first(bot: &Bot, message: &TextMessage<'_>, wait_max: Duration) -> Result<SentMessage, Cause> {
    bot.slot_unless_stopping(message.chat_id, wait_max).await.map_err(Cause::NoSlot)?;
    bot.send(message).await.map_err(Cause::Call)
}

/// Sends a further part. The rest of a text must not be lost because the chat gets too much: after a 429, which proves that
/// nothing was sent, the part is sent once more when Telegram allows it.
async fn further(bot: &Bot, message: &TextMessage<'_>) -> Result<SentMessage, Cause> {
    let slot = || async {
        let slot = bot.pace.slot(message.chat_id, next_wait_max(bot)).await;
        slot.map_err(|wait| Cause::NoSlot(NoSlot::Busy(wait)))
    };
    slot().await?;
    match bot.send(message).await {
        Err(error) if error.refusal(429).is_some() => {
            slot().await?;
            bot.send(message).await.map_err(Cause::Call)
        }
        sent => sent.map_err(Cause::Call),
    }
}

/// The longest time that sending a text takes, if its first part waits this long for its slot.
pub(super) fn time_max(bot: &Bot, wait_max: Duration) -> Duration {
    let call_max = bot.api.call_max();
    wait_max + call_max + (next_wait_max(bot) + call_max) * 2 * (PARTS_MAX - 1)
}

fn next_wait_max(bot: &Bot) -> Duration {
    bot.pace.chat_interval() + NEXT_WAIT_MARGIN
}
