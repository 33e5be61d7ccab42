//! What the hub did, per minute and per subscriber, for the last 24 hours. It is kept in memory: a start begins anew.

mod latency;
mod subscribers;

pub(crate) use subscribers::LastDay;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellwire_core::Time;
use bellwire_core::verdict::VerdictKind;
use bellwire_store::{CommitReport, DeliveryState};

use self::latency::Latencies;
use self::subscribers::SubscriberHours;
use crate::clock;

const MINUTE_MS: i64 = 60_000;
/// How many minutes are kept.
pub(crate) const MINUTES_MAX: usize = 24 * 60;

/// How a delivery can end, in the order of [`Minute::deliveries`].
pub(crate) const OUTCOMES: [DeliveryState; 5] = [
    DeliveryState::Sent,
    DeliveryState::Failed,
    DeliveryState::Unknown,
    DeliveryState::Skipped,
    DeliveryState::Cancelled,
];

/// The counts of one minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Minute {
    pub(crate) events: u64,
    /// In the order of [`VerdictKind::ALL`].
    pub(crate) verdicts: [u64; 5],
    pub(crate) injections: u64,
    pub(crate) items: u64,
    pub(crate) tokens: u64,
    pub(crate) saved_tokens: u64,
    pub(crate) latencies: Latencies,
    /// In the order of [`OUTCOMES`].
    pub(crate) deliveries: [u64; 5],
    /// The queues, once they were looked at in this minute.
    pub(crate) queues: Option<Queues>,
}

/// What waited when the hub looked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queues {
    /// Notifications for agents.
    pub(crate) pending: u64,
    /// The age of the oldest of them.
    pub(crate) oldest_pending_seconds: u64,
    /// For how long the oldest due delivery has waited.
    pub(crate) oldest_delivery_seconds: u64,
}

/// The counters. The writer adds to them after each commit.
pub(crate) struct Statistics {
    /// The start: time goes on from here with the monotonic clock, so that a changed wall clock leaves no gaps.
    started: (Instant, Time),
    counts: Mutex<Counts>,
}

struct Counts {
    /// The minute of the last entry, counted from 1970.
    last: i64,
    minutes: VecDeque<Minute>,
    subscribers: SubscriberHours,
}

/// The minutes of an answer, oldest first.
pub(crate) struct Series {
    /// Since when the hub counts.
    pub(crate) since: Time,
    /// The beginning of the first minute.
    pub(crate) start: Time,
    pub(crate) minutes: Vec<Minute>,
}

impl Statistics {
    pub(crate) fn new() -> Self {
        let now = clock::now();
        let counts = Counts {
            last: now.as_millis().div_euclid(MINUTE_MS),
            minutes: VecDeque::from([Minute::default()]),
            subscribers: SubscriberHours::default(),
        };
        Self { started: (Instant::now(), now), counts: Mutex::new(counts) }
    }

    /// Counts a commit.
    pub(crate) fn committed(&self, report: &CommitReport) {
        if report.failed.is_some()
            || (report.events + report.notifications + report.injections == 0 && report.ended_deliveries.is_empty())
        {
            return;
        }
        let now = self.now();
        let mut counts = self.counts(now);
        counts.subscribers.add(&report.subscribers, now);
        let minute = counts.current();
        minute.events += report.events as u64;
        for (kind, count) in &report.verdicts {
            let at = VerdictKind::ALL.iter().position(|one| one == kind);
            at.into_iter().for_each(|at| minute.verdicts[at] += *count as u64);
        }
        minute.injections += report.injections as u64;
        minute.items += report.injected.items as u64;
        minute.tokens += report.injected.tokens as u64;
        minute.saved_tokens += report.injected.saved_tokens as u64;
        for (state, count) in &report.ended_deliveries {
            let at = OUTCOMES.iter().position(|one| one == state);
            at.into_iter().for_each(|at| minute.deliveries[at] += *count as u64);
        }
    }

    /// Counts how long an injection took.
    pub(crate) fn injected(&self, took: Duration) {
        self.counts(self.now()).current().latencies.add(took);
    }

    /// Notes what waits now.
    pub(crate) fn looked(&self, queues: Queues) {
        self.counts(self.now()).current().queues = Some(queues);
    }

    /// The last minutes, the current one included; fewer if the hub has run for less.
    pub(crate) fn series(&self, minutes: usize) -> Series {
        let counts = self.counts(self.now());
        let first = counts.minutes.len().saturating_sub(minutes);
        let kept: Vec<Minute> = counts.minutes.range(first..).cloned().collect();
        let start = (counts.last + 1 - kept.len() as i64) * MINUTE_MS;
        Series { since: self.started.1, start: Time::from_millis(start), minutes: kept }
    }

    /// The counts of a subscriber in the last 24 hours, in whole hours and the current one.
    pub(crate) fn last_day(&self, subscriber: &str) -> LastDay {
        let now = self.now();
        let since = self.started.1.max(subscribers::first_hour(now));
        LastDay { since, ..self.counts(now).subscribers.of(subscriber, now) }
    }

    fn now(&self) -> Time {
        let (instant, time) = self.started;
        time.plus(u64::try_from(instant.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The counts, with a current minute. No code panics while it holds the lock.
    fn counts(&self, now: Time) -> MutexGuard<'_, Counts> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.advance(now.as_millis().div_euclid(MINUTE_MS));
        counts
    }
}

impl Counts {
    fn advance(&mut self, minute: i64) {
        let passed = usize::try_from(minute - self.last).unwrap_or(0);
        for _ in 0..passed.min(MINUTES_MAX) {
            self.minutes.push_back(Minute::default());
        }
        self.minutes.drain(..self.minutes.len().saturating_sub(MINUTES_MAX));
        self.last = self.last.max(minute);
    }

    fn current(&mut self) -> &mut Minute {
        if self.minutes.is_empty() {
            self.minutes.push_back(Minute::default());
        }
        let last = self.minutes.len() - 1;
        &mut self.minutes[last]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_in_which_nothing_happened_are_zero_and_a_day_is_kept() {
        let statistics = Statistics::new();
        let begin = statistics.counts(statistics.now()).last;
        let mut counts = statistics.counts(statistics.now());
        counts.current().events = 7;
        counts.advance(begin + 3);
        counts.current().events = 2;
        let events: Vec<u64> = counts.minutes.iter().map(|minute| minute.events).collect();
        assert_eq!(events, [7, 0, 0, 2]);
        counts.advance(begin + 3 + MINUTES_MAX as i64 - 1);
        assert_eq!((counts.minutes.len(), counts.minutes[0].events), (MINUTES_MAX, 2));
        counts.advance(begin + 1_000_000);
        assert!(counts.minutes.len() == MINUTES_MAX && counts.minutes.iter().all(|minute| minute.events == 0));
        counts.advance(begin);
        assert_eq!(counts.last, begin + 1_000_000, "time does not go back");
    }
}
