//! Limits on concurrent requests and streams. A request over a limit is refused with 503 at once; it does not queue.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ApiError;
use crate::usage::TokenUsage;

/// The hub's semaphores for requests and streams.
pub(crate) struct ConcurrencyLimits {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    live_streams: Arc<Semaphore>,
}

/// The maximum number of live streams. Each event is serialized for each of them, and admin tokens have no limits of their
/// own. The tabs of a browser share one.
const LIVE_STREAMS_MAX: usize = 100;

/// Counts an open stream against the hub's limit and its token's limit until it is dropped.
pub(crate) struct StreamPermit {
    _of_token: OwnedSemaphorePermit,
    _of_hub: OwnedSemaphorePermit,
}

impl ConcurrencyLimits {
    pub(crate) fn new(requests_max: usize, streams_max: usize) -> Self {
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Self {
            requests: semaphore(requests_max),
            streams: semaphore(streams_max),
            live_streams: semaphore(LIVE_STREAMS_MAX),
        }
    }

    /// Acquires a permit for one request. A stream releases it once its response has started.
    pub(super) fn request(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.requests.clone().try_acquire_owned().map_err(|_| full("the hub is busy (limits.concurrent_requests)"))
    }

    /// Acquires a permit for one live stream, besides that of a stream.
    pub(super) fn live_stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = self.live_streams.clone().try_acquire_owned();
        permit.map_err(|_| full(&format!("{LIVE_STREAMS_MAX} live streams are open; close one")))
    }

    /// Acquires a permit for one stream of this token.
    pub(crate) fn stream(&self, usage: &TokenUsage) -> Result<StreamPermit, ApiError> {
        let of_token = usage.stream()?;
        let of_hub = self.streams.clone().try_acquire_owned();
        let of_hub = of_hub.map_err(|_| full("too many streams are open (limits.streams)"))?;
        Ok(StreamPermit { _of_token: of_token, _of_hub: of_hub })
    }
}

fn full(message: &str) -> ApiError {
    ApiError { retry_after_seconds: Some(1), ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message) }
}
