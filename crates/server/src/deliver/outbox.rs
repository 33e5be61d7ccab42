//! The worker that sends due deliveries: claims them, records the start of the attempt, sends, records the outcome.
//!
//! It decides nothing. The store decides which deliveries are due, which are skipped, and when to retry or give up; the
//! channel knows how to send. The start of an attempt is committed before the first byte is sent, so that after a crash
//! no mail is sent twice that may have arrived.

use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{AttemptEnd, AttemptOutcome, AttemptStart, Claim, Purpose, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::channels::{Channels, OutboundMessage};
use crate::{auth, clock};

/// How often the store is polled in case a signal was missed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often recording an outcome is tried: a short failure of the store must not lose the outcome of a sent mail.
const RECORD_ATTEMPTS_MAX: usize = 5;

/// The worker. Clones share the store and the channels.
#[derive(Clone)]
pub struct Outbox {
    store: Arc<dyn Store>,
    channels: Channels,
    concurrency: usize,
}

impl Outbox {
    /// A worker that sends through the configured channels, each within its own concurrency limit.
    pub fn new(store: Arc<dyn Store>, channels: Channels) -> Self {
        let concurrency = channels.configured().map(|channel| channel.sending().concurrency).sum();
        Self { store, channels, concurrency }
    }

    /// Sends until `stopping` is true; then it claims nothing more and finishes the attempts it has started.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        let mut changes = self.store.outbox_changes();
        let mut every = tokio::time::interval(POLL_INTERVAL);
        let mut sending = JoinSet::new();
        while !*stopping.borrow() {
            if self.begin(&mut sending).await > 0 {
                continue;
            }
            tokio::select! {
                Some(_) = sending.join_next() => {}
                _ = every.tick() => {}
                // A delivery was planned or released. An error means that the store is closed.
                rung = changes.changed() => if rung.is_err() { break },
                _ = stopping.changed() => {}
            }
        }
        while sending.join_next().await.is_some() {}
    }

    /// Sends the deliveries that are due now, waits for them, and returns the number of mails.
    pub async fn step(&self) -> usize {
        let mut sending = JoinSet::new();
        let begun = self.begin(&mut sending).await;
        while sending.join_next().await.is_some() {}
        begun
    }

    /// Claims and starts as many mails as the concurrency limit allows.
    async fn begin(&self, sending: &mut JoinSet<()>) -> usize {
        let free = self.concurrency.saturating_sub(sending.len());
        if free == 0 {
            return 0;
        }
        let claims = self.store.claim(free).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not claim due deliveries; will retry");
            Vec::new()
        });
        let begun = claims.len();
        for claim in claims {
            let outbox = self.clone();
            sending.spawn(async move { outbox.deliver(claim).await });
        }
        begun
    }

    async fn deliver(&self, claim: Claim) {
        let (mail_id, fence) = (claim.mail_id, claim.fence);
        let code = (claim.purpose == Purpose::Confirmation).then(new_code);
        let start = AttemptStart { mail_id, fence, code: code.as_deref().map(auth::hash) };
        match self.store.start(start).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%mail_id, %error, "could not record the start of a delivery attempt; the message will be claimed again");
                return;
            }
        }
        let channel = claim.channel.as_str();
        let outcome = match self.channels.get(channel) {
            Some(channel) => channel.deliver(OutboundMessage::new(claim, code)).await,
            None => {
                AttemptOutcome::TryAgain { reason: format!("the hub has no channel {channel}"), retry_after_ms: None }
            }
        };
        tracing::info!(%mail_id, channel, ?outcome, "delivery attempt finished");
        self.finish(AttemptEnd { mail_id, fence, outcome, jitter: u64::from_le_bytes(clock::random()) }).await;
    }

    async fn finish(&self, end: AttemptEnd) {
        for attempt in 1..=RECORD_ATTEMPTS_MAX {
            match self.store.finish(end.clone()).await {
                Ok(true) => return,
                Ok(false) => {
                    tracing::warn!(mail_id = %end.mail_id, "the outcome of a delivery attempt was ignored: its claim had expired");
                    return;
                }
                Err(error) => {
                    tracing::error!(mail_id = %end.mail_id, %error, attempt, "could not record the outcome of a delivery attempt");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }
}

/// A confirmation code: six digits, uniformly random.
fn new_code() -> String {
    format!("{:06}", u64::from_le_bytes(clock::random()) % 1_000_000)
}
