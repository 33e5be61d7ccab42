//! Reads request bodies within limits: the size of a body, its minimum data rate, and the memory of all bodies together.
//!
//! Without these limits, a client could fill the memory with many incomplete large bodies, or hold a permit of
//! `limits.concurrent_requests` until the request timeout by sending a byte now and then.

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

/// The time every body may take, independent of its data rate.
const GRACE: Duration = Duration::from_secs(5);
/// The minimum data rate after [`GRACE`].
const BYTES_PER_SECOND_MIN: u64 = 1024;
/// The first bytes of every body do not count towards the memory limit: the limit on concurrent requests bounds them.
const UNCOUNTED: usize = 64 * 1024;
/// The size of the pieces in which a body is kept until all of it has arrived.
const PIECE_BYTES: usize = 256 * 1024;
/// How many bodies of the maximum size fit into the memory limit.
const BODIES_MAX: usize = 8;

/// The memory limit for the bodies of all concurrent requests, one permit per byte.
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

    /// For webhooks of a configured source, whose usage bounds their memory.
    pub(super) fn of_source(&self) -> Self {
        Self { body_max: self.body_max.min(BODY_MAX_OF_SOURCE), free: self.free.clone() }
    }

    /// For requests without a token, so that clients without one cannot use up the memory for bodies.
    pub(super) fn without_token(&self) -> Self {
        Self { body_max: self.body_max.min(BODY_MAX_WITHOUT_TOKEN), free: self.free.clone() }
    }
}

/// The largest body of a webhook of a configured source. It is read before the call is authenticated.
const BODY_MAX_OF_SOURCE: usize = 2 * 1024 * 1024;

/// The largest body of a request without a token: a sign-in code, or a provider's update. It does not count towards the
/// memory limit.
const BODY_MAX_WITHOUT_TOKEN: usize = UNCOUNTED;

/// Reads the body of one request. It holds the permits for the body's memory until the response is sent.
pub(super) struct Intake {
    room: BodyRoom,
    usage: Option<Arc<TokenUsage>>,
    held: Mutex<Vec<OwnedSemaphorePermit>>,
}

impl Intake {
    /// Refuses a body whose `Content-Length` exceeds the maximum, before reading it.
    pub(super) fn of(
        room: &BodyRoom,
        usage: Option<Arc<TokenUsage>>,
        request: &Request,
    ) -> Result<Arc<Self>, ApiError> {
        if content_length(request).is_some_and(|length| length > room.body_max as u64) {
            return Err(too_large(room.body_max));
        }
        Ok(Arc::new(Self { room: room.clone(), usage, held: Mutex::default() }))
    }

    /// Reads the body. Memory is allocated only for received bytes, because `Content-Length` cannot be trusted.
    async fn read(&self, mut body: Body) -> Result<Bytes, ApiError> {
        let started = Instant::now();
        let mut pieces = Pieces::default();
        loop {
            let due = started + GRACE + Duration::from_millis(pieces.length as u64 * 1000 / BYTES_PER_SECOND_MIN);
            let Some(frame) = timeout_at(due, body.frame()).await.map_err(|_| too_slow())? else { break };
            let Ok(data) = frame.map_err(|_| ended_early())?.into_data() else { continue };
            self.count(pieces.length, data.len())?;
            if pieces.length == 0 && body.is_end_stream() {
                // Most bodies arrive as one frame, which needs no copy.
                return Ok(data);
            }
            pieces.extend(&data);
        }
        Ok(pieces.into_bytes())
    }

