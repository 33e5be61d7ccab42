//! Sends what is due: claims letters, records that an attempt begins, sends, records what became of it.
//!
//! It decides nothing. What is due, what is still wanted, when to try again and when to stop is the store's; how a letter
//! is sent is the channel's. That an attempt begins is on disk before the first byte leaves, so that after a crash
//! nothing is sent twice that may have arrived.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{Claim, Finish, Letter, Outcome, Purpose, Store};
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;

use crate::{auth, clock};

/// How often it looks for what is due; quiet hours end and retries come up by the clock.
const LOOK: Duration = Duration::from_secs(1);
/// How many letters are sent at once.
const AT_ONCE: usize = 8;
/// How often an outcome that could not be written down is tried again: what was sent must not be lost for a hiccup.
const WRITES: usize = 5;

/// Sends one letter and says what is known afterwards. The code is there for a letter that confirms an address.
pub type Sender = Arc<dyn Fn(Claim, Option<String>) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

/// The worker.
pub struct Outbox {
    store: Arc<dyn Store>,
    send: Sender,
}

impl Outbox {
    /// A worker that sends by this way.
    pub fn new(store: Arc<dyn Store>, send: Sender) -> Self {
        Self { store, send }
    }

    /// Sends until it is told to stop; then it finishes what it began and takes no more.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        let mut changes = self.store.outbox_changes();
        let mut every = tokio::time::interval(LOOK);
        while !*stopping.borrow() {
            if self.step().await > 0 {
                continue;
            }
            tokio::select! {
                _ = every.tick() => {}
                // A delivery was planned, or given back.
                _ = changes.changed() => {}
                _ = stopping.changed() => {}
            }
        }
    }

    /// Sends what is due now; how many letters that were.
    pub async fn step(&self) -> usize {
        let claims = match self.store.claim(AT_ONCE).await {
            Ok(claims) => claims,
            Err(error) => {
                tracing::warn!(%error, "the outbox could not be looked at; it will be again");
                return 0;
            }
        };
        let sent = claims.len();
        stream::iter(claims).for_each_concurrent(AT_ONCE, |claim| self.deliver(claim)).await;
        sent
    }

    async fn deliver(&self, claim: Claim) {
        let (letter_id, fence) = (claim.letter_id, claim.fence);
        let code = (claim.purpose == Purpose::Confirmation).then(new_code);
        let letter = Letter { letter_id, fence, code: code.as_deref().map(auth::hash) };
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
        self.finish(Finish { letter_id, fence, outcome, jitter: u64::from_le_bytes(clock::random()) }).await;
    }

    async fn finish(&self, finish: Finish) {
        for attempt in 1..=WRITES {
            match self.store.finish(finish.clone()).await {
                Ok(true) => return,
                Ok(false) => {
                    tracing::warn!(letter_id = %finish.letter_id, "a letter's outcome came too late to count");
                    return;
                }
                Err(error) => {
                    tracing::error!(letter_id = %finish.letter_id, %error, attempt, "an outcome could not be kept");
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }
}

/// A code a person can type: six digits, each as likely as any other.
pub fn new_code() -> String {
    format!("{:06}", u64::from_le_bytes(clock::random()) % 1_000_000)
}
