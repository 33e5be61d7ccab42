//! What one token may use, so that one cannot starve the others: events, injections, requests, streams, bytes.
//!
//! Everything is counted in memory: a restart begins at zero. Admin tokens are exempt, and a limit of 0 is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bellwire_core::Time;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::rate::{Bucket, Rate};

/// How many injections a token may make at once, in seconds of its rate.
const INJECTION_BURST_SECONDS: u64 = 5;
/// How many of the largest bodies one token may send at the same time.
const BODIES_PER_TOKEN: usize = 2;
/// More tokens than this and those that use nothing are forgotten.
const TOKENS_MAX: usize = 10_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The limits of one token.
#[derive(Copy, Clone, Debug)]
pub(crate) struct TokenLimits {
    publish: Rate,
    inject: Rate,
    requests: usize,
    streams: usize,
    /// How many MCP sessions it may have; 0 = any number.
    pub(crate) mcp_sessions: usize,
    body_bytes: usize,
    bytes_per_day: u64,
}

impl TokenLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        let injections = limits.injections_per_second;
        Self {
            publish: Rate { per_second: limits.publish_per_second, burst: limits.publish_burst },
            inject: Rate { per_second: injections, burst: injections.saturating_mul(INJECTION_BURST_SECONDS) },
            requests: limits.concurrent_per_token,
            streams: limits.streams_per_token,
            mcp_sessions: limits.mcp_sessions_per_token,
            body_bytes: limits.body_bytes.saturating_mul(BODIES_PER_TOKEN),
            bytes_per_day: limits.bytes_per_day,
        }
    }

    /// No limits, for admin tokens.
    fn none() -> Self {
        let any = Rate { per_second: 0, burst: 1 };
        Self { publish: any, inject: any, requests: 0, streams: 0, mcp_sessions: 0, body_bytes: 0, bytes_per_day: 0 }
    }
}

/// What one token uses.
#[derive(Debug)]
pub(crate) struct TokenUsage {
    pub(crate) limits: TokenLimits,
    published: Bucket,
    injected: Bucket,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    body_bytes: Arc<Semaphore>,
    /// The current day, counted from 1970 in UTC, and the bytes of bodies received in it.
    today: Mutex<(i64, u64)>,
}

/// A limit that was reached.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// What the token does too much of, and the setting that says how much is allowed.
    pub(crate) message: &'static str,
    /// When the caller may try again.
    pub(crate) retry_after_seconds: u64,
}

/// What publishing costs, or why it is refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublishRefused {
    /// It costs more than is ever allowed at once: this burst.
    AboveBurst(u64),
    /// Later.
    TooFast(Exceeded),
}

impl TokenUsage {
    fn new(limits: TokenLimits) -> Self {
        let semaphore = |permits: usize| match permits {
            0 => Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            permits => Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
        };
        Self {
            published: Bucket::default(),
            injected: Bucket::default(),
            requests: semaphore(limits.requests),
            streams: semaphore(limits.streams),
            body_bytes: semaphore(limits.body_bytes),
            today: Mutex::default(),
            limits,
        }
    }

    /// Takes this many events from what the token may publish. What is refused costs nothing.
    pub(crate) fn publish(&self, events: u64, now: Instant) -> Result<(), PublishRefused> {
        self.publish_more(0, events, now)
    }

    /// The same for a call for which some were taken already.
    pub(crate) fn publish_more(&self, taken: u64, events: u64, now: Instant) -> Result<(), PublishRefused> {
        let rate = self.limits.publish;
        if rate.per_second > 0 && taken.saturating_add(events) > rate.burst {
            return Err(PublishRefused::AboveBurst(rate.burst));
        }
        let message = "this token publishes too fast (limits.publish_per_second)";
        let taken = self.published.take(rate, events, now);
        taken.map_err(|seconds| PublishRefused::TooFast(Exceeded { message, retry_after_seconds: seconds }))
    }

    /// Gives back what was taken for a call that is not carried out.
    pub(crate) fn give_back_publish(&self, events: u64) {
        self.published.give_back(self.limits.publish, events);
    }

    /// Takes one injection.
    pub(crate) fn inject(&self, now: Instant) -> Result<(), Exceeded> {
        let message = "this token injects too often (limits.injections_per_second)";
        let taken = self.injected.take(self.limits.inject, 1, now);
        taken.map_err(|seconds| Exceeded { message, retry_after_seconds: seconds })
    }

    /// Room for one more request of this token, for as long as the permit lives.
    pub(crate) fn request(&self) -> Result<OwnedSemaphorePermit, Exceeded> {
        acquire(&self.requests, 1, "this token has too many requests in progress (limits.concurrent_per_token)")
    }

