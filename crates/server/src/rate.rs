//! A rate limiter: a sustained rate per second and a burst.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A sustained rate and a burst; `per_second` 0 = no limit.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rate {
    pub(crate) per_second: u64,
    pub(crate) burst: u64,
}

impl Rate {
    /// The time in which the rate allows `count`.
    fn duration(self, count: u64) -> Duration {
        Duration::from_nanos(count.saturating_mul(1_000_000_000) / self.per_second)
    }
}

/// The used part of a rate, as the moment at which nothing is used any more. On the monotonic clock: a wall clock that is
/// set back would block for as long.
#[derive(Debug, Default)]
pub(crate) struct TokenBucket(Mutex<Option<Instant>>);

impl TokenBucket {
    /// Takes `count`, or returns after how many seconds to retry. A refused call takes nothing.
    pub(crate) fn take(&self, rate: Rate, count: u64, now: Instant) -> Result<(), u64> {
        if rate.per_second == 0 {
            return Ok(());
        }
        let mut free_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = free_at.map_or(Duration::ZERO, |free_at| free_at.saturating_duration_since(now));
        let after = used + rate.duration(count);
        let above = after.saturating_sub(rate.duration(rate.burst.max(1)));
        if !above.is_zero() {
            return Err(above.as_secs() + 1);
        }
        *free_at = Some(now + after);
        Ok(())
    }

    /// Whether nothing is used any more.
    pub(crate) fn is_unused(&self, now: Instant) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none_or(|free_at| free_at <= now)
    }

    /// Gives back `count` that were taken.
    pub(crate) fn give_back(&self, rate: Rate, count: u64) {
        if rate.per_second > 0 && count > 0 {
            let mut free_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *free_at = free_at.and_then(|free_at| free_at.checked_sub(rate.duration(count)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 1000, burst: 5000 };

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let (bucket, start) = (TokenBucket::default(), Instant::now());
        let later = start + Duration::from_secs(1);
        assert_eq!(bucket.take(RATE, 5000, start), Ok(()));
        assert_eq!(bucket.take(RATE, 1, start), Err(1));
        assert_eq!(TokenBucket::default().take(RATE, 5000, start), Ok(()));
        assert_eq!(bucket.take(RATE, 1000, later), Ok(()));
        assert_eq!(bucket.take(RATE, 3000, later), Err(4));
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let (bucket, start) = (TokenBucket::default(), Instant::now());
        assert_eq!(bucket.take(RATE, 5000, start), Ok(()));
        bucket.give_back(RATE, 2000);
        assert_eq!(bucket.take(RATE, 2001, start), Err(1));
        assert_eq!(bucket.take(RATE, 2000, start), Ok(()));
    }

    #[test]
    fn zero_is_no_limit() {
        assert_eq!(TokenBucket::default().take(Rate { per_second: 0, burst: 0 }, u64::MAX, Instant::now()), Ok(()));
    }
}
