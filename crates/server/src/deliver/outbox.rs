//! Sends what is due: claims letters, records that an attempt begins, sends, records what became of it.
//!
//! It decides nothing. What is due, what is still wanted, when to try again and when to stop is the store's; how a letter
//! is sent is the channel's. That an attempt begins is on disk before the first byte leaves, so that after a crash
//! nothing is sent twice that may have arrived.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{Claim, Finish, Letter, Outcome, Purpose, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{auth, clock};

/// How often it looks for what is due; quiet hours end and retries come up by the clock.
const LOOK: Duration = Duration::from_secs(1);
/// How often an outcome that could not be written down is tried again: what was sent must not be lost for a hiccup.
const WRITES: usize = 5;

/// Sends one letter and says what is known afterwards. The code is there for a letter that confirms an address.
pub type Sender = Arc<dyn Fn(Claim, Option<String>) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

/// Letters on their way from the store.
type Claiming = Pin<Box<dyn Future<Output = Vec<Claim>> + Send>>;

/// The worker.
#[derive(Clone)]
pub struct Outbox {
    store: Arc<dyn Store>,
    send: Sender,
    at_once: usize,
}

impl Outbox {
    /// A worker that sends by this way, so many letters at once.
    pub fn new(store: Arc<dyn Store>, send: Sender, at_once: usize) -> Self {
        Self { store, send, at_once }
    }

    /// Sends until it is told to stop; then it finishes what it has claimed and takes no more.
    ///
    /// Letters are claimed ahead, as many as are sent at once, while others are on their way: a claim is a commit, and one
    /// for each letter would be the pace of all of them.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        let mut changes = self.store.outbox_changes();
        let mut every = tokio::time::interval(LOOK);
        let (mut sending, mut ready) = (JoinSet::new(), VecDeque::new());
        let mut claiming: Option<Claiming> = None;
        // Whether something may be due that was not there when it was last looked.
        let mut look = true;
        while !*stopping.borrow() {
            self.begin(&mut ready, &mut sending);
            if claiming.is_none() && look && ready.len() < self.at_once {
                look = false;
                claiming = Some(Box::pin(self.clone().claim(2 * self.at_once - ready.len())));
            }
            tokio::select! {
                claims = pending(&mut claiming) => {
                    look |= !claims.is_empty();
                    ready.extend(claims);
                    claiming = None;
                }
                Some(_) = sending.join_next() => {}
                _ = every.tick() => look = true,
                // A delivery was planned or given back; where nothing rings any more the store is closed.
                rung = changes.changed() => match rung {
                    Ok(()) => look = true,
                    Err(_) => break,
                },
                _ = stopping.changed() => {}
            }
        }
        if claiming.is_some() {
            ready.extend(pending(&mut claiming).await);
        }
        self.send_all(ready, sending).await;
    }

    /// Sends what is due now and waits for it; how many letters that were.
    pub async fn step(&self) -> usize {
        let ready: VecDeque<Claim> = self.clone().claim(self.at_once).await.into();
        let begun = ready.len();
        self.send_all(ready, JoinSet::new()).await;
        begun
    }

    async fn claim(self, count: usize) -> Vec<Claim> {
        self.store.claim(count).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the outbox could not be looked at; it will be again");
            Vec::new()
        })
    }

    /// Begins as many letters as there is room for.
    fn begin(&self, ready: &mut VecDeque<Claim>, sending: &mut JoinSet<()>) {
        while sending.len() < self.at_once
            && let Some(claim) = ready.pop_front()
        {
            let outbox = self.clone();
            sending.spawn(async move { outbox.deliver(claim).await });
        }
    }

    async fn send_all(&self, mut ready: VecDeque<Claim>, mut sending: JoinSet<()>) {
        self.begin(&mut ready, &mut sending);
        while sending.join_next().await.is_some() {
            self.begin(&mut ready, &mut sending);
        }
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

/// The letters that are being claimed; never, where none are.
async fn pending(claiming: &mut Option<Claiming>) -> Vec<Claim> {
    match claiming {
        Some(claiming) => claiming.await,
        None => std::future::pending().await,
    }
}

/// A code a person can type: six digits, each as likely as any other.
fn new_code() -> String {
    format!("{:06}", u64::from_le_bytes(clock::random()) % 1_000_000)
}
