//! The channel: sends what the outbox and `notify` ask for.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::notify::{ChatThread, Intent};
use bellwire_core::person::{ChannelName, without_addresses};
use bellwire_store::{AttemptOutcome, ChatMessage, Grouping, InboxItem, NewButton};
use futures_util::future::BoxFuture;

use super::api::{Button, NewMessage};
use super::bot::Bot;
use super::outcome::{attempt_outcome, millis, notify_outcome};
use super::{NAME, compose, edits, poller, reaction, webhook};
use crate::auth;
use crate::channels::{
    Channel, ChannelError, ChannelHub, ChannelStatus, ChannelTask, NotifyDelivery, NotifyMessage, NotifyOutcome,
    NotifyTarget, Obstacle, OutboundContent, OutboundMessage, Sending, SettingsShape, TargetField, TargetKind,
    Verification, VerifiedField, WebhookAnswer, WebhookCall,
};
use crate::config::{TelegramConfig, TelegramMode};

/// How long a message of the outbox waits for its slot, and one of `notify`.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(20);
const NOTIFY_WAIT_MAX: Duration = Duration::from_secs(5);
/// How much longer than the interval of a chat a further part waits for its slot.
const NEXT_WAIT_MARGIN: Duration = Duration::from_secs(10);
/// How many parts a message has at most, for the lease of an attempt: the longest text is 16,000 characters, each of two
/// UTF-16 units, in parts that are at least half full.
const PARTS_MAX: u32 = 16;
/// How many messages are sent at once. Most wait for their slot.
const CONCURRENCY: usize = 16;

static SHAPE: SettingsShape = SettingsShape {
    display_name: "Telegram",
    description: "Telegram.",
    target: TargetField {
        name: "chat_id",
        description: "The id of the private chat with the bot.",
        kind: TargetKind::Integer,
        is_writable: false,
        example: "77",
        parse: |text| match chat_id(text) {
            Some(id) => Ok(id.to_string()),
            None => Err("is no id of a chat; write an integer".to_owned()),
        },
    },
    verified: VerifiedField {
        name: "paired",
        description: "Whether the person has sent a pairing code from this chat.",
    },
    verification: Verification::Pairing,
};

/// A Telegram bot.
pub struct TelegramChannel {
    /// None = Telegram is off.
    bot: Option<Arc<Bot>>,
}

impl TelegramChannel {
    /// Reads the files that the settings name.
    pub fn new(config: &TelegramConfig) -> Result<Self, ChannelError> {
        let bot = Bot::new(config).map_err(|reason| ChannelError { channel: NAME.to_owned(), reason })?;
        Ok(Self { bot: bot.map(Arc::new) })
    }
}

impl Channel for TelegramChannel {
    fn name(&self) -> ChannelName {
        Bot::name()
    }

    fn settings(&self) -> &SettingsShape {
        &SHAPE
    }

    fn sending(&self) -> Sending {
        let attempt_max = self.bot.as_ref().map(|bot| {
            let call_max = bot.api.call_max();
            SLOT_WAIT_MAX + call_max + (next_wait_max(bot) + call_max) * (PARTS_MAX - 1)
        });
        let attempt_max = attempt_max.unwrap_or_default();
        Sending { grouping: Grouping::ByConversation, concurrency: CONCURRENCY, attempt_max }
    }

    fn status(&self) -> ChannelStatus {
        match self.bot.as_ref().map(|bot| bot.failing()) {
            None => ChannelStatus::Off { fix: "set telegram.token_file".to_owned() },
            Some(Some(reason)) => ChannelStatus::Failing { reason },
            Some(None) => ChannelStatus::Ready,
        }
    }

    fn start(&self, hub: ChannelHub) -> Vec<ChannelTask> {
        let Some(bot) = &self.bot else { return Vec::new() };
        // Only the first call counts.
        let _ = bot.hub.set(hub.clone());
        let receive: BoxFuture<'static, ()> = match bot.mode {
            TelegramMode::Poll => Box::pin(poller::run(bot.clone(), hub.clone())),
            TelegramMode::Webhook => Box::pin(webhook::run(bot.clone(), hub.clone())),
        };
        let edit = Box::pin(edits::run(bot.clone(), hub));
        vec![
            ChannelTask { name: "the receiver of Telegram updates", run: receive },
            ChannelTask { name: "the editor of Telegram messages", run: edit },
        ]
    }

    fn deliver(&self, message: OutboundMessage) -> BoxFuture<'_, AttemptOutcome> {
        Box::pin(async move {
            match &self.bot {
                Some(bot) => deliver(bot, message).await,
                None => AttemptOutcome::TryAgain { reason: off(), retry_after_ms: None },
            }
        })
    }

    fn resolve(&self, request: &NotifyDelivery) -> Result<NotifyTarget, String> {
        if self.bot.is_none() {
            return Err(off());
        }
        let emoji = request.emoji.as_deref().unwrap_or_default();
        match request.intent {
            Intent::Send => {
                let recipient = request.recipient.as_deref().ok_or("Missing required 'recipient' parameter")?;
                let chat = chat_id(recipient).ok_or_else(|| {
                    "Invalid recipient: on Telegram it is the id of a chat, an integer such as 123456789".to_owned()
                })?;
                Ok(NotifyTarget { target: chat.to_string(), thread: None, reaction: None })
            }
            Intent::Reply => thread_target(request, None),
            Intent::React => thread_target(request, Some(reaction::normalized(emoji)?.to_owned())),
        }
    }

    fn notify(&self, message: NotifyMessage) -> BoxFuture<'_, NotifyOutcome> {
        Box::pin(async move {
            match &self.bot {
                Some(bot) => notify(bot, message).await,
                None => unavailable(off()),
            }
        })
    }

    fn pairing_link(&self, code: String) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let username = self.bot.as_ref()?.username().await?;
            Some(format!("https://t.me/{username}?start={code}"))
        })
    }

    fn receive(&self, call: WebhookCall) -> BoxFuture<'_, WebhookAnswer> {
        Box::pin(async move {
            match &self.bot {
                Some(bot) => webhook::receive(bot, call).await,
                None => WebhookAnswer::NotFound,
            }
        })
    }
}

