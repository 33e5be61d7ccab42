//! The hub's time. It follows the wall clock forwards and never runs backwards while the hub runs.
//!
//! A wall clock can be set back by days. Windows, reminders and rate limits would then stand still until the old time
//! returned, so time goes on from the last `now` by the monotonic clock until the wall clock has caught up. A restart is
//! where a wrong clock ends: if the database holds times far ahead of the wall clock, the wall clock is believed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwire_core::Time;

/// Stored times that are ahead of the wall clock by no more than this are believed at a start.
pub(crate) const AHEAD_MAX_MS: u64 = 60_000;

/// Reads the wall clock and a monotonic clock, and makes one time of both. Clones share it.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> Time + Send + Sync>,
    monotonic: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// The latest `now`, and the value of the monotonic clock at that moment.
    last: Arc<Mutex<Option<(Time, Duration)>>>,
}

impl Clock {
    /// A clock made of these two. The monotonic one counts from any beginning.
    pub fn new(
        wall: impl Fn() -> Time + Send + Sync + 'static,
        monotonic: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self { wall: Arc::new(wall), monotonic: Arc::new(monotonic), last: Arc::default() }
    }

    /// A clock that moves only when the wall clock does, for tests that set the time.
    pub fn set_by(wall: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self::new(wall, || Duration::ZERO)
    }

    /// The larger of the wall clock and the last `now` plus the monotonic time since.
    pub fn now(&self) -> Time {
        let (wall, monotonic) = ((self.wall)(), (self.monotonic)());
        let mut last = self.lock();
        let carried = last.map(|(time, at)| time.plus(millis(monotonic.saturating_sub(at))));
        let now = carried.map_or(wall, |carried| carried.max(wall));
        *last = Some((now, monotonic));
        now
    }

    /// Starts with a database whose newest time is this. Returns by how many milliseconds that is ahead of the wall clock
    /// if that is too much; rows with times in the future must then be treated as rows of now.
    pub(crate) fn start(&self, newest: Option<Time>) -> Option<u64> {
        let (wall, monotonic) = ((self.wall)(), (self.monotonic)());
        let newest = newest.unwrap_or(wall);
        let ahead = newest.millis_since(wall);
        let believed = if ahead > AHEAD_MAX_MS { wall } else { newest.max(wall) };
        *self.lock() = Some((believed, monotonic));
        (ahead > AHEAD_MAX_MS).then_some(ahead)
    }

    /// No code panics while it holds the lock, so the value is consistent even if the lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, Option<(Time, Duration)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    /// A clock, and the two it is made of, in milliseconds.
    fn clock() -> (Clock, Arc<AtomicI64>, Arc<AtomicI64>) {
        let (wall, monotonic) = (Arc::new(AtomicI64::new(10 * DAY_MS)), Arc::new(AtomicI64::new(77)));
        let (read_wall, read_monotonic) = (wall.clone(), monotonic.clone());
        let clock = Clock::new(
            move || Time::from_millis(read_wall.load(Ordering::SeqCst)),
            move || Duration::from_millis(read_monotonic.load(Ordering::SeqCst).unsigned_abs()),
        );
        (clock, wall, monotonic)
    }

    #[test]
    fn time_goes_on_when_the_wall_clock_is_set_back_and_follows_it_forwards() {
        let (clock, wall, monotonic) = clock();
        let start = clock.now();
        wall.fetch_sub(3 * DAY_MS, Ordering::SeqCst);
        assert_eq!(clock.now(), start);
        monotonic.fetch_add(1_500, Ordering::SeqCst);
        wall.fetch_add(1_500, Ordering::SeqCst);
        assert_eq!(clock.now(), start.plus(1_500));
        wall.fetch_add(4 * DAY_MS, Ordering::SeqCst);
        assert_eq!(clock.now(), Time::from_millis(11 * DAY_MS + 1_500));
    }

    #[test]
    fn a_start_believes_stored_times_that_are_a_minute_ahead_and_no_more() {
        let (clock, wall, _) = clock();
        let wall = Time::from_millis(wall.load(Ordering::SeqCst));
        assert_eq!(clock.start(Some(wall.plus(60_000))), None);
        assert_eq!(clock.now(), wall.plus(60_000));
        assert_eq!(clock.start(Some(wall.plus(60_001))), Some(60_001));
        assert_eq!(clock.now(), wall);
        assert_eq!((clock.start(Some(Time::ZERO)), clock.start(None)), (None, None));
        assert_eq!(clock.now(), wall);
    }
}
