//! A hub that has too much to do says so at once instead of answering everybody late.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ApiError;

/// How much happens at once.
pub(crate) struct Overload {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl Overload {
    pub(crate) fn new(requests_max: usize, streams_max: usize) -> Self {
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Self { requests: semaphore(requests_max), streams: semaphore(streams_max) }
    }

    /// Room for one more request. An open stream no longer counts as one.
    pub(super) fn request(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        admit(&self.requests, "the hub is busy (limits.concurrent_requests)")
    }

    /// Room for one more stream, for as long as the permit lives.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        admit(&self.streams, "too many streams are open (limits.streams)")
    }
}

fn admit(semaphore: &Arc<Semaphore>, message: &str) -> Result<OwnedSemaphorePermit, ApiError> {
    semaphore.clone().try_acquire_owned().map_err(|_| ApiError {
        retry_after_seconds: Some(1),
        ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
    })
}
