//! Reading a request's body: within a size, at a minimum rate, and within the memory that bodies may take together.
//!
//! Without these, a sender that sends half of many large bodies fills the memory, and one that sends a byte now and then
//! holds a place among `limits.concurrent_requests` for as long as a request may take.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header, request};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::ApiError;
use crate::clock;
use crate::usage::TokenUsage;

/// How long a body may take in any case, and how many bytes a second it has to have beyond that.
const GRACE: Duration = Duration::from_secs(5);
const BYTES_PER_SECOND_MIN: u64 = 1024;
/// The first bytes of every body are not counted: the number of requests in progress bounds them.
const UNCOUNTED: usize = 64 * 1024;
/// How many of the largest bodies may be in memory together.
const BODIES_MAX: usize = 8;

/// The memory for the bodies of all requests in progress.
#[derive(Clone)]
pub(super) struct BodyRoom {
    body_max: usize,
    free: Arc<Semaphore>,
}

impl BodyRoom {
    pub(super) fn new(body_max: usize) -> Self {
        let bytes = body_max.saturating_mul(BODIES_MAX).min(Semaphore::MAX_PERMITS);
        Self { body_max, free: Arc::new(Semaphore::new(bytes)) }
    }
}

/// What one request may still read. It lives until the request is answered, and so does the room its body takes.
pub(super) struct Intake {
    room: BodyRoom,
    usage: Option<Arc<TokenUsage>>,
    held: Mutex<Vec<OwnedSemaphorePermit>>,
}

impl Intake {
    /// Refuses a body at once that says itself that it is too large.
    pub(super) fn of(
        room: &BodyRoom,
        usage: Option<Arc<TokenUsage>>,
        request: &Request,
    ) -> Result<Arc<Self>, ApiError> {
        if announced(request).is_some_and(|length| length > room.body_max as u64) {
            return Err(too_large());
        }
        Ok(Arc::new(Self { room: room.clone(), usage, held: Mutex::default() }))
    }

    /// The body, of which memory holds only what has come: what a sender announces is not believed.
    async fn read(&self, mut body: Body) -> Result<Bytes, ApiError> {
        let started = Instant::now();
        let mut whole: Vec<u8> = Vec::new();
        loop {
            let due = started + GRACE + Duration::from_millis(whole.len() as u64 * 1000 / BYTES_PER_SECOND_MIN);
            let Some(frame) = timeout_at(due, body.frame()).await.map_err(|_| too_slow())? else { break };
            let Ok(data) = frame.map_err(|_| ended_early())?.into_data() else { continue };
            self.count(whole.len(), data.len())?;
            if whole.is_empty() && body.is_end_stream() {
                // Nearly every body comes in one piece, which is taken as it is.
                return Ok(data);
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.into())
    }

    /// Counts what has come behind the first `before` bytes.
    fn count(&self, before: usize, bytes: usize) -> Result<(), ApiError> {
        let after = before.saturating_add(bytes);
        if after > self.room.body_max {
            return Err(too_large());
        }
        if let Some(usage) = &self.usage {
            usage.received(bytes as u64, clock::now())?;
        }
        let counted = u32::try_from(after.saturating_sub(before.max(UNCOUNTED))).map_err(|_| too_large())?;
        if counted > 0 {
            let of_token = self.usage.as_ref().map(|usage| usage.body_room(counted)).transpose()?;
            let of_all = self.room.free.clone().try_acquire_many_owned(counted).map_err(|_| no_room())?;
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            for permit in of_token.into_iter().chain([of_all]) {
                // Permits of the same semaphore become one.
                match held.iter_mut().find(|other| Arc::ptr_eq(other.semaphore(), permit.semaphore())) {
                    Some(other) => other.merge(permit),
                    None => held.push(permit),
                }
            }
        }
        Ok(())
    }
}

/// The whole body of a request, and the rest of it.
pub(super) async fn whole(request: Request) -> Result<(request::Parts, Bytes), ApiError> {
    let (mut parts, body) = request.into_parts();
    // Taken out: a stream of MCP keeps the extensions, but not its body.
    let intake = parts.extensions.remove::<Arc<Intake>>();
    let intake = intake.ok_or_else(|| ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    let bytes = intake.read(body).await?;
    Ok((parts, bytes))
}

/// How long the body says it is.
fn announced(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large() -> ApiError {
    ApiError::of_status(StatusCode::PAYLOAD_TOO_LARGE)
}

fn ended_early() -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "validation_error", "the body ended before its end")
}

fn too_slow() -> ApiError {
    let message = format!("the body comes too slowly; send at least {BYTES_PER_SECOND_MIN} bytes a second");
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
}

fn no_room() -> ApiError {
    let message = "the hub has no memory for another large body; ask again in a moment, or send less at once";
    ApiError { retry_after_seconds: Some(1), ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    /// Reads a body of which so many bytes come every tenth of a second, for a minute.
    async fn read_for_a_minute(bytes: usize) -> Result<usize, StatusCode> {
        let pieces = stream::unfold(0, move |at| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (at < 600).then(|| (Ok::<_, std::io::Error>(vec![b' '; bytes]), at + 1))
        });
        let (room, request) = (BodyRoom::new(1024 * 1024), Request::new(Body::empty()));
        let intake = Intake::of(&room, None, &request).map_err(|error| error.status)?;
        intake.read(Body::from_stream(pieces)).await.map(|body| body.len()).map_err(|error| error.status)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_long_while_it_comes_at_the_minimum_rate() {
        assert_eq!(read_for_a_minute(115).await, Ok(69_000), "1,150 bytes a second");
        assert_eq!(read_for_a_minute(90).await, Err(StatusCode::REQUEST_TIMEOUT), "900 bytes a second");
    }
}
