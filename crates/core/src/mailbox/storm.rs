//! Rate limit per source: 100 events a second, bursts of 500.

use serde::{Deserialize, Serialize};

use crate::Time;

/// The sustained rate: one event per this many milliseconds.
pub(crate) const MILLIS_PER_EVENT: u64 = 10;
/// How many events may arrive at once.
pub(crate) const BURST: u64 = 500;
/// The most sources tracked; the one with the emptiest bucket is dropped first.
const SOURCES_MAX: usize = 64;

/// One leaky bucket per source, stored as the time at which it is empty again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Storm {
    buckets: Vec<Bucket>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Bucket {
    /// The keyed hash of the source.
    source: u64,
    empty_at: Time,
}

/// How far a source exceeds its rate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Within the allowance.
    Calm,
    /// Beyond the allowance: only critical events pass, on a second allowance of the same size.
    High,
    /// Beyond the second allowance: nothing passes.
    Flood,
}

impl Pressure {
    /// Whether an event is suppressed.
    pub(crate) fn refuses(self, critical: bool) -> bool {
        match self {
            Self::Calm => false,
            Self::High => !critical,
            Self::Flood => true,
        }
    }
}

impl Storm {
    /// Counts one event against its source. A suppressed event costs nothing.
    pub(crate) fn count(&mut self, source: u64, now: Time, critical: bool) -> Pressure {
        let bucket = self.bucket(source, now);
        let level = bucket.empty_at.max(now).plus(MILLIS_PER_EVENT);
        let above = level.millis_since(now);
        let pressure = match above {
            _ if above <= BURST * MILLIS_PER_EVENT => Pressure::Calm,
            _ if above <= 2 * BURST * MILLIS_PER_EVENT => Pressure::High,
            _ => Pressure::Flood,
        };
        if pressure == Pressure::Calm || (pressure == Pressure::High && critical) {
            bucket.empty_at = level;
        }
        pressure
    }

    /// Makes every bucket empty this many milliseconds earlier.
    pub(crate) fn set_back(&mut self, millis: u64) {
        self.buckets.iter_mut().for_each(|bucket| bucket.empty_at = bucket.empty_at.minus(millis));
    }

    /// Frees the buckets that are empty.
    pub(crate) fn compact(&mut self, now: Time) {
        self.buckets.retain(|bucket| bucket.empty_at > now);
        self.buckets.shrink_to_fit();
    }

    fn bucket(&mut self, source: u64, now: Time) -> &mut Bucket {
        if let Some(at) = self.buckets.iter().position(|bucket| bucket.source == source) {
            return &mut self.buckets[at];
        }
        if self.buckets.len() >= SOURCES_MAX {
            self.make_room(now);
        }
        self.buckets.push(Bucket { source, empty_at: Time::ZERO });
        self.buckets.last_mut().expect("a bucket was pushed on the line above")
    }

    fn make_room(&mut self, now: Time) {
        self.buckets.retain(|bucket| bucket.empty_at > now);
        if self.buckets.len() >= SOURCES_MAX
            && let Some(emptiest) = (0..self.buckets.len()).min_by_key(|at| self.buckets[*at].empty_at)
        {
            self.buckets.remove(emptiest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_500_passes_and_then_100_a_second() {
        let mut storm = Storm::default();
        let mut passed = |millis: i64| {
            let now = Time::from_millis(1_000_000 + millis);
            (0..1000).filter(|_| storm.count(1, now, false) == Pressure::Calm).count()
        };
        assert_eq!(passed(0), 500);
        assert_eq!(passed(1_000), 100);
        assert_eq!(passed(60_000), 500);
    }

    #[test]
    fn critical_events_have_a_second_allowance() {
        let mut storm = Storm::default();
        let now = Time::from_millis(1_000_000);
        for _ in 0..1000 {
            storm.count(1, now, false);
        }
        let critical = (0..2000).filter(|_| storm.count(1, now, true) == Pressure::High).count();
        assert_eq!(critical, 500);
        assert_eq!(storm.count(1, now, true), Pressure::Flood);
    }

    #[test]
    fn at_the_end_of_time_events_still_pass() {
        assert_eq!(Storm::default().count(1, Time::NEVER, false), Pressure::Calm);
    }

    #[test]
    fn the_number_of_tracked_sources_is_bounded() {
        let mut storm = Storm::default();
        for source in 0..1000 {
            storm.count(source, Time::from_millis(1_000_000), false);
        }
        assert_eq!(storm.buckets.len(), SOURCES_MAX);
    }
}
