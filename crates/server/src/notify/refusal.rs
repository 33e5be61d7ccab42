use bellwire_core::notify::{ErrorClass, Intent, InvalidCall, NotifyError};
use bellwire_store::{ErrorKind, LedgerDecision, LedgerDraft, StoreError};
use uuid::Uuid;

use crate::http::Hub;

/// A request that is not attempted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error: NotifyError,
    /// The reason for the ledger. It must not repeat what the agent wrote.
    pub(crate) reason: String,
}

impl Refusal {
    /// The call is wrong or not allowed. `argument` is what is at fault.
    pub(crate) fn invalid(argument: &str, message: impl Into<String>) -> Self {
        Self { error: NotifyError::invalid(message), reason: format!("invalid {argument}") }
    }
}

impl From<InvalidCall> for Refusal {
    fn from(invalid: InvalidCall) -> Self {
        Self::invalid(invalid.argument, invalid.message)
    }
}

/// The store failed before anything was attempted.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let class = match error.kind {
            ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid(_) => ErrorClass::ValidationError,
            ErrorKind::Full | ErrorKind::NoSpace | ErrorKind::Retry => ErrorClass::OverloadRejected,
            ErrorKind::Damaged | ErrorKind::Broken => ErrorClass::InternalError,
        };
        let message = match error.kind {
            ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid(_) => {
                format!("The hub could not store the request: {}", error.message)
            }
            // How the store failed is the operator's business.
            _ => {
                tracing::warn!(%error, "a notify request could not be stored");
                "The hub could not store the request".to_owned()
            }
        };
        Self { error: NotifyError::new(class, message), reason: "the request could not be stored".to_owned() }
    }
}

/// What is known of a refused request, for the ledger.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedRequest {
    pub(crate) origin: String,
    pub(crate) user_id: Option<String>,
    pub(crate) channel: String,
    pub(crate) intent: Option<Intent>,
    pub(crate) request_id: Option<Uuid>,
}

impl RefusedRequest {
    /// Records the refusal. The caller gets its answer even if that fails.
    pub(crate) async fn record(self, hub: &Hub, refusal: &Refusal) {
        let draft = LedgerDraft {
            origin: self.origin,
            user_id: self.user_id,
            channel: self.channel,
            intent: self.intent,
            decision: LedgerDecision::Refused,
            class: Some(refusal.error.class),
            reason: Some(refusal.reason.clone()),
            notification_id: None,
            request_id: self.request_id,
        };
        if let Err(error) = hub.store.record_decision(draft).await {
            tracing::warn!(%error, "could not record a refused notify request in the ledger");
        }
    }
}