/// Sends the parts of a message, in order. Buttons are under the last one.
async fn deliver(bot: &Bot, message: OutboundMessage) -> AttemptOutcome {
    let (Some(chat_id), OutboundContent::Notifications(items)) = (chat_id(&message.target), &message.content) else {
        return AttemptOutcome::Refused { reason: "this is no message for a chat".to_owned() };
    };
    let parts = compose::notifications(items, &message.titles).split();
    let (buttons, notification_id) = match items.as_slice() {
        [item] => match put_buttons(bot, chat_id, item).await {
            Ok(buttons) => (buttons, item.toast.as_ref().map(|_| item.id)),
            Err(reason) => return AttemptOutcome::TryAgain { reason, retry_after_ms: None },
        },
        _ => (Vec::new(), None),
    };
    let notification_id = notification_id.filter(|_| !buttons.is_empty());
    let template = ChatMessage {
        chat: Bot::chat(chat_id),
        message_id: 0,
        user_id: message.user_id,
        conversation_id: items.first().and_then(|item| item.conversation_id.clone()),
        origin: single_origin(items),
        notification_id: None,
        at: bot.now(),
    };
    let count = parts.len();
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == count;
        if let Err(wait) = bot.pace.slot(chat_id, if index == 0 { SLOT_WAIT_MAX } else { next_wait_max(bot) }).await
            && index == 0
        {
            let reason = "the chat gets many messages; this one waits for its turn".to_owned();
            return AttemptOutcome::TryAgain { reason, retry_after_ms: Some(millis(wait)) };
        }
        let buttons = if is_last { buttons.as_slice() } else { &[] };
        match bot.send(&NewMessage { chat_id, part, reply_to: None, buttons }).await {
            Ok(sent) => {
                let notification_id = notification_id.filter(|_| is_last);
                let message_id = sent.message_id;
                bot.remember(ChatMessage { message_id, notification_id, ..template.clone() }).await;
            }
            Err(error) if index == 0 => return attempt_outcome(&error, &message.target),
            Err(error) => {
                let error = without_addresses(&error.to_string(), &message.target);
                return AttemptOutcome::Refused { reason: format!("{index} of {count} parts were delivered: {error}") };
            }
        }
    }
    match count {
        0 => AttemptOutcome::Refused { reason: "the text is blank".to_owned() },
        _ => AttemptOutcome::Sent,
    }
}

/// Makes the buttons of a toast and stores the hashes of their tokens, before the message is sent.
async fn put_buttons(bot: &Bot, chat_id: i64, item: &InboxItem) -> Result<Vec<Vec<Button>>, String> {
    let labels = item.toast.iter().flat_map(|toast| &toast.buttons).map(|button| button.label.clone());
    let (mut rows, mut stored) = (Vec::new(), Vec::new());
    for (index, text) in labels.enumerate().filter(|_| item.settlement().is_none()) {
        let callback_data = auth::new_code();
        let token = auth::hash(&callback_data);
        let user_id = item.user_id.clone();
        stored.push(NewButton { token, chat: Bot::chat(chat_id), user_id, notification_id: item.id, index });
        rows.push(vec![Button { text, callback_data }]);
    }
    if let Some(hub) = bot.hub.get().filter(|_| !stored.is_empty()) {
        let failed = |error| format!("the buttons could not be stored: {error}");
        hub.store.put_buttons(stored).await.map_err(failed)?;
    }
    Ok(rows)
}

fn single_origin(items: &[InboxItem]) -> Option<String> {
    let first = &items.first()?.origin;
    items.iter().all(|item| item.origin == *first).then(|| first.clone())
}

