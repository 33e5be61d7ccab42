//! Messages of the outbox: notifications with their buttons, and messages of `notify` that quiet hours held.

use std::fmt;

use bellwire_core::NotificationId;
use bellwire_store::{AttemptOutcome, ChatMessage, DirectMessage, InboxItem, NewButton};

use super::api::KeyboardButton;
use super::bot::Bot;
use super::compose;
use super::outcome::{attempt_outcome, millis};
use super::parts::{self, Cause, Incomplete, Outgoing, Rest};
use super::target::chat_id;
use super::text::TextPart;
use crate::auth;
use crate::channels::{NoSlot, OutboundContent, OutboundMessage};

/// What a message says, and what an answer to it belongs to.
struct Composed {
    parts: Vec<TextPart>,
    content: Content,
    conversation_id: Option<String>,
    /// None = it has several.
    origin: Option<String>,
    buttons: Vec<Vec<KeyboardButton>>,
    /// The notification of the buttons.
    notification_id: Option<NotificationId>,
}

/// What an attempt that sends only some parts means.
enum Content {
    /// Whole notifications: those that were sent are done, and a later attempt composes the others again. For each part, the
    /// notifications that end in it.
    Notifications(Vec<Vec<NotificationId>>),
    /// One text, which a later attempt continues.
    Direct(Progress),
}

impl Content {
    /// How many parts earlier attempts have sent.
    fn sent_before(&self) -> usize {
        match self {
            Self::Notifications(_) => 0,
            Self::Direct(progress) => progress.parts,
        }
    }
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
        OutboundContent::Direct(item, direct) => match of_direct(&message, item, direct) {
            Ok(composed) => composed,
            Err(reason) => return AttemptOutcome::Refused { reason },
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
        parts: &composed.parts,
        reply_to: None,
        buttons: &composed.buttons,
        stored: Some(stored),
        sent_before: composed.content.sent_before(),
        rest: Rest::Later,
    };
    match parts::send(bot, &outgoing).await {
        Ok(_) => AttemptOutcome::Sent,
        Err(incomplete) => outcome(incomplete, composed.content, &message.target),
    }
}

fn of_notifications(message: &OutboundMessage, items: &[InboxItem], buttons: Vec<Vec<KeyboardButton>>) -> Composed {
    let first = items.first();
    let origin = first.map(|item| &item.origin).filter(|origin| items.iter().all(|item| item.origin == **origin));
    let (mut parts, mut ending) = (Vec::new(), Vec::new());
    for digest in compose::notifications(items, &message.titles) {
        parts.append(&mut digest.text.split());
        ending.resize(parts.len().saturating_sub(1), Vec::new());
        ending.push(digest.ids);
    }
    Composed {
        parts,
        content: Content::Notifications(ending),
        conversation_id: first.and_then(|item| item.conversation_id.clone()),
        origin: origin.cloned(),
        notification_id: first.map(|item| item.id).filter(|_| !buttons.is_empty()),
        buttons,
    }
}

/// The error says why it cannot be continued.
fn of_direct(message: &OutboundMessage, item: &InboxItem, direct: &DirectMessage) -> Result<Composed, String> {
    let text = compose::direct(&direct.origin, direct.subject.as_deref(), &direct.message);
    let text_hash = text_hash(&text.text);
    let progress = match message.progress.as_deref().map(Progress::parse) {
        None => Progress { parts: 0, text_hash },
        Some(progress) if progress.text_hash == text_hash => progress,
        Some(Progress { parts, .. }) => {
            return Err(format!("{parts} of its parts were delivered, and the text has changed since"));
        }
    };
    Ok(Composed {
        parts: text.split(),
        content: Content::Direct(progress),
        conversation_id: item.conversation_id.clone(),
        origin: Some(direct.origin.clone()),
        buttons: Vec::new(),
        notification_id: None,
    })
}

/// What was sent of a text. Another version of the hub may compose it differently; then its parts do not fit together.
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

fn outcome(incomplete: Incomplete, content: Content, target: &str) -> AttemptOutcome {
    let Incomplete { ids, parts, cause } = incomplete;
    let rest = match &cause {
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
    if ids.len() + content.sent_before() == 0 {
        return rest;
    }
    match content {
        Content::Notifications(ending) => {
            let sent = ending.into_iter().take(ids.len()).flatten().collect();
            let rest = Box::new(so_far(rest, ids.len(), parts));
            AttemptOutcome::Partial { sent, progress: None, rest }
        }
        Content::Direct(before) => {
            let progress = Progress { parts: before.parts + ids.len(), ..before };
            match so_far(rest, progress.parts, parts) {
                rest @ AttemptOutcome::TryAgain { .. } => {
                    let progress = Some(progress.to_string());
                    AttemptOutcome::Partial { sent: Vec::new(), progress, rest: Box::new(rest) }
                }
                // The rest cannot be sent again without sending a part of it twice.
                AttemptOutcome::Unknown { reason } => AttemptOutcome::Refused { reason },
                rest => rest,
            }
        }
    }
}

/// The outcome with a reason that says how many parts were delivered.
fn so_far(outcome: AttemptOutcome, delivered: usize, parts: usize) -> AttemptOutcome {
    let said = |reason: String| format!("{delivered} of {parts} parts were delivered: {reason}");
    match outcome {
        AttemptOutcome::TryAgain { reason, retry_after_ms } => {
            AttemptOutcome::TryAgain { reason: said(reason), retry_after_ms }
        }
        AttemptOutcome::Refused { reason } => AttemptOutcome::Refused { reason: said(reason) },
        AttemptOutcome::Unreachable { reason } => AttemptOutcome::Unreachable { reason: said(reason) },
        AttemptOutcome::Unknown { reason } => AttemptOutcome::Unknown { reason: said(reason) },
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