    /// Room for one more stream of this token, for as long as the permit lives.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Exceeded> {
        acquire(&self.streams, 1, "this token has too many streams open (limits.streams_per_token)")
    }

    /// Room for these bytes of a body of this token, for as long as the permit lives.
    pub(crate) fn body_room(&self, bytes: u32) -> Result<OwnedSemaphorePermit, Exceeded> {
        acquire(&self.body_bytes, bytes, "this token sends too many large bodies at once; send one after the other")
    }

    /// Counts received bytes against the day's allowance.
    pub(crate) fn received(&self, bytes: u64, now: Time) -> Result<(), Exceeded> {
        let most = self.limits.bytes_per_day;
        if most == 0 {
            return Ok(());
        }
        let day = now.as_millis().div_euclid(DAY_MS);
        let mut today = lock(&self.today);
        if today.0 != day {
            *today = (day, 0);
        }
        if today.1.saturating_add(bytes) > most {
            let left_ms = DAY_MS - now.as_millis().rem_euclid(DAY_MS);
            return Err(Exceeded {
                message: "this token has sent as many bytes today as it may (limits.bytes_per_day)",
                retry_after_seconds: left_ms.unsigned_abs().div_ceil(1000),
            });
        }
        today.1 += bytes;
        Ok(())
    }
}

fn acquire(room: &Arc<Semaphore>, permits: u32, message: &'static str) -> Result<OwnedSemaphorePermit, Exceeded> {
    let permit = room.clone().try_acquire_many_owned(permits);
    permit.map_err(|_| Exceeded { message, retry_after_seconds: 1 })
}

/// The usage of every token that was seen lately.
pub(crate) struct Usages {
    limits: TokenLimits,
    known: Mutex<HashMap<String, Arc<TokenUsage>>>,
}

impl Usages {
    pub(crate) fn new(limits: TokenLimits) -> Self {
        Self { limits, known: Mutex::default() }
    }

    /// The usage of this token; the same one for as long as anything of it counts.
    pub(crate) fn of(&self, token_id: &str, is_admin: bool) -> Arc<TokenUsage> {
        if is_admin {
            return Arc::new(TokenUsage::new(TokenLimits::none()));
        }
        let mut known = lock(&self.known);
        if known.len() >= TOKENS_MAX {
            // What nothing refers to has no permits out; its buckets are full again within seconds.
            known.retain(|_, usage| Arc::strong_count(usage) > 1);
        }
        known.entry(token_id.to_owned()).or_insert_with(|| Arc::new(TokenUsage::new(self.limits))).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(change: impl Fn(&mut Limits)) -> Arc<TokenUsage> {
        let mut limits = crate::Config::default().limits;
        change(&mut limits);
        Usages::new(TokenLimits::new(&limits)).of("t", false)
    }

    #[test]
    fn a_call_that_costs_more_than_the_burst_can_never_pass() {
        let usage = usage(|limits| (limits.publish_per_second, limits.publish_burst) = (10, 100));
        let now = Instant::now();
        assert_eq!(usage.publish(101, now), Err(PublishRefused::AboveBurst(100)));
        assert_eq!(usage.publish(100, now), Ok(()));
        assert!(matches!(usage.publish(1, now), Err(PublishRefused::TooFast(_))));
    }

    #[test]
    fn requests_streams_and_bytes_in_flight_are_free_again_when_their_permits_go() {
        let usage = usage(|limits| (limits.concurrent_per_token, limits.streams_per_token) = (1, 1));
        let held = (usage.request().expect("the first"), usage.stream().expect("the first"));
        assert!(usage.request().is_err() && usage.stream().is_err());
        drop(held);
        assert!(usage.request().is_ok() && usage.stream().is_ok());
        let body = usage.body_room(32 * 1024 * 1024).expect("two bodies of the largest size");
        assert!(usage.body_room(1).is_err());
        drop(body);
        assert!(usage.body_room(1).is_ok());
    }

    #[test]
    fn the_bytes_of_a_day_count_until_midnight() {
        let usage = usage(|limits| limits.bytes_per_day = 1_048_576);
        let noon = Time::from_millis(DAY_MS * 20_000 + DAY_MS / 2);
        assert_eq!(usage.received(1_048_576, noon), Ok(()));
        let exceeded = usage.received(1, noon).expect_err("the day is used up");
        assert_eq!(exceeded.retry_after_seconds, 12 * 60 * 60);
        assert_eq!(usage.received(1, Time::from_millis(DAY_MS * 20_001)), Ok(()));
    }

    #[test]
    fn zero_is_no_limit_and_admin_tokens_have_none() {
        let off = usage(|limits| {
            (limits.publish_per_second, limits.injections_per_second, limits.bytes_per_day) = (0, 0, 0);
            (limits.concurrent_per_token, limits.streams_per_token) = (0, 0);
        });
        let admin = Usages::new(TokenLimits::new(&crate::Config::default().limits)).of("root", true);
        for usage in [off, admin] {
            let now = Instant::now();
            assert_eq!(usage.publish(u64::MAX, now), Ok(()));
            assert_eq!(usage.received(u64::MAX, Time::ZERO), Ok(()));
            let held: Vec<_> = (0..5000).map(|_| (usage.inject(now), usage.request(), usage.stream())).collect();
            assert!(
                held.iter().all(|(injected, request, stream)| injected.is_ok() && request.is_ok() && stream.is_ok())
            );
        }
    }

    #[test]
    fn a_token_keeps_its_usage_when_it_is_looked_up_again() {
        let usages = Usages::new(TokenLimits::new(&crate::Config::default().limits));
        assert!(Arc::ptr_eq(&usages.of("a", false), &usages.of("a", false)));
        assert!(!Arc::ptr_eq(&usages.of("a", false), &usages.of("b", false)));
    }
}
