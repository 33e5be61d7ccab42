use std::collections::HashMap;
use std::sync::Arc;

use bellwire_core::Time;
use bellwire_store::SubscriberCounts;

const HOUR_MS: i64 = 60 * 60 * 1000;
const HOURS: usize = 24;
/// The maximum number of counted subscribers. Those that were removed are among them, until the hub starts again.
const SUBSCRIBERS_MAX: usize = 1_000;

/// The counts of each subscriber, by hour.
#[derive(Default)]
pub(super) struct SubscriberHours(HashMap<Arc<str>, [Hour; HOURS]>);

/// The counts of one hour. A slot is used again after a day.
#[derive(Copy, Clone, Default)]
struct Hour {
    /// Counted from 1970.
    number: i64,
    verdicts: [u64; 5],
    injected: u64,
}

/// The counts of a subscriber in the last 24 hours.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastDay {
    pub(crate) since: Time,
    /// In the order of `VerdictKind::ALL`.
    pub(crate) verdicts: [u64; 5],
    /// Notifications that were shown to agents.
    pub(crate) injected: u64,
}

/// The beginning of the first hour that counts.
pub(super) fn first_hour(now: Time) -> Time {
    Time::from_millis((hour(now) - HOURS as i64 + 1) * HOUR_MS)
}

fn hour(now: Time) -> i64 {
    now.as_millis().div_euclid(HOUR_MS)
}

impl SubscriberHours {
    pub(super) fn add(&mut self, counts: &[SubscriberCounts], now: Time) {
        let number = hour(now);
        for one in counts {
            if self.0.len() >= SUBSCRIBERS_MAX && !self.0.contains_key(&one.subscriber) {
                continue;
            }
            let hours = self.0.entry(one.subscriber.clone()).or_default();
            let slot = &mut hours[number.rem_euclid(HOURS as i64) as usize];
            if slot.number != number {
                *slot = Hour { number, ..Hour::default() };
            }
            slot.injected += one.injected as u64;
            slot.verdicts.iter_mut().zip(one.verdicts).for_each(|(sum, count)| *sum += count as u64);
        }
    }

    pub(super) fn of(&self, subscriber: &str, now: Time) -> LastDay {
        let first = hour(now) - HOURS as i64;
        let hours = self.0.get(subscriber).into_iter().flatten().filter(|hour| hour.number > first);
        hours.fold(LastDay { since: Time::ZERO, verdicts: [0; 5], injected: 0 }, |mut day, hour| {
            day.verdicts.iter_mut().zip(hour.verdicts).for_each(|(sum, count)| *sum += count);
            LastDay { injected: day.injected + hour.injected, ..day }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_count_for_a_day_and_their_slots_are_used_again() {
        let (mut hours, start) = (SubscriberHours::default(), Time::from_millis(1_767_454_200_000));
        let counts = [SubscriberCounts { subscriber: "x".into(), verdicts: [1, 0, 0, 0, 2], injected: 3 }];
        let later = |hours: u64| start.plus(hours * HOUR_MS as u64);
        hours.add(&counts, start);
        hours.add(&counts, later(1));
        assert_eq!(hours.of("x", later(23)).verdicts, [2, 0, 0, 0, 4]);
        assert_eq!((hours.of("x", later(24)).injected, hours.of("x", later(25)).injected), (3, 0));
        hours.add(&counts, later(24));
        assert_eq!((hours.of("x", later(24)).injected, hours.of("other", start).injected), (6, 0));
        assert!(first_hour(later(24)) <= later(1) && first_hour(later(24)) > start);
    }
}
