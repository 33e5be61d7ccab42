//! How fast one token may publish.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bellwire_core::Time;

/// A bucket per token: so many events a second for ever, so many at once.
pub struct PublishLimit {
    per_second: u64,
    burst: u64,
    /// The moment at which each token's bucket would be empty again, in microseconds.
    buckets: Mutex<HashMap<String, i64>>,
}

const BUCKETS_MAX: usize = 10_000;

impl PublishLimit {
    /// A limit; 0 a second = none.
    pub fn new(per_second: u64, burst: u64) -> Self {
        Self { per_second, burst: burst.max(1), buckets: Mutex::default() }
    }

    /// Lets these events pass, or says how many seconds to wait. Events that do not pass cost nothing.
    pub(crate) fn pass(&self, token_id: &str, events: usize, now: Time) -> Result<(), u64> {
        if self.per_second == 0 {
            return Ok(());
        }
        let now = now.as_millis().saturating_mul(1000);
        let cost = |events: u64| (events.saturating_mul(1_000_000) / self.per_second) as i64;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, empty_at| *empty_at > now);
        }
        let empty_at = buckets.get(token_id).copied().unwrap_or(now).max(now);
        let after = empty_at + cost(events as u64);
        let above = after - now - cost(self.burst);
        if above > 0 {
            return Err(above.div_euclid(1_000_000).unsigned_abs() + 1);
        }
        buckets.insert(token_id.to_owned(), after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let limit = PublishLimit::new(1000, 5000);
        let at = Time::from_millis;
        assert_eq!(limit.pass("t", 5000, at(0)), Ok(()));
        assert_eq!(limit.pass("t", 1, at(0)), Err(1));
        assert_eq!(limit.pass("other", 5000, at(0)), Ok(()));
        assert_eq!(limit.pass("t", 1000, at(1000)), Ok(()));
        assert_eq!(limit.pass("t", 3000, at(1000)), Err(4));
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = PublishLimit::new(0, 0);
        assert_eq!(limit.pass("t", usize::MAX, Time::ZERO), Ok(()));
    }
}
