//! Sends what is due: claims letters, records that an attempt begins, sends, records what became of it.
//!
//! It decides nothing. What is due, what is still wanted, when to try again and when to stop is the store's; how a letter
//! is sent is the channel's. That an attempt begins is on disk before the first byte leaves, so that after a crash
//! nothing is sent twice that may have arrived.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{AttemptEnd, AttemptOutcome, AttemptStart, Claim, Purpose, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{auth, clock};

/// How often it looks for what is due; quiet hours end and retries come up by the clock.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often an outcome that could not be written down is tried again: what was sent must not be lost for a hiccup.
const RECORD_ATTEMPTS_MAX: usize = 5;

/// Sends one letter and says what is known afterwards. The code is there for a letter that confirms an address.
pub type SendFn =
    Arc<dyn Fn(Claim, Option<String>) -> Pin<Box<dyn Future<Output = AttemptOutcome> + Send>> + Send + Sync>;

/// The worker.
#[derive(Clone)]
pub struct Outbox {
    store: Arc<dyn Store>,
    send: SendFn,
    concurrency: usize,
}

impl Outbox {
    /// A worker that sends by this way, so many letters at once.
    pub fn new(store: Arc<dyn Store>, send: SendFn, concurrency: usize) -> Self {
        Self { store, send, concurrency }
    }

    /// Sends until it is told to stop; then it finishes what it began and takes no more.
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
                // A delivery was planned or given back; where nothing rings any more the store is closed.
                rung = changes.changed() => if rung.is_err() { break },
                _ = stopping.changed() => {}
            }
        }
        while sending.join_next().await.is_some() {}
    }

    /// Sends what is due now and waits for it; how many letters that were.
    pub async fn step(&self) -> usize {
        let mut sending = JoinSet::new();
        let begun = self.begin(&mut sending).await;
        while sending.join_next().await.is_some() {}
        begun
    }

    /// Begins as many letters as there is room for.
    async fn begin(&self, sending: &mut JoinSet<()>) -> usize {
        let room = self.concurrency.saturating_sub(sending.len());
        if room == 0 {
            return 0;
        }
        let claims = self.store.claim(room).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the outbox could not be looked at; it will be again");
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
        let (letter_id, fence) = (claim.letter_id, claim.fence);
        let code = (claim.purpose == Purpose::Confirmation).then(new_code);
        let letter = AttemptStart { letter_id, fence, code: code.as_deref().map(auth::hash) };
        match self.store.start(letter).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%letter_id, %error, "a letter was not begun; it will be claimed again");
                return;
            }
        }
        let outcome = (self.send)(claim, code).await;
        tracing::info!(%letter_id, ?outcome, "a letter was tried");
        self.finish(AttemptEnd { letter_id, fence, outcome, jitter: u64::from_le_bytes(clock::random()) }).await;
    }

    async fn finish(&self, finish: AttemptEnd) {
        for attempt in 1..=RECORD_ATTEMPTS_MAX {
            match self.store.finish(finish.clone()).await {
                Ok(true) => return,
                Ok(false) => {
                    tracing::warn!(letter_id = %finish.letter_id, "a letter's outcome came too late to count");
                    return;
                }
                Err(error) => {
                    tracing::error!(letter_id = %finish.letter_id, %error, attempt, "an outcome could not be kept");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }
}

/// A code a person can type: six digits, each as likely as any other.
fn new_code() -> String {
    format!("{:06}", u64::from_le_bytes(clock::random()) % 1_000_000)
}
