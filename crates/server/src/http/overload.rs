//! A hub that has too much to do says so at once instead of answering everybody late.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::ApiError;
use crate::usage::TokenUsage;

/// How much happens at once.
pub(crate) struct ConcurrencyLimits {
    requests: Semaphore,
    streams: Arc<Semaphore>,
}

/// An open stream: a part of what the hub has, and of what its token may have.
pub(crate) struct StreamPermit {
    _of_token: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl ConcurrencyLimits {
    pub(crate) fn new(requests_max: usize, streams_max: usize) -> Self {
        let semaphore = |permits: usize| Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self { requests: semaphore(requests_max), streams: Arc::new(semaphore(streams_max)) }
    }

    /// Room for one more request. An open stream no longer counts as one.
    pub(super) fn request(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        self.requests.try_acquire().map_err(|_| full("the hub is busy (limits.concurrent_requests)"))
    }

    /// Room for one more stream of this token, for as long as the permit lives.
    pub(crate) fn stream(&self, usage: &TokenUsage) -> Result<StreamPermit, ApiError> {
        let of_token = usage.stream()?;
        let of_all = self.streams.clone().try_acquire_owned();
        let of_all = of_all.map_err(|_| full("too many streams are open (limits.streams)"))?;
        Ok(StreamPermit { _of_token: of_token, _of_all: of_all })
    }
}

fn full(message: &str) -> ApiError {
    ApiError { retry_after_seconds: Some(1), ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message) }
}
