//! One attempt of a request: claimed, made in a task of its own, and recorded. Equal requests join it.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::notify::{ErrorClass, NotifyError};
use bellwire_store::{NotifyAnswer, NotifyClaim, NotifyClaimed, NotifyEnd, NotifyEnding, NotifyKey, SentFrom, Store};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::envelope::{AnswerMeta, Failure, Outcome, unproven};
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
    target: String,
}

/// Who asks for the delivery of a request.
#[derive(Copy, Clone)]
pub(crate) enum Asker<'a> {
    /// This process, which has claimed it.
    Here(&'a Attempt),
    /// Another process.
    Elsewhere(Question),
}

/// Whether another process asks for the first time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// It asks for an attempt.
    First,
    /// It has asked before and does not know the outcome. An attempt that has ended is not repeated, even if it may be.
    Again,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempted {
    pub(crate) outcome: Outcome,
    pub(crate) meta: AnswerMeta,
}

impl From<Outcome> for Attempted {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, meta: AnswerMeta::default() }
    }
}

impl Attempted {
    /// Whether it may have been delivered.
    pub(super) fn is_unknown(&self) -> bool {
        self.outcome.as_ref().is_err_and(|failure| failure.error.is_unknown_outcome())
    }

    /// Whether the outcome is known and the request must not be made again.
    pub(super) fn is_final(&self) -> bool {
        let is_retryable = self.outcome.as_ref().is_err_and(|failure| failure.error.retryable);
        !self.is_unknown() && !is_retryable
    }

    /// The ids of the delivered parts, in order.
    pub(super) fn delivered_ids(&self) -> Vec<String> {
        let first = match &self.outcome {
            Ok(delivered) => Some(delivered),
            Err(failure) => failure.first_part.as_ref(),
        };
        first
            .map(|first| first.delivery_id.clone())
            .into_iter()
            .chain(self.meta.further_parts.iter().cloned())
            .collect()
    }
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
}

/// Claims a request to this target and lets `work` make the attempt, or joins an equal one. `None` = the outcome is not
/// known in time; the attempt goes on and records it.
pub(crate) async fn run(
    hub: &Hub,
    claim: NotifyClaim,
    target: String,
    work: impl FnOnce(Attempt) -> BoxFuture<'static, Attempted> + Send,
) -> Result<Option<NotifyAnswer>, Refusal> {
    let deadline = Instant::now() + hub.notify.wait;
    let key = claim.key;
    let conversation_id = claim.recipients_conversation().map(str::to_owned);
    // Subscribed before the claim, so that no ending in between is missed.
    let bell = hub.store.notify_changes();
    match hub.store.claim_notify(claim).await? {
        NotifyClaimed::Mine { fence, timezone, .. } => {
            let attempt = Attempt { store: hub.store.clone(), key, fence, timezone, conversation_id, target };
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
async fn make(attempt: Attempt, work: BoxFuture<'static, Attempted>) -> Option<NotifyAnswer> {
    let started = Instant::now();
    // A panic must not leave the request without an outcome.
    let attempted = tokio::spawn(work).await;
    let attempted = attempted.unwrap_or_else(|_| Err(unproven("the hub failed while it was being sent")).into());
    let Attempted { outcome, meta: AnswerMeta { is_unreachable, further_parts, .. } } = attempted;
    let ending = match outcome {
        Ok(delivered) => NotifyEnding::Delivered { delivery_id: delivered.delivery_id },
        Err(Failure { error, first_part }) => NotifyEnding::failed(error, first_part.map(|part| part.delivery_id)),
    };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let Attempt { store, key, fence, target, .. } = attempt;
    let unreachable_target = is_unreachable.then_some(target);
    let end = NotifyEnd { key, fence, ending, duration_ms, further_parts, unreachable_target };
    record(&*store, end).await
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
    Some(end.into_answer(None))
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
