//! The worker that sends due deliveries: claims them, waits for a slot, records the start of the attempt, sends, records the
//! outcome.
//!
//! It decides nothing. The store decides which deliveries are due, which are skipped, and when to retry or give up; the
//! channel knows how to send. The start of an attempt is committed before the first byte is sent, so that after a crash
//! no message is sent twice that may have arrived.

use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{AttemptEnd, AttemptOutcome, AttemptStart, Claim, Purpose, Store};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::channels::{Channel, Channels, NoSlot, OutboundMessage};
use crate::{auth, clock};

/// How often the store is polled in case a signal was missed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often recording an outcome is tried: a short failure of the store must not lose the outcome of a sent message.
const RECORD_ATTEMPTS_MAX: usize = 5;

/// How long a message waits for its slot; less than the lease of its claim.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(20);

/// The worker. Clones share the store and the channels.
#[derive(Clone)]
pub struct Outbox {
    store: Arc<dyn Store>,
    channels: Channels,
}

impl Outbox {
    /// A worker that sends through the configured channels.
    pub fn new(store: Arc<dyn Store>, channels: Channels) -> Self {
        Self { store, channels }
    }

    /// Sends until `stopping` is true; then it claims nothing more and finishes the attempts it has started. The channels do
    /// not wait for each other.
    pub async fn run(self, stopping: watch::Receiver<bool>) {
        let sending = self.channels.configured().map(|channel| self.send_on(&**channel, stopping.clone()));
        join_all(sending).await;
    }

    async fn send_on(&self, channel: &dyn Channel, mut stopping: watch::Receiver<bool>) {
        let mut changes = self.store.outbox_changes();
        let mut every = tokio::time::interval(POLL_INTERVAL);
        let mut sending = JoinSet::new();
        while !*stopping.borrow() {
            if self.begin(channel, &mut sending).await > 0 {
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

    /// Sends the deliveries that are due now, waits for them, and returns the number of messages.
    pub async fn step(&self) -> usize {
        let mut begun = 0;
        let mut sending = JoinSet::new();
        for channel in self.channels.configured() {
            let mut of_channel = JoinSet::new();
            begun += self.begin(&**channel, &mut of_channel).await;
            sending.spawn(of_channel.join_all());
        }
        while sending.join_next().await.is_some() {}
        begun
    }

    /// Claims and starts as many messages as the channel's concurrency limit allows.
    async fn begin(&self, channel: &dyn Channel, sending: &mut JoinSet<()>) -> usize {
        let free = channel.sending().concurrency.max(1).saturating_sub(sending.len());
        if free == 0 {
            return 0;
        }
        let claims = self.store.claim(channel.name(), free).await.unwrap_or_else(|error| {
            tracing::warn!(%error, channel = %channel.name(), "could not claim due deliveries; will retry");
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
        let (message_id, fence, channel) = (claim.message_id, claim.fence, claim.channel.clone());
        let end = async |outcome| {
            tracing::info!(%message_id, %channel, ?outcome, "delivery attempt finished");
            self.finish(AttemptEnd { message_id, fence, outcome, jitter: u64::from_le_bytes(clock::random()) }).await;
        };
        let Some(channel) = self.channels.get(channel.as_str()) else { return };
        if let Err(no_slot) = channel.slot(&claim.target, SLOT_WAIT_MAX).await {
            return end(not_started(&no_slot)).await;
        }
        let code = (claim.purpose == Purpose::Confirmation).then(new_code);
        let start = AttemptStart { message_id, fence, code: code.as_deref().map(auth::hash) };
        match self.store.start(start).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%message_id, %error, "could not record the start of a delivery attempt; the message will be claimed again");
                return;
            }
        }
        end(channel.deliver(OutboundMessage::new(claim, code)).await).await;
    }

    async fn finish(&self, end: AttemptEnd) {
        for attempt in 1..=RECORD_ATTEMPTS_MAX {
            match self.store.finish(end.clone()).await {
                Ok(true) => return,
                Ok(false) => {
                    tracing::warn!(message_id = %end.message_id, "the outcome of a delivery attempt was ignored: its claim had expired");
                    return;
                }
                Err(error) => {
                    tracing::error!(message_id = %end.message_id, %error, attempt, "could not record the outcome of a delivery attempt");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }
}

fn not_started(no_slot: &NoSlot) -> AttemptOutcome {
    let retry_after_ms = match no_slot {
        NoSlot::Busy(wait) => u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        NoSlot::Stopping => 0,
    };
    AttemptOutcome::NotStarted { reason: no_slot.to_string(), retry_after_ms }
}

/// A confirmation code: six digits, uniformly random.
fn new_code() -> String {
    format!("{:06}", u64::from_le_bytes(clock::random()) % 1_000_000)
}
