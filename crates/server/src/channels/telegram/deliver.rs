//! Messages of the outbox: notifications with their buttons, and messages of `notify` that quiet hours held.

use std::time::Duration;

use bellwire_core::NotificationId;
use bellwire_core::person::without_addresses;
use bellwire_store::{AttemptOutcome, ChatMessage, InboxItem, NewButton};

use super::api::KeyboardButton;
use super::bot::{Bot, NoSlot};
use super::compose;
use super::outcome::{attempt_outcome, millis};
use super::parts::{self, Cause, Incomplete, Outgoing};
use super::target::chat_id;
use super::text::Text;
use crate::auth;
use crate::channels::{OutboundContent, OutboundMessage};

/// How long a message waits for its slot.
pub(super) const SLOT_WAIT_MAX: Duration = Duration::from_secs(20);

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
        wait_max: SLOT_WAIT_MAX,
    };
    match parts::send(bot, &outgoing).await {
        Ok(_) => AttemptOutcome::Sent,
        Err(incomplete) => outcome(incomplete, &message.target),
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

fn outcome(incomplete: Incomplete, target: &str) -> AttemptOutcome {
    let Incomplete { ids, parts, cause } = incomplete;
    if !ids.is_empty() {
        let (delivered, cause) = (ids.len(), without_addresses(&cause.to_string(), target));
        return AttemptOutcome::Refused { reason: format!("{delivered} of {parts} parts were delivered: {cause}") };
    }
    match cause {
        Cause::Blank => AttemptOutcome::Refused { reason: cause.to_string() },
        Cause::NoSlot(NoSlot::Stopping) => AttemptOutcome::Interrupted,
        Cause::NoSlot(NoSlot::Busy(wait)) => {
            AttemptOutcome::TryAgain { reason: cause.to_string(), retry_after_ms: Some(millis(wait)) }
        }
        Cause::Call(error) => attempt_outcome(&error, target),
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
