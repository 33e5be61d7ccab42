//! Messages of the outbox: notifications with their buttons, and messages of `notify` that quiet hours held.

use std::fmt;

use bellwire_core::NotificationId;
use bellwire_store::{AttemptOutcome, ChatMessage, InboxItem, NewButton};

use super::api::KeyboardButton;
use super::bot::Bot;
use super::compose;
use super::outcome::{attempt_outcome, millis};
use super::parts::{self, Cause, Incomplete, Outgoing, Rest};
use super::target::chat_id;
use super::text::Text;
use crate::auth;
use crate::channels::{NoSlot, OutboundContent, OutboundMessage};

/// What a message says, and what an answer to it belongs to.
struct Composed {
    text: Text,
    conversation_id: Option<String>,
    /// None = it has several.
    origin: Option<String>,
    buttons: Vec<Vec<KeyboardButton>>,
    /// The notification of the buttons.
    notification_id: Option<NotificationId>,
}

/// Makes one attempt to send a message.
pub(super) async fn deliver(bot: &Bot, message: OutboundMessage) -> AttemptOutcome {
    let refused = || AttemptOutcome::Refused { reason: "this is no message for a chat".to_owned() };
    let Some(chat_id) = chat_id(&message.target) else { return refused() };
    let composed = match &message.content {
        OutboundContent::Notifications(items) => match put_buttons(bot, chat_id, items).await {
            Ok(buttons) => of_notifications(&message, items, buttons),
            Err(reason) => return AttemptOutcome::TryAgain { reason, retry_after_ms: None },
        },
        OutboundContent::Direct(item, direct) => Composed {
            text: compose::direct(&direct.origin, direct.subject.as_deref(), &direct.message),
            conversation_id: item.conversation_id.clone(),
            origin: Some(direct.origin.clone()),
            buttons: Vec::new(),
            notification_id: None,
        },
        // Chats are paired, not confirmed by a code.
        OutboundContent::Code(_) => return refused(),
    };
    let text_hash = text_hash(&composed.text.text);
    let sent_before = match message.progress.as_deref().map(Progress::parse) {
        None => 0,
        Some(progress) if progress.text_hash == text_hash => progress.parts,
        Some(Progress { parts, .. }) => {
            let reason = format!("{parts} of its parts were delivered, and the text has changed since");
            return AttemptOutcome::Refused { reason };
        }
    };
    let stored = ChatMessage {
        chat: Bot::chat(chat_id),
        message_id: 0,
        user_id: message.user_id,
        conversation_id: composed.conversation_id,
        origin: composed.origin,
        notification_id: composed.notification_id,
        at: bot.now(),
    };
    let outgoing = Outgoing {
        chat_id,
        text: &composed.text,
        reply_to: None,
        buttons: &composed.buttons,
        stored: Some(stored),
        sent_before,
        rest: Rest::Later,
    };
    match parts::send(bot, &outgoing).await {
        Ok(_) => AttemptOutcome::Sent,
        Err(incomplete) => outcome(incomplete, Progress { parts: sent_before, text_hash }, &message.target),
    }
}

fn of_notifications(message: &OutboundMessage, items: &[InboxItem], buttons: Vec<Vec<KeyboardButton>>) -> Composed {
    let first = items.first();
    let origin = first.map(|item| &item.origin).filter(|origin| items.iter().all(|item| item.origin == **origin));
    Composed {
        text: compose::notifications(items, &message.titles),
        conversation_id: first.and_then(|item| item.conversation_id.clone()),
        origin: origin.cloned(),
        notification_id: first.map(|item| item.id).filter(|_| !buttons.is_empty()),
        buttons,
    }
}

/// What was sent of a message. A text may change until it goes on, for example if a notification of it is read meanwhile;
/// then its parts do not fit together.
struct Progress {
    parts: usize,
    text_hash: u64,
}

impl Progress {
    /// Reads what an earlier attempt reported.
    fn parse(text: &str) -> Self {
        let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or_default());
        let parts = numbers.next().and_then(|parts| usize::try_from(parts).ok()).unwrap_or_default();
        Self { parts, text_hash: numbers.next().unwrap_or_default() }
    }
}

fn text_hash(text: &str) -> u64 {
    auth::hash(text).iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.parts, self.text_hash)
    }
}

fn outcome(incomplete: Incomplete, before: Progress, target: &str) -> AttemptOutcome {
    let Incomplete { ids, parts, cause } = incomplete;
    let outcome = match &cause {
        Cause::Blank => return AttemptOutcome::Refused { reason: cause.to_string() },
        Cause::NoSlot(no_slot) => {
            let retry_after_ms = match no_slot {
                NoSlot::Busy(wait) => Some(millis(*wait)),
                NoSlot::Stopping => None,
            };
            AttemptOutcome::TryAgain { reason: cause.to_string(), retry_after_ms }
        }
        Cause::Call(error) => attempt_outcome(error, target),
    };
    let progress = Progress { parts: before.parts + ids.len(), ..before };
    let delivered = progress.parts;
    let so_far = |reason: String| format!("{delivered} of {parts} parts were delivered: {reason}");
    match outcome {
        outcome if delivered == 0 => outcome,
        AttemptOutcome::TryAgain { reason, retry_after_ms } => {
            AttemptOutcome::Partial { progress: progress.to_string(), reason: so_far(reason), retry_after_ms }
        }
        AttemptOutcome::Unreachable { reason } => AttemptOutcome::Unreachable { reason: so_far(reason) },
        // The rest cannot be sent again without sending a part of it twice.
        AttemptOutcome::Refused { reason } | AttemptOutcome::Unknown { reason } => {
            AttemptOutcome::Refused { reason: so_far(reason) }
        }
        outcome => outcome,
    }
}

/// Makes the buttons of a toast, which is always alone in its message, and stores the hashes of their tokens before the
/// message is sent.
async fn put_buttons(bot: &Bot, chat_id: i64, items: &[InboxItem]) -> Result<Vec<Vec<KeyboardButton>>, String> {
    let [item] = items else { return Ok(Vec::new()) };
    let labels = item.toast.iter().flat_map(|toast| &toast.buttons).map(|button| button.label.clone());
    let (mut rows, mut stored) = (Vec::new(), Vec::new());
    for (index, label) in labels.enumerate().filter(|_| item.settlement().is_none()) {
        let callback_data = auth::new_code();
        let token = auth::hash(&callback_data);
        let user_id = item.user_id.clone();
        stored.push(NewButton { token, chat: Bot::chat(chat_id), user_id, notification_id: item.id, index });
        let text = compose::button_text(&label, || format!("Button {}", index + 1));
        rows.push(vec![KeyboardButton { text, callback_data }]);
    }
    if let Some(hub) = bot.hub.get().filter(|_| !stored.is_empty()) {
        let failed = |error| format!("the buttons could not be stored: {error}");
        hub.store.put_buttons(stored).await.map_err(failed)?;
    }
    Ok(rows)
}
