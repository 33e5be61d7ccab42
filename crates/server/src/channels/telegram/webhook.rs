//! The webhook: Telegram calls the hub. A call is answered with 200 only after its update is stored.

use std::sync::Arc;
use std::time::Duration;

use bellwire_store::ChannelUpdate;
use subtle::ConstantTimeEq as _;

use super::bot::Bot;
use super::{NAME, inbox, update};
use crate::channels::{ChannelHub, WebhookAnswer, WebhookCall};

/// The header with the secret.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";
/// How often stored updates are looked for without a call, such as after an error of the store.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How often setting the webhook is tried.
const SET_INTERVAL: Duration = Duration::from_secs(30);

/// Sets the webhook, and handles stored updates until the hub stops.
pub(super) async fn run(bot: Arc<Bot>, hub: ChannelHub) {
    let mut stopping = hub.stopping.clone();
    tokio::select! {
        ((), ()) = async { tokio::join!(set(&bot, &hub), handle(&bot, &hub)) } => {}
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

/// Tells Telegram the address, until it accepts it.
async fn set(bot: &Bot, hub: &ChannelHub) {
    let url = format!("{}/{NAME}/webhook", hub.public_url);
    let secret = bot.webhook_secret.as_ref().map(|secret| secret.reveal()).unwrap_or_default();
    loop {
        let set = bot.api.set_webhook(&url, secret).await;
        bot.note(&set);
        match set {
            Ok(()) => {
                bot.note_receiving(None);
                return tracing::info!(url, "Telegram sends updates to this address");
            }
            Err(error) => {
                tracing::warn!(%error, url, "Telegram does not accept the webhook; will retry");
                bot.note_receiving(Some(format!("Telegram does not accept the webhook: {error}")));
            }
        }
        tokio::time::sleep(SET_INTERVAL).await;
    }
}

async fn handle(bot: &Arc<Bot>, hub: &ChannelHub) {
    let mut every = tokio::time::interval(CHECK_INTERVAL);
    loop {
        if let Err(error) = inbox::handle_stored(bot, hub).await {
            tracing::warn!(%error, "Telegram updates could not be handled; will retry");
            every.tick().await;
        }
        tokio::select! {
            () = bot.received.notified() => {}
            _ = every.tick() => {}
        }
    }
}

/// Stores the update of a call. The secret is compared in constant time.
pub(super) async fn receive(bot: &Bot, call: WebhookCall) -> WebhookAnswer {
    let (Some(secret), Some(hub)) = (&bot.webhook_secret, bot.hub.get()) else { return WebhookAnswer::NotFound };
    let given = call.headers.get(SECRET_HEADER).map(|value| value.as_bytes()).unwrap_or_default();
    if !bool::from(given.ct_eq(secret.reveal().as_bytes())) {
        tracing::warn!("a call of the Telegram webhook had a wrong secret");
        return WebhookAnswer::Unauthorized;
    }
    let body = String::from_utf8(call.body.to_vec()).unwrap_or_default();
    let Some(id) = update::id(&body) else { return WebhookAnswer::Invalid("is no update: update_id is missing") };
    let stored = hub.store.keep_updates(Bot::name(), None, vec![ChannelUpdate { id, body }]).await;
    match stored {
        Ok(_) => {
            bot.received.notify_one();
            WebhookAnswer::Taken
        }
        Err(error) => WebhookAnswer::Failed(error),
    }
}
