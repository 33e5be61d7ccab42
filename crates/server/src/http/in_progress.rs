//! A request in progress: its share of what the hub and its token have, and the time by which it must be answered.
//!
//! Most requests are over when their response is there. A request of MCP may go on behind the head of its response, even
//! when its client has gone: what the protocol's library works on keeps the extensions of the request, and with them this.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::intake::Intake;

/// The permits of a request, which are released when nothing works on it any more.
pub(crate) struct InProgress {
    permits: Mutex<Option<Permits>>,
    due: Instant,
}

/// Released together.
pub(super) struct Permits {
    /// None = a probe, which is answered however busy the hub is.
    pub(super) of_hub: Option<OwnedSemaphorePermit>,
    /// None = a request without a token.
    pub(super) of_token: Option<OwnedSemaphorePermit>,
    /// The memory of its body.
    pub(super) body: Arc<Intake>,
}

impl InProgress {
    pub(super) fn new(permits: Permits, timeout: Duration) -> Self {
        Self { permits: Mutex::new(Some(permits)), due: Instant::now() + timeout }
    }

    /// Runs a part of the request; none = it was not done in time.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.due, work).await.ok()
    }

    /// Releases the permits: from here on the request counts as a stream instead.
    pub(crate) fn becomes_stream(&self) {
        let permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Permits { of_hub, of_token, body }) = permits {
            drop((of_hub, of_token, body));
        }
    }
}
