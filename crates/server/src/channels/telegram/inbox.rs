//! Handles stored updates: lets the store decide, and tells the person. An update counts as handled when the store says so;
//! what is said after that may be lost in a crash, and is not repeated.

use std::sync::Arc;

use bellwire_store::{ChannelUpdate, ErrorKind, InboxQuery, InboxState, StoreError, UpdateAction, UpdateCommand};
use bellwire_store::{UpdateOutcome, UpdateOutcome as Outcome};

use super::bot::Bot;
use super::replies;
use super::text::Text;
use super::update::{AnswerTo, Understood, understand};
use crate::channels::ChannelHub;

/// How many updates are read at once.
const UPDATES_MAX: usize = 50;
/// How many notifications are searched for senders.
const SENDERS_OF: usize = 100;

/// Handles every stored update, oldest first. An error means that the store does not work: the rest waits.
pub(super) async fn handle_stored(bot: &Arc<Bot>, hub: &ChannelHub) -> Result<(), StoreError> {
    loop {
        let updates = hub.store.waiting_updates(Bot::name(), UPDATES_MAX).await?;
        if updates.is_empty() {
            return Ok(());
        }
        for update in updates {
            handle(bot, hub, update).await?;
        }
    }
}

async fn handle(bot: &Arc<Bot>, hub: &ChannelHub, update: ChannelUpdate) -> Result<(), StoreError> {
    let Understood { from, action, answer_to } = understand(&update.body, bot.api.bot_id());
    let (channel, update_id) = (Bot::name(), update.id);
    let command = UpdateCommand { channel: channel.clone(), update_id, from: from.clone(), action };
    match hub.store.handle_update(command).await {
        Ok(outcome) => {
            record(update_id, &outcome);
            answer(bot, hub, outcome, answer_to).await;
            Ok(())
        }
        Err(error) if matches!(error.kind, ErrorKind::Retry | ErrorKind::NoSpace | ErrorKind::Broken) => Err(error),
        // It would fail again. The person learns that nothing was done.
        Err(error) => {
            tracing::warn!(update_id, %error, "a Telegram update was refused");
            let action = UpdateAction::Ignore("refused");
            hub.store.handle_update(UpdateCommand { channel, update_id, from, action }).await?;
            refuse(bot, answer_to, error.kind).await;
            Ok(())
        }
    }
}

/// Logs the outcome, without texts and chats.
fn record(update_id: i64, outcome: &UpdateOutcome) {
    let name = outcome.as_str();
    match outcome {
        Outcome::WrongCode { .. } | Outcome::TooManyCodes { .. } | Outcome::UnknownButton | Outcome::UsedButton => {
            tracing::warn!(update_id, outcome = name, "a Telegram update was refused");
        }
        _ => tracing::info!(update_id, outcome = name, "a Telegram update was handled"),
    }
}

/// Says what is to be said, in a task of its own, so that a slow chat does not delay the updates of others.
async fn answer(bot: &Arc<Bot>, hub: &ChannelHub, outcome: UpdateOutcome, answer_to: AnswerTo) {
    let origins = match &outcome {
        Outcome::MutedOrigins { user_id, .. } => senders(hub, user_id).await,
        _ => Vec::new(),
    };
    // Strangers must not take the places of connected people: beyond their share they get no answer.
    let stranger_permit = match outcome {
        Outcome::Stranger { .. } | Outcome::WrongCode { .. } | Outcome::TooManyCodes { .. } => {
            let Ok(permit) = bot.stranger_answers.clone().try_acquire_owned() else { return };
            Some(permit)
        }
        _ => None,
    };
    let bot = bot.clone();
    tokio::spawn(async move {
        let _stranger_permit = stranger_permit;
        let Ok(_permit) = bot.answers.acquire().await else { return };
        tell(&bot, &outcome, &answer_to, &origins).await;
    });
}

async fn tell(bot: &Bot, outcome: &UpdateOutcome, answer_to: &AnswerTo, origins: &[String]) {
    if let Some(query_id) = &answer_to.query_id {
        // An old query cannot be answered any more; the client has stopped waiting.
        let answered = bot.api.answer_query(query_id, &replies::query(outcome)).await;
        let _ = answered.inspect_err(|error| tracing::debug!(%error, "a pressed button was not answered"));
    }
    if let (Outcome::Sent { title, .. }, Some(chat_id), Some(message_id)) =
        (outcome, answer_to.chat_id, answer_to.message_id)
    {
        let parts = Text::plain(&replies::sent_to(title)).split();
        if let Some(part) = parts.first() {
            let edited = bot.replace(chat_id, message_id, part).await;
            let _ = edited.inspect_err(|error| tracing::warn!(%error, "a question was not edited"));
        }
    }
    let Some(chat_id) = answer_to.chat_id else { return };
    if let Some(text) = replies::text(outcome, origins) {
        let buttons = match outcome {
            Outcome::Choose { titles } => replies::choices(titles, &answer_to.choices),
            _ => Vec::new(),
        };
        bot.say(chat_id, &Text::plain(&text), &buttons).await;
    }
    if let Outcome::Paired { replaced: Some(earlier), .. } = outcome
        && let Ok(earlier) = earlier.parse()
    {
        bot.say(earlier, &Text::plain(replies::REPLACED), &[]).await;
    }
}

async fn refuse(bot: &Arc<Bot>, answer_to: AnswerTo, kind: ErrorKind) {
    let bot = bot.clone();
    tokio::spawn(async move {
        let Ok(_permit) = bot.answers.acquire().await else { return };
        match (&answer_to.query_id, answer_to.chat_id) {
            (Some(query_id), _) => drop(bot.api.answer_query(query_id, replies::failure(kind)).await),
            (None, Some(chat_id)) => {
                bot.say(chat_id, &Text::plain(replies::failure(kind)), &[]).await;
            }
            (None, None) => {}
        }
    });
}

/// The origins of the person's latest notifications, the latest first.
async fn senders(hub: &ChannelHub, user_id: &str) -> Vec<String> {
    let query = InboxQuery { state: InboxState::All, item_type: None, before: None, limit: SENDERS_OF };
    let items = hub.store.inbox(user_id.to_owned(), query).await.map(|(items, _)| items).unwrap_or_default();
    let mut origins: Vec<String> = Vec::new();
    for item in items {
        if !origins.contains(&item.origin) {
            origins.push(item.origin);
        }
    }
    origins
}
