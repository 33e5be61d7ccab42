//! Edits messages whose notification was settled, so that they show what was done, wherever it was done. An edit is
//! repeated until it succeeds: doing it twice changes nothing.

use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{EditEnd, MessageEdit};

use super::api::CallError;
use super::bot::Bot;
use super::compose;
use super::outcome::millis;
use crate::channels::ChannelHub;
use crate::clock;

/// How often the store is asked: edits that are tried again send no signal.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How many edits are read at once.
const EDITS_MAX: usize = 20;
/// How long an edit waits for its slot.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(10);

/// Edits until the hub stops.
pub(super) async fn run(bot: Arc<Bot>, hub: ChannelHub) {
    let mut stopping = hub.stopping.clone();
    let mut changes = hub.store.edit_changes();
    let mut every = tokio::time::interval(POLL_INTERVAL);
    while !*stopping.borrow() {
        changes.mark_unchanged();
        let edits = hub.store.due_edits(Bot::name(), EDITS_MAX).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not read which Telegram messages are to be edited; will retry");
            Vec::new()
        });
        let count = edits.len();
        for edit in edits {
            let end = tokio::select! {
                end = apply(&bot, &edit) => end,
                _ = stopping.changed() => break,
            };
            let (chat, message_id) = (edit.message.chat, edit.message.message_id);
            if let Err(error) = hub.store.finish_edit(chat, message_id, end).await {
                tracing::warn!(%error, "could not record that a Telegram message was edited; it is edited again");
            }
        }
        if count == EDITS_MAX {
            continue;
        }
        tokio::select! {
            _ = every.tick() => {}
            changed = changes.changed() => if changed.is_err() { break },
            _ = stopping.changed() => {}
        }
    }
}

async fn apply(bot: &Bot, edit: &MessageEdit) -> EditEnd {
    let item = edit.item.as_ref();
    let settled = item.and_then(|item| Some(compose::settled(item, &item.settlement()?)));
    let parts = settled.map(|text| text.split()).unwrap_or_default();
    // A notification that is gone or restored has nothing to show.
    let (Some(part), Ok(chat_id)) = (parts.first(), edit.message.chat.target.parse()) else { return EditEnd::Done };
    let later = |retry_after: Option<Duration>| EditEnd::TryAgain {
        retry_after_ms: retry_after.map(millis),
        jitter: u64::from_le_bytes(clock::random()),
    };
    if let Err(wait) = bot.pace.slot(chat_id, SLOT_WAIT_MAX).await {
        return later(Some(wait));
    }
    match bot.replace(chat_id, edit.message.message_id, part).await {
        Ok(()) => EditEnd::Done,
        Err(CallError::Refused(refusal)) if refusal.code != 429 && refusal.code < 500 => {
            tracing::info!(code = refusal.code, "Telegram does not let a message be edited");
            EditEnd::Done
        }
        Err(error) => {
            tracing::warn!(%error, "a Telegram message was not edited; will retry");
            later(error.refusal(429).and_then(|refusal| refusal.retry_after))
        }
    }
}
