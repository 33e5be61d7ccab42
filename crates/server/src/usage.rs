//! Limits per token for events, injections, requests, streams and bytes, so that one token cannot starve the others.
//!
//! Usage is counted in memory, so a restart resets it. Admin tokens have no limits, and 0 means no limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bellwire_core::Time;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::rate::{Rate, TokenBucket};

/// The burst of injections, in seconds of the rate.
const INJECTION_BURST_SECONDS: u64 = 5;
/// How many bodies of the maximum size one token may send at the same time.
const BODIES_PER_TOKEN: usize = 2;
/// With fewer tokens than this, no usage is dropped.
const DROP_MIN: usize = 10_000;
/// How many calls of one source of webhooks may be read at the same time, and the memory of their larger bodies.
const REQUESTS_PER_SOURCE: usize = 64;
const BODY_BYTES_PER_SOURCE: usize = 8 * 1024 * 1024;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The limits of one token.
#[derive(Copy, Clone, Debug)]
pub(crate) struct TokenLimits {
    publish: Rate,
    inject: Rate,
    requests: usize,
    streams: usize,
    /// The maximum number of MCP sessions; 0 = no limit.
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

    /// The limits of a source of webhooks before its call is authenticated. Its rate is counted afterwards.
    pub(crate) fn of_source() -> Self {
        Self { requests: REQUESTS_PER_SOURCE, body_bytes: BODY_BYTES_PER_SOURCE, ..Self::none() }
    }

    /// No limits, for admin tokens.
    fn none() -> Self {
        let any = Rate { per_second: 0, burst: 1 };
        Self { publish: any, inject: any, requests: 0, streams: 0, mcp_sessions: 0, body_bytes: 0, bytes_per_day: 0 }
    }
}

/// The usage of one token.
#[derive(Debug)]
pub(crate) struct TokenUsage {
    pub(crate) limits: TokenLimits,
    published: TokenBucket,
    injected: TokenBucket,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    body_bytes: Arc<Semaphore>,
    /// The current day, counted from 1970 in UTC, and the bytes of bodies received in it.
    today: Mutex<(i64, u64)>,
}

/// A limit that was reached.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// Which limit was reached, with the name of its setting.
    pub(crate) message: &'static str,
    /// When the caller may try again.
    pub(crate) retry_after_seconds: u64,
}

/// Why publishing was refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublishRefused {
    /// The call costs more than this burst, so it can never succeed.
    AboveBurst(u64),
    /// The rate is exceeded; the call may succeed later.
    TooFast(Exceeded),
}

impl TokenUsage {
    pub(crate) fn new(limits: TokenLimits) -> Self {
        let semaphore = |permits: usize| match permits {
            0 => Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            permits => Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
        };
        Self {
            published: TokenBucket::default(),
            injected: TokenBucket::default(),
            requests: semaphore(limits.requests),
            streams: semaphore(limits.streams),
            body_bytes: semaphore(limits.body_bytes),
            today: Mutex::default(),
            limits,
        }
    }

    /// Takes this many events from the publish rate. A refused call costs nothing.
    pub(crate) fn publish(&self, events: u64, now: Instant) -> Result<(), PublishRefused> {
        self.publish_more(0, events, now)
    }

    /// The same for a call that has already taken some.
    pub(crate) fn publish_more(&self, taken: u64, events: u64, now: Instant) -> Result<(), PublishRefused> {
        let rate = self.limits.publish;
        if rate.per_second > 0 && taken.saturating_add(events) > rate.burst {
            return Err(PublishRefused::AboveBurst(rate.burst));
        }
        let message = "this token publishes too fast (limits.publish_per_second)";
        let taken = self.published.take(rate, events, now);
        taken.map_err(|seconds| PublishRefused::TooFast(Exceeded { message, retry_after_seconds: seconds }))
    }

    /// Gives back the events of a call that was not executed.
    pub(crate) fn give_back_publish(&self, events: u64) {
        self.published.give_back(self.limits.publish, events);
    }

    /// Takes one injection from the injection rate.
    pub(crate) fn inject(&self, now: Instant) -> Result<(), Exceeded> {
        let message = "this token injects too often (limits.injections_per_second)";
        let taken = self.injected.take(self.limits.inject, 1, now);
        taken.map_err(|seconds| Exceeded { message, retry_after_seconds: seconds })
    }

    /// A permit for one concurrent request of this token.
    pub(crate) fn request(&self) -> Result<OwnedSemaphorePermit, Exceeded> {
        acquire(&self.requests, 1, "this token has too many requests in progress (limits.concurrent_per_token)")
    }

