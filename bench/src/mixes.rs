//! Four days in the life of a hub, written before the clock starts: nothing repeats, nearly everything repeats, nearly
//! everything joins a batch, everything comes back when it has just been forgotten.
//!
//! Time is virtual. A mailbox gets its events so far apart that no source is taken for a storm, and windows close as
//! they would.

use std::sync::Arc;

use bellwire_core::{Event, Ids};

use crate::events::{START, change, command, failure, occasional, subagent, success, task, unheard};

/// What happens, and how often.
pub(crate) struct Mix {
    pub(crate) name: &'static str,
    /// How far apart two events of one mailbox are.
    pub(crate) gap_ms: u64,
    /// How fast it should go, where somebody has said so.
    pub(crate) aim: Option<&'static str>,
    event: fn(usize) -> Event,
}

/// No two events are alike, and they are for many subscribers; one in twenty is for none.
pub(crate) const UNIQUE: Mix =
    Mix { name: "unique", gap_ms: 100, aim: Some("at least 1 000 000 events/s"), event: unique };

/// Three tools fail and three files change, over and over.
pub(crate) const DUPLICATE: Mix = Mix { name: "duplicate", gap_ms: 100, aim: None, event: duplicate };

/// Five times as fast, and all of it for subscribers that gather before they speak.
pub(crate) const BATCHED: Mix = Mix { name: "batched", gap_ms: 20, aim: None, event: batched };

/// Every file changes again just after its window of ten seconds has closed: nothing is a repeat, all of it is known.
pub(crate) const RECURRING: Mix = Mix { name: "recurring", gap_ms: 40, aim: None, event: recurring };

impl Mix {
    /// One event of the mix; equal numbers give equal events.
    pub(crate) fn event(&self, number: usize) -> Event {
        (self.event)(number)
    }

    /// Events in the order in which they arrive, dealt to the mailboxes one by one.
    pub(crate) fn events(&self, mailboxes: usize, each: usize) -> Vec<Arc<Event>> {
        let mut ids = Ids::seeded(1);
        let dealt = (0..each).flat_map(|turn| (0..mailboxes).map(move |mailbox| (turn, mailbox)));
        let event = |(turn, mailbox): (usize, usize)| {
            let now = START.plus(turn as u64 * self.gap_ms);
            Arc::new((self.event)(mailbox * each + turn).with_id(ids.event(now)).at(now))
        };
        dealt.map(event).collect()
    }
}

/// What an agent at work is told, in the proportions of a busy one: its own calls first, then what happens around it.
fn unique(number: usize) -> Event {
    match number % 20 {
        0..8 => success(number),
        8 | 9 => failure(number),
        10..14 => change(number),
        14 | 15 => command(number),
        16 => task(number),
        17 => subagent(number),
        18 => occasional(number),
        _ => unheard(number),
    }
}

fn duplicate(number: usize) -> Event {
    match number % 6 {
        again @ (0 | 2 | 4) => failure(again),
        again => change(again),
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

    use bellwire_core::{Desk, Effect, Input, Subscribers, Verdict};

    use super::*;
    use crate::mailbox::Round;
    use crate::post::{Tally, mailbox};

    const MAILBOXES: usize = 2;
    const EACH: usize = 600;

    fn played(mix: &Mix) -> Tally {
        Round::play(mix, &mix.events(MAILBOXES, EACH), MAILBOXES).tally
    }

    #[test]
    fn in_the_unique_mix_nothing_repeats_and_no_source_is_a_storm() {
        let tally = played(&UNIQUE);
        assert_eq!((tally.duplicate, tally.suppressed, tally.filtered), (0, 0, 0));
        assert!(tally.held > 0 && tally.queued > 0);
    }

    #[test]
    fn in_the_duplicate_mix_nine_in_ten_events_are_repeats() {
        let tally = played(&DUPLICATE);
        let share = tally.duplicate as f64 / (MAILBOXES * EACH) as f64;
        assert!((0.88..0.96).contains(&share), "{share}");
        assert_eq!(tally.suppressed, 0);
    }

    #[test]
    fn in_the_recurring_mix_what_comes_back_is_news_again() {
        let tally = played(&RECURRING);
        assert_eq!((tally.duplicate, tally.suppressed), (0, 0));
    }

    #[test]
    fn in_the_batched_mix_nine_in_ten_events_join_a_batch_that_is_open() {
        let mut desk = Desk::new(Arc::new(Subscribers::bundled()), Ids::seeded(1));
        let mut mailbox = mailbox(0);
        let (mut joined, mut opened) = (0, HashSet::new());
        for event in BATCHED.events(1, EACH) {
            desk.now = event.timestamp();
            mailbox.handle(Input::Event(&event), &mut desk).expect("nobody is a person here");
            while let Some(effect) = desk.poll() {
                let Effect::Verdict { verdict, .. } = effect else { continue };
                assert!(matches!(verdict, Verdict::Held { .. } | Verdict::Queued { .. }), "{verdict:?}");
                joined += usize::from(!opened.insert(verdict.notification()));
            }
        }
        assert!(joined * 10 > EACH * 9, "{joined} of {EACH}");
    }
}
