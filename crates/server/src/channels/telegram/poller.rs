//! The poller: one process at a time, by a lease. Updates are stored before Telegram is told to forget them.

use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{ChannelUpdate, StoreError};
use tokio::time::Instant;

use super::api::CallError;
use super::bot::Bot;
use super::{NAME, inbox, update};
use crate::auth;
use crate::channels::ChannelHub;

/// How long one poll waits for an update.
const POLL_WAIT: Duration = Duration::from_secs(25);
/// A lease is longer than the longest poll by this much.
const LEASE_MARGIN: Duration = Duration::from_secs(30);
/// How often a process without the lease asks for it.
const LEASE_INTERVAL: Duration = Duration::from_secs(5);
/// The pauses after an error: the first, doubled by each further one up to the last.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Why a round of polling ended early.
enum Trouble {
    Telegram(CallError),
    Store(StoreError),
    /// Another process has the lease.
    NoLease,
}

impl Trouble {
    /// The delay that Telegram asks for.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Telegram(error) => error.refusal(429)?.retry_after,
            Self::Store(_) | Self::NoLease => None,
        }
    }
}

/// The state between two polls.
struct Poller {
    bot: Arc<Bot>,
    hub: ChannelHub,
    /// This process, as the holder of the lease.
    holder: String,
    /// Confirms what was stored. 0 confirms nothing: after a start, Telegram sends again what it did not hear of, and the
    /// store knows it.
    offset: i64,
    /// Whether the webhook of an earlier configuration was removed.
    has_no_webhook: bool,
}

/// Polls until the hub stops.
pub(super) async fn run(bot: Arc<Bot>, hub: ChannelHub) {
    let mut stopping = hub.stopping.clone();
    let mut poller = Poller { bot, hub, holder: auth::new_code(), offset: 0, has_no_webhook: false };
    let mut pause = PAUSE_MIN;
    while !*stopping.borrow() {
        let round = tokio::select! {
            round = poller.round() => round,
            _ = stopping.changed() => break,
        };
        let wait = match round {
            Ok(()) => {
                pause = PAUSE_MIN;
                continue;
            }
            Err(Trouble::NoLease) => LEASE_INTERVAL,
            Err(trouble) => {
                let wait = trouble.retry_after().map_or(pause, |asked| asked.max(pause));
                pause = (pause * 2).min(PAUSE_MAX);
                poller.report(&trouble);
                wait
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stopping.changed() => {}
        }
    }
    let released = poller.hub.store.release_lease(poller.lease(), poller.holder.clone()).await;
    let _ = released.inspect_err(|error| tracing::debug!(%error, "the lease of the Telegram poller was not released"));
}

impl Poller {
    /// Handles what is stored, polls once, stores what came, and handles it.
    async fn round(&mut self) -> Result<(), Trouble> {
        let ttl = POLL_WAIT + self.bot.api.call_max() + LEASE_MARGIN;
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let fence = self.hub.store.take_lease(self.lease(), self.holder.clone(), ttl_ms).await;
        let fence = fence.map_err(Trouble::Store)?.ok_or(Trouble::NoLease)?;
        inbox::handle_stored(&self.bot, &self.hub).await.map_err(Trouble::Store)?;
        if !self.has_no_webhook {
            let deleted = self.bot.api.delete_webhook().await;
            self.bot.note(&deleted);
            deleted.map_err(Trouble::Telegram)?;
            self.has_no_webhook = true;
        }
        let asked_at = Instant::now();
        let came = self.bot.api.get_updates(self.offset, POLL_WAIT).await;
        self.bot.note(&came);
        let came = came.map_err(Trouble::Telegram)?;
        self.bot.note_receiving(None);
        let updates: Vec<ChannelUpdate> = came
            .iter()
            .filter_map(|body| Some(ChannelUpdate { id: update::id(body.get())?, body: body.get().to_owned() }))
            .collect();
        if updates.is_empty() {
            // A server that does not wait for updates, or sends what cannot be read, must not be asked all the time.
            tokio::time::sleep_until(asked_at + PAUSE_MIN).await;
        }
        let last = updates.iter().map(|update| update.id).max();
        let is_ours = self.hub.store.keep_updates(Bot::name(), Some((self.lease(), fence)), updates).await;
        if !is_ours.map_err(Trouble::Store)? {
            self.offset = 0;
            return Err(Trouble::NoLease);
        }
        self.offset = last.map_or(self.offset, |last| last + 1);
        inbox::handle_stored(&self.bot, &self.hub).await.map_err(Trouble::Store)
    }

    fn lease(&self) -> String {
        format!("{NAME} updates of bot {}", self.bot.api.bot_id())
    }

    fn report(&mut self, trouble: &Trouble) {
        match trouble {
            Trouble::Telegram(error) => {
                if let Some(refusal) = error.refusal(409) {
                    // Another process polls with the same token, or another program has set a webhook.
                    self.has_no_webhook = false;
                    let reason = format!(
                        "another program receives the updates of this bot ({}); stop it, or use a bot of its own",
                        refusal.description
                    );
                    self.bot.note_receiving(Some(reason));
                }
                tracing::warn!(%error, "polling Telegram failed; will retry");
            }
            Trouble::Store(error) => tracing::warn!(%error, "Telegram updates could not be stored; will retry"),
            Trouble::NoLease => {}
        }
    }
}
