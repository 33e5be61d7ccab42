//! One attempt of a request: claimed, made in a task of its own, and recorded. Equal requests join it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellwire_core::notify::{ErrorClass, NotifyError};
use bellwire_store::{NotifyAnswer, NotifyClaim, NotifyClaimed, NotifyEnd, NotifyEnding, NotifyKey, SentFrom, Store};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::envelope::{Failure, Outcome, unproven};
use super::refusal::Refusal;
use crate::http::Hub;

/// How often a waiting caller looks, besides the bell: another process may have the attempt.
const POLL: Duration = Duration::from_secs(1);
/// How often recording an outcome is tried: a short failure of the store must not lose the outcome of a sent message.
const RECORD_ATTEMPTS_MAX: usize = 5;

/// A claimed request.
#[derive(Clone)]
pub(crate) struct Attempt {
    store: Arc<dyn Store>,
    pub(crate) key: NotifyKey,
    fence: i64,
    /// The recipient's time zone.
    pub(crate) timezone: Option<String>,
    /// The recipient's conversation that it comes from.
    pub(crate) conversation_id: Option<String>,
    /// Set if the target does not exist or its owner has blocked the hub.
    unreachable_target: Arc<OnceLock<String>>,
}

impl Attempt {
    /// Commits the start. Nothing may be sent or passed on before.
    pub(crate) async fn start(&self, from: SentFrom) -> Result<(), NotifyError> {
        match self.store.start_notify(self.key, self.fence, from).await {
            Ok(true) => Ok(()),
            // Nothing was sent: the caller may repeat it.
            Ok(false) => {
                let message = "The hub was too busy to start this request in time. Try again";
                Err(NotifyError::new(ErrorClass::OverloadRejected, message))
            }
            Err(error) => Err(Refusal::from(error).error),
        }
    }

    /// Notes that the target cannot be reached any more.
    pub(crate) fn note_unreachable(&self, target: &str) {
        // Only the first call counts.
        let _ = self.unreachable_target.set(target.to_owned());
    }
}

/// Claims a request and lets `work` make the attempt, or joins an equal one. `None` = the outcome is not known in time; the
/// attempt goes on and records it.
pub(crate) async fn run(
    hub: &Hub,
    claim: NotifyClaim,
    work: impl FnOnce(Attempt) -> BoxFuture<'static, Outcome> + Send,
) -> Result<Option<NotifyAnswer>, Refusal> {
    let deadline = Instant::now() + hub.notify.wait;
    let key = claim.key;
    let conversation_id = claim.recipients_conversation().map(str::to_owned);
    // Subscribed before the claim, so that no ending in between is missed.
    let bell = hub.store.notify_changes();
    match hub.store.claim_notify(claim).await? {
        NotifyClaimed::Mine { fence, timezone, .. } => {
            let (store, unreachable_target) = (hub.store.clone(), Arc::default());
            let attempt = Attempt { store, key, fence, timezone, conversation_id, unreachable_target };
            let making = tokio::spawn(make(attempt.clone(), work(attempt)));
            Ok(tokio::time::timeout_at(deadline, making).await.ok().and_then(Result::ok).flatten())
        }
        NotifyClaimed::InFlight => Ok(joined(hub, key, bell, deadline).await),
        NotifyClaimed::Ended(answer) => Ok(Some(answer)),
        // The store has recorded it in the ledger.
        NotifyClaimed::Refused(error) => Err(Refusal { error, reason: String::new() }),
    }
}

/// Makes the attempt and records its outcome.
async fn make(attempt: Attempt, work: BoxFuture<'static, Outcome>) -> Option<NotifyAnswer> {
    let started = Instant::now();
    // A panic must not leave the request without an outcome.
    let outcome = tokio::spawn(work).await;
    let outcome = outcome.unwrap_or_else(|_| Err(unproven("the hub failed while it was being sent")));
    let ending = match outcome {
        Ok(delivered) => NotifyEnding::Delivered { delivery_id: delivered.delivery_id },
        Err(Failure { error, first_part }) => NotifyEnding::failed(error, first_part.map(|part| part.delivery_id)),
    };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let unreachable_target = attempt.unreachable_target.get().cloned();
    let (key, fence) = (attempt.key, attempt.fence);
    let end = NotifyEnd { key, fence, ending, duration_ms, unreachable_target };
    record(&*attempt.store, end).await
}

/// Records the outcome. If the store fails, the caller still gets the truth about the message.
async fn record(store: &dyn Store, end: NotifyEnd) -> Option<NotifyAnswer> {
    for number in 1..=RECORD_ATTEMPTS_MAX {
        match store.end_notify(end.clone()).await {
            Ok(answer) => return answer,
            Err(error) => {
                tracing::error!(%error, number, "could not record the outcome of a notify attempt");
                tokio::time::sleep(POLL).await;
            }
        }
    }
    Some(NotifyAnswer { ending: end.ending, duration_ms: end.duration_ms, notification_id: None })
}

/// Waits for the answer of an equal request.
async fn joined(
    hub: &Hub,
    key: NotifyKey,
    mut bell: tokio::sync::watch::Receiver<()>,
    deadline: Instant,
) -> Option<NotifyAnswer> {
    loop {
        match hub.store.notify_answer(key).await {
            Ok(Some(answer)) => return Some(answer),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "could not read the answer of a notify request"),
        }
        let next_look = deadline.min(Instant::now() + POLL);
        // Either the bell rings or it is time to look again.
        let _ = tokio::time::timeout_at(next_look, bell.changed()).await;
        if Instant::now() >= deadline {
            return None;
        }
    }
}
