//! Messages of `notify`: one synchronous attempt to send, reply or react.

use bellwire_core::notify::{ChatThread, Intent};
use bellwire_core::person::without_addresses;
use bellwire_store::ChatMessage;

use super::bot::Bot;
use super::compose;
use super::outcome::notify_outcome;
use super::parts::{self, Cause, Incomplete, Outgoing, Rest};
use super::target::chat_id;
use crate::channels::{NotifyMessage, NotifyOutcome, NotifyTarget};

/// Makes one attempt.
pub(super) async fn notify(bot: &Bot, message: NotifyMessage) -> NotifyOutcome {
    let thread = message.target.thread.as_deref().and_then(ChatThread::parse);
    let Some(chat_id) = chat_id(&message.target.target) else {
        return NotifyOutcome::Refused { reason: "the target is no chat".to_owned() };
    };
    match (message.intent, thread) {
        (Intent::React, Some(thread)) => react(bot, thread, &message.target).await,
        (Intent::Send, None) | (Intent::Reply, Some(_)) => send(bot, chat_id, thread, &message).await,
        // A reply without its thread must not become a message elsewhere.
        _ => NotifyOutcome::Refused { reason: "the thread of the message is missing".to_owned() },
    }
}

async fn react(bot: &Bot, thread: ChatThread, target: &NotifyTarget) -> NotifyOutcome {
    let emoji = target.reaction.as_deref().unwrap_or_default();
    let reacted = bot.api.set_reaction(thread.chat_id, thread.message_id, emoji).await;
    bot.note(&reacted);
    match reacted {
        Ok(()) => NotifyOutcome::delivered(thread.message_id.to_string()),
        Err(error) => {
            bot.obey(thread.chat_id, &error);
            notify_outcome(&error, &target.target)
        }
    }
}

/// Sends a text; its first part answers the thread.
async fn send(bot: &Bot, chat_id: i64, thread: Option<ChatThread>, message: &NotifyMessage) -> NotifyOutcome {
    let text = message.message.as_deref().unwrap_or_default();
    let outgoing = Outgoing {
        chat_id,
        parts: &compose::direct(&message.origin, message.subject.as_deref(), text).split(),
        reply_to: thread.map(|thread| thread.message_id),
        buttons: &[],
        stored: stored(bot, chat_id, message),
        sent_before: 0,
        rest: Rest::Now,
    };
    match parts::send(bot, &outgoing).await {
        Ok(ids) => delivered(&ids),
        Err(incomplete) => outcome(incomplete, &message.target.target),
    }
}

fn outcome(incomplete: Incomplete, target: &str) -> NotifyOutcome {
    let Incomplete { ids, parts, cause } = incomplete;
    match (ids.split_first(), cause) {
        (Some((first, further)), cause) => {
            let reason = without_addresses(&cause.to_string(), target);
            let (delivery_id, further_parts) = (first.to_string(), texts(further));
            NotifyOutcome::Partial { delivery_id, further_parts, parts, reason }
        }
        (None, cause @ (Cause::Blank | Cause::NoSlot(_))) => NotifyOutcome::Refused { reason: cause.to_string() },
        (None, Cause::Call(error)) => notify_outcome(&error, target),
    }
}

/// A text whose parts have these ids.
fn delivered(ids: &[i64]) -> NotifyOutcome {
    let (first, further) = ids.split_first().unwrap_or((&0, &[]));
    NotifyOutcome::Delivered { delivery_id: first.to_string(), further_parts: texts(further) }
}

fn texts(ids: &[i64]) -> Vec<String> {
    ids.iter().map(i64::to_string).collect()
}

/// Stores the parts of a message that a Messenger elsewhere has sent. The id of a reaction is that of the person's message.
pub(super) async fn remember(bot: &Bot, message: &NotifyMessage, ids: &[String]) {
    let Some(chat_id) = chat_id(&message.target.target).filter(|_| message.intent != Intent::React) else { return };
    let Some(stored) = stored(bot, chat_id, message) else { return };
    for message_id in ids.iter().filter_map(|id| id.parse().ok()) {
        bot.remember(ChatMessage { message_id, ..stored.clone() }).await;
    }
}

/// What is stored about the message; none = the chat belongs to no person.
fn stored(bot: &Bot, chat_id: i64, message: &NotifyMessage) -> Option<ChatMessage> {
    Some(ChatMessage {
        chat: Bot::chat(chat_id),
        message_id: 0,
        user_id: message.user_id.clone()?,
        conversation_id: message.conversation_id.clone(),
        origin: Some(message.origin.clone()),
        notification_id: None,
        at: bot.now(),
    })
}