    /// Counts `bytes` received after the first `before` bytes, and acquires permits for their memory.
    fn count(&self, before: usize, bytes: usize) -> Result<(), ApiError> {
        let after = before.saturating_add(bytes);
        if after > self.room.body_max {
            return Err(too_large(self.room.body_max));
        }
        if let Some(usage) = &self.usage {
            usage.received(bytes as u64, clock::now())?;
        }
        let counted =
            u32::try_from(after.saturating_sub(before.max(UNCOUNTED))).map_err(|_| too_large(self.room.body_max))?;
        if counted > 0 {
            let of_token = self.usage.as_ref().map(|usage| usage.body_room(counted)).transpose()?;
            let of_all = self.room.free.clone().try_acquire_many_owned(counted).map_err(|_| no_room())?;
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            for permit in of_token.into_iter().chain([of_all]) {
                // Merge permits of the same semaphore.
                match held.iter_mut().find(|other| Arc::ptr_eq(other.semaphore(), permit.semaphore())) {
                    Some(other) => other.merge(permit),
                    None => held.push(permit),
                }
            }
        }
        Ok(())
    }
}

/// The received part of a body, in pieces of [`PIECE_BYTES`]. One buffer that doubles would leave its earlier allocations
/// behind, and many incomplete bodies would take twice their size.
#[derive(Default)]
struct Pieces {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    length: usize,
}

impl Pieces {
    fn extend(&mut self, mut data: &[u8]) {
        self.length += data.len();
        while !data.is_empty() {
            let (fits, rest) = data.split_at(data.len().min(PIECE_BYTES - self.last.len()));
            self.last.extend_from_slice(fits);
            if self.last.len() == PIECE_BYTES {
                self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(PIECE_BYTES)));
            }
            data = rest;
        }
    }

    /// The bytes in one allocation. Each piece is freed after it is copied.
    fn into_bytes(self) -> Bytes {
        if self.full.is_empty() {
            return self.last.into();
        }
        let mut whole = Vec::with_capacity(self.length);
        for piece in self.full.into_iter().chain([self.last]) {
            whole.extend_from_slice(&piece);
        }
        whole.into()
    }
}

/// Reads the whole body of a request. Returns its other parts too.
pub(super) async fn whole(request: Request) -> Result<(request::Parts, Bytes), ApiError> {
    let (mut parts, body) = request.into_parts();
    // Removed, because an MCP stream keeps the extensions for its lifetime but not the body.
    let intake = parts.extensions.remove::<Arc<Intake>>();
    let intake = intake.ok_or_else(|| ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    let bytes = intake.read(body).await?;
    Ok((parts, bytes))
}

/// The value of `Content-Length`.
fn content_length(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(body_max: usize) -> ApiError {
    let message = match body_max {
        BODY_MAX_WITHOUT_TOKEN => format!("a body of this call has at most {body_max} bytes"),
        _ => format!("the body has more than {body_max} bytes (limits.body_bytes); send it in parts"),
    };
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
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

    /// Reads a body that sends `bytes` bytes every 100 ms for a minute.
    async fn read_for_a_minute(bytes: usize) -> Result<usize, StatusCode> {
        let pieces = stream::unfold(0, move |at| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (at < 600).then(|| (Ok::<_, std::io::Error>(vec![b' '; bytes]), at + 1))
        });
        let (room, request) = (BodyRoom::new(1024 * 1024), Request::new(Body::empty()));
        let intake = Intake::of(&room, None, &request).map_err(|error| error.status)?;
        intake.read(Body::from_stream(pieces)).await.map(|body| body.len()).map_err(|error| error.status)
    }

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let sent: Vec<u8> = (0..PIECE_BYTES * 2 + 7).map(|at| (at % 251) as u8).collect();
        for cut in [1_000, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, sent.len()] {
            let mut pieces = Pieces::default();
            sent.chunks(cut).for_each(|data| pieces.extend(data));
            assert_eq!(pieces.into_bytes(), sent, "cut at {cut}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_long_while_it_comes_at_the_minimum_rate() {
        assert_eq!(read_for_a_minute(115).await, Ok(69_000), "1,150 bytes a second");
        assert_eq!(read_for_a_minute(90).await, Err(StatusCode::REQUEST_TIMEOUT), "900 bytes a second");
    }
}
