//! A hub that has too much to do says so at once instead of answering everybody late.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::ApiError;

/// How much happens at once.
pub(crate) struct Overload {
    requests: Semaphore,
    streams: Arc<Semaphore>,
}

impl Overload {
    pub(crate) fn new(requests_max: usize, streams_max: usize) -> Self {
        let semaphore = |permits: usize| Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self { requests: semaphore(requests_max), streams: Arc::new(semaphore(streams_max)) }
    }

    /// Room for one more request. An open stream no longer counts as one.
    pub(super) fn request(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        self.requests.try_acquire().map_err(|_| full("the hub is busy (limits.concurrent_requests)"))
    }

    /// Room for one more stream, for as long as the permit lives.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = self.streams.clone().try_acquire_owned();
        permit.map_err(|_| full("too many streams are open (limits.streams)"))
    }
}

fn full(message: &str) -> ApiError {
    ApiError { retry_after_seconds: Some(1), ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message) }
}