async fn notify(bot: &Bot, message: NotifyMessage) -> NotifyOutcome {
    let target = &message.target;
    let thread = target.thread.as_deref().and_then(ChatThread::parse);
    let Some(chat_id) = chat_id(&target.target) else {
        return NotifyOutcome::Refused { reason: "the target is no chat".to_owned() };
    };
    if let Err(wait) = bot.pace.slot(chat_id, NOTIFY_WAIT_MAX).await {
        let reason = "this chat gets too many messages at once".to_owned();
        return NotifyOutcome::TryAgain { obstacle: Obstacle::Overloaded, reason, retry_after: Some(wait) };
    }
    match (message.intent, thread) {
        (Intent::React, Some(thread)) => react(bot, thread, target).await,
        (Intent::Send, None) | (Intent::Reply, Some(_)) => send_parts(bot, chat_id, thread, &message).await,
        // A reply without its thread must not become a message elsewhere.
        _ => NotifyOutcome::Refused { reason: "the thread of the message is missing".to_owned() },
    }
}

async fn react(bot: &Bot, thread: ChatThread, target: &NotifyTarget) -> NotifyOutcome {
    let emoji = target.reaction.as_deref().unwrap_or_default();
    let reacted = bot.api.set_reaction(thread.chat_id, thread.message_id, emoji).await;
    bot.note(&reacted);
    match reacted {
        Ok(()) => NotifyOutcome::Delivered { delivery_id: thread.message_id.to_string() },
        Err(error) => {
            bot.obey(thread.chat_id, &error);
            notify_outcome(&error, &target.target)
        }
    }
}

/// Sends the parts of a text; the slot of the first is taken. The first one answers the thread.
async fn send_parts(bot: &Bot, chat_id: i64, thread: Option<ChatThread>, message: &NotifyMessage) -> NotifyOutcome {
    let text = message.message.as_deref().unwrap_or_default();
    let parts = compose::direct(&message.origin, message.subject.as_deref(), text).split();
    let mut delivery_id: Option<String> = None;
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            // The message has begun: it waits for as long as it takes.
            let _ = bot.pace.slot(chat_id, next_wait_max(bot)).await;
        }
        let reply_to = thread.filter(|_| index == 0).map(|thread| thread.message_id);
        match (bot.send(&NewMessage { chat_id, part, reply_to, buttons: &[] }).await, &delivery_id) {
            (Ok(sent), _) => {
                remember_direct(bot, chat_id, thread, message, sent.message_id).await;
                delivery_id.get_or_insert_with(|| sent.message_id.to_string());
            }
            (Err(error), None) => return notify_outcome(&error, &message.target.target),
            (Err(error), Some(first)) => {
                let reason = without_addresses(&error.to_string(), &message.target.target);
                let (delivery_id, parts) = (first.clone(), parts.len());
                return NotifyOutcome::Partial { delivery_id, delivered: index, parts, reason };
            }
        }
    }
    match delivery_id {
        Some(delivery_id) => NotifyOutcome::Delivered { delivery_id },
        None => NotifyOutcome::Refused { reason: "the text is blank".to_owned() },
    }
}

/// Stores a message of `notify`. A reply belongs to the conversation of what it answers.
async fn remember_direct(
    bot: &Bot,
    chat_id: i64,
    thread: Option<ChatThread>,
    message: &NotifyMessage,
    message_id: i64,
) {
    let (Some(hub), Some(user_id)) = (bot.hub.get(), message.user_id.clone()) else { return };
    let answered = match thread {
        Some(thread) => hub.store.chat_message(Bot::chat(chat_id), thread.message_id).await.ok().flatten(),
        None => None,
    };
    let conversation_id = answered.and_then(|answered| answered.conversation_id);
    bot.remember(ChatMessage {
        chat: Bot::chat(chat_id),
        message_id,
        user_id,
        conversation_id,
        origin: Some(message.origin.clone()),
        notification_id: None,
        at: bot.now(),
    })
    .await;
}

/// The target of a reply or a reaction: exactly its thread.
fn thread_target(request: &NotifyDelivery, reaction: Option<String>) -> Result<NotifyTarget, String> {
    let context = request.request_context.as_ref().ok_or("Missing required 'request_context' parameter")?;
    let thread = context.thread().map_err(|missing| missing.to_string())?;
    let Some(parsed) = ChatThread::parse(thread) else {
        return Err("Invalid request_context field 'source_thread_identity': on Telegram it is \
                    <chat_id>:<message_id>, two integers such as 123456789:42"
            .to_owned());
    };
    Ok(NotifyTarget { target: parsed.chat_id.to_string(), thread: Some(parsed.to_string()), reaction })
}

/// How long a further part of a message waits for its slot.
fn next_wait_max(bot: &Bot) -> Duration {
    bot.pace.chat_interval() + NEXT_WAIT_MARGIN
}

/// A chat id in the one form in which it is written.
fn chat_id(text: &str) -> Option<i64> {
    let id: i64 = text.trim().parse().ok()?;
    (id != 0 && id.to_string() == text.trim()).then_some(id)
}

/// Why nothing is sent while Telegram is off.
fn off() -> String {
    "Telegram is not configured on this hub; its operator has to set telegram.token_file first".to_owned()
}

fn unavailable(reason: String) -> NotifyOutcome {
    NotifyOutcome::TryAgain { obstacle: Obstacle::Unavailable, reason, retry_after: None }
}
