//! Four workloads, built before the measurement starts: no repeats, nearly all repeats, nearly all joining an open
//! batch, and every event returning just after its dedupe window has closed.
//!
//! Time is virtual. The gap between two events of a mailbox keeps every source below the storm limit and lets windows
//! close.

use std::sync::Arc;

use bellwire_core::{Event, Ids};

use crate::events::{START, change, command, failure, occasional, subagent, success, task, unmatched};

/// One workload.
pub(crate) struct Mix {
    pub(crate) name: &'static str,
    /// Virtual milliseconds between two events of one mailbox.
    pub(crate) gap_ms: u64,
    /// The target rate, printed next to the figure.
    pub(crate) aim: Option<&'static str>,
    event: fn(usize) -> Event,
}

/// All events differ and match many subscribers; one in twenty matches none.
pub(crate) const UNIQUE: Mix =
    Mix { name: "unique", gap_ms: 100, aim: Some("at least 1 000 000 events/s"), event: unique };

/// Three failing tools and three changing files, repeated.
pub(crate) const DUPLICATE: Mix = Mix { name: "duplicate", gap_ms: 100, aim: None, event: duplicate };

/// Five times the rate of the others; every event matches a subscriber with a batch window.
pub(crate) const BATCHED: Mix = Mix { name: "batched", gap_ms: 20, aim: None, event: batched };

/// Every file changes again just after its dedupe window of ten seconds: no event is a repeat, but all closed windows are
/// still in memory.
pub(crate) const RECURRING: Mix = Mix { name: "recurring", gap_ms: 40, aim: None, event: recurring };

impl Mix {
    /// Event `number` of the mix; equal numbers give equal events.
    pub(crate) fn event(&self, number: usize) -> Event {
        (self.event)(number)
    }

    /// `each` events for each of `mailboxes`, in arrival order: one event per mailbox, then the next round.
    pub(crate) fn events(&self, mailboxes: usize, each: usize) -> Vec<Arc<Event>> {
        let mut ids = Ids::seeded(1);
        let order = (0..each).flat_map(|turn| (0..mailboxes).map(move |mailbox| (turn, mailbox)));
        let event = |(turn, mailbox): (usize, usize)| {
            let now = START.plus(turn as u64 * self.gap_ms);
            Arc::new((self.event)(mailbox * each + turn).with_id(ids.event(now)).at(now))
        };
        order.map(event).collect()
    }
}

/// The event types of a busy agent in realistic proportions: mostly its own tool calls, then its surroundings.
fn unique(number: usize) -> Event {
    match number % 20 {
        0..8 => success(number),
        8 | 9 => failure(number),
        10..14 => change(number),
        14 | 15 => command(number),
        16 => task(number),
        17 => subagent(number),
        18 => occasional(number),
        _ => unmatched(number),
    }
}

fn duplicate(number: usize) -> Event {
    match number % 6 {
        repeated @ (0 | 2 | 4) => failure(repeated),
        repeated => change(repeated),
    }
}

fn batched(number: usize) -> Event {
    match number % 6 {
        0 | 1 => success(number),
        2 => command(number),
        _ => change(number),
    }
}

fn recurring(number: usize) -> Event {
    change(number % 255)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bellwire_core::{Effect, Input, MailboxContext, Subscribers, Verdict};

    use super::*;
    use crate::mailbox::Pass;
    use crate::mailbox_driver::{VerdictCounts, mailbox};

    const MAILBOXES: usize = 2;
    const EACH: usize = 600;

    fn run(mix: &Mix) -> VerdictCounts {
        Pass::run(mix, &mix.events(MAILBOXES, EACH), MAILBOXES).counts
    }

    #[test]
    fn the_unique_mix_has_no_repeats_and_no_storms() {
        let counts = run(&UNIQUE);
        assert_eq!((counts.duplicate, counts.suppressed, counts.filtered), (0, 0, 0));
        assert!(counts.held > 0 && counts.queued > 0);
    }

    #[test]
    fn nine_in_ten_events_of_the_duplicate_mix_are_repeats() {
        let counts = run(&DUPLICATE);
        let share = counts.duplicate as f64 / (MAILBOXES * EACH) as f64;
        assert!((0.88..0.96).contains(&share), "{share}");
        assert_eq!(counts.suppressed, 0);
    }

    #[test]
    fn the_recurring_mix_has_no_duplicates() {
        let counts = run(&RECURRING);
        assert_eq!((counts.duplicate, counts.suppressed), (0, 0));
    }

    #[test]
    fn nine_in_ten_events_of_the_batched_mix_join_an_open_batch() {
        let mut context = MailboxContext::new(Arc::new(Subscribers::bundled()), Ids::seeded(1));
        let mut mailbox = mailbox(0);
        let (mut joined, mut opened) = (0, HashSet::new());
        for event in BATCHED.events(1, EACH) {
            context.now = event.timestamp();
            mailbox.handle(Input::Event(&event), &mut context).expect("only a person's message can be refused");
            while let Some(effect) = context.poll() {
                let Effect::Verdict { verdict, .. } = effect else { continue };
                assert!(matches!(verdict, Verdict::Held { .. } | Verdict::Queued { .. }), "{verdict:?}");
                joined += usize::from(!opened.insert(verdict.notification()));
            }
        }
        assert!(joined * 10 > EACH * 9, "{joined} of {EACH}");
    }
}