    /// A permit for one stream of this token.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Exceeded> {
        acquire(&self.streams, 1, "this token has too many streams open (limits.streams_per_token)")
    }

    /// A permit for this many bytes of request bodies in memory.
    pub(crate) fn body_room(&self, bytes: u32) -> Result<OwnedSemaphorePermit, Exceeded> {
        acquire(&self.body_bytes, bytes, "this token sends too many large bodies at once; send one after the other")
    }

    /// Counts received bytes towards the daily limit.
    pub(crate) fn received(&self, bytes: u64, now: Time) -> Result<(), Exceeded> {
        let most = self.limits.bytes_per_day;
        if most == 0 {
            return Ok(());
        }
        let day = day_of(now);
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

    /// Whether the token would be allowed more if its usage were forgotten.
    fn counts(&self, now: Time) -> bool {
        let monotonic_now = Instant::now();
        let (day, bytes) = *lock(&self.today);
        let sent_today = bytes > 0 && day >= day_of(now);
        sent_today || !self.published.is_unused(monotonic_now) || !self.injected.is_unused(monotonic_now)
    }
}

/// The day in UTC, counted from 1970.
fn day_of(now: Time) -> i64 {
    now.as_millis().div_euclid(DAY_MS)
}

fn acquire(room: &Arc<Semaphore>, permits: u32, message: &'static str) -> Result<OwnedSemaphorePermit, Exceeded> {
    let permit = room.clone().try_acquire_many_owned(permits);
    permit.map_err(|_| Exceeded { message, retry_after_seconds: 1 })
}

/// The usage of all recently used tokens.
///
/// The usage of a token is dropped only when it has no effect: otherwise a caller with many tokens could reset the count of
/// another. So the map has at most twice as many entries as tokens were used in a day; only an admin creates tokens.
pub(crate) struct Usages {
    limits: TokenLimits,
    known: Mutex<KnownUsages>,
}

struct KnownUsages {
    by_token: HashMap<String, Arc<TokenUsage>>,
    /// The number of entries at which those without effect are dropped: twice as many as were left the last time, so that
    /// the whole map is rarely scanned.
    drop_at: usize,
}

impl Usages {
    pub(crate) fn new(limits: TokenLimits) -> Self {
        let known = KnownUsages { by_token: HashMap::new(), drop_at: DROP_MIN };
        Self { limits, known: Mutex::new(known) }
    }

    /// The usage of this token. All requests of a token share it, and it is kept while it counts.
    pub(crate) fn of(&self, token_id: &str, is_admin: bool, now: Time) -> Arc<TokenUsage> {
        if is_admin {
            return Arc::new(TokenUsage::new(TokenLimits::none()));
        }
        let mut known = lock(&self.known);
        if let Some(usage) = known.by_token.get(token_id) {
            return usage.clone();
        }
        if known.by_token.len() >= known.drop_at {
            // A usage that only this map refers to has no open permits.
            known.by_token.retain(|_, usage| Arc::strong_count(usage) > 1 || usage.counts(now));
            known.drop_at = DROP_MIN.max(known.by_token.len() * 2);
        }
        let usage = Arc::new(TokenUsage::new(self.limits));
        known.by_token.insert(token_id.to_owned(), usage.clone());
        usage
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn usage(change: impl Fn(&mut Limits)) -> Arc<TokenUsage> {
        let mut limits = crate::Config::default().limits;
        change(&mut limits);
        Usages::new(TokenLimits::new(&limits)).of("t", false, Time::ZERO)
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
        let admin = Usages::new(TokenLimits::new(&crate::Config::default().limits)).of("root", true, Time::ZERO);
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
        let of = |token_id| usages.of(token_id, false, Time::ZERO);
        assert!(Arc::ptr_eq(&of("a"), &of("a")));
        assert!(!Arc::ptr_eq(&of("a"), &of("b")));
    }

    #[test]
    fn many_other_tokens_do_not_reset_what_a_token_has_used() {
        let mut limits = crate::Config::default().limits;
        limits.bytes_per_day = 1_048_576;
        let usages = Usages::new(TokenLimits::new(&limits));
        let (today, tomorrow) = (Time::from_millis(DAY_MS * 20_000), Time::from_millis(DAY_MS * 20_001));
        usages.of("sent", false, today).received(1_048_576, today).expect("the first bytes");
        usages.of("injected", false, today).inject(Instant::now() + Duration::from_secs(3600)).expect("the first");
        let kept = |token_id: &str| lock(&usages.known).by_token.contains_key(token_id);
        for other in 0..3 * DROP_MIN {
            usages.of(&format!("other {other}"), false, today);
        }
        assert!(usages.of("sent", false, today).received(1, today).is_err(), "the count was reset");
        assert!(kept("injected") && !kept("other 0"));
        assert!(lock(&usages.known).by_token.len() <= DROP_MIN);
        for other in 0..3 * DROP_MIN {
            usages.of(&format!("more {other}"), false, tomorrow);
        }
        assert!(!kept("sent") && kept("injected"));
    }

    #[test]
    fn the_map_is_rarely_scanned_even_if_nothing_can_be_dropped() {
        let usages = Usages::new(TokenLimits::new(&crate::Config::default().limits));
        for token in 0..=DROP_MIN {
            usages.of(&token.to_string(), false, Time::ZERO).received(1, Time::ZERO).expect("a byte");
        }
        let known = lock(&usages.known);
        assert_eq!((known.by_token.len(), known.drop_at), (DROP_MIN + 1, 2 * DROP_MIN));
    }
}
