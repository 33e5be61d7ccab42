//! How many events a second go through mailboxes, with and without the agents that take their mail.
//!
//! The ceiling is the least that anything which recognises repeats must do with an event: hash its payload with a keyed
//! hash and look it up, in one table, as a text that is there already. Parsing the events is measured beside it, because
//! a hub has to do that before it can do anything else: what takes less time than parsing is not what holds a hub up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwire_core::{Event, EventDraft, Inject, InjectionPoint, Mailbox, Time};
use serde_json::Value;

use crate::events::{START, draft};
use crate::measure::{Effort, Laps, Row, per_second, print_section};
use crate::mixes::{BATCHED, DUPLICATE, Mix, RECURRING, UNIQUE};
use crate::post::{Post, Tally, mailbox};

const MAILBOXES: usize = 20;
const EVENTS_EACH: usize = 1_000;
/// Each agent takes its mail once in so many events.
const EVENTS_PER_INJECTION: usize = 50;
/// Where agents take their mail, in turn.
const POINTS: [InjectionPoint; 4] =
    [InjectionPoint::AfterTool, InjectionPoint::AfterTool, InjectionPoint::TurnEnd, InjectionPoint::TurnStart];

pub(crate) fn run(effort: Effort) {
    print_section("mailbox", "20 mailboxes, 15 bundled subscribers, an injection every 50 events of a mailbox");
    for mix in [UNIQUE, DUPLICATE, BATCHED, RECURRING] {
        measure(&mix, effort.laps(25));
    }
}

fn measure(mix: &Mix, laps: usize) {
    let events = mix.events(MAILBOXES, EVENTS_EACH);
    let payloads: Vec<String> = events.iter().map(|event| payload_text(event)).collect();
    let drafts: Vec<String> = events.iter().map(|event| draft(event).to_string()).collect();
    let mut seen: HashMap<&str, u32> = payloads.iter().map(|text| (text.as_str(), 0)).collect();
    let [mut publishing, mut both, mut ceiling, mut parsing] = [(); 4].map(|()| Laps::of(events.len()));
    let mut tally = Tally::default();
    for _ in 0..laps {
        let round = Round::play(mix, &events, MAILBOXES);
        publishing.add(round.publishing);
        both.add(round.publishing + round.injecting);
        tally = round.tally;
        ceiling.time(|| payloads.iter().for_each(|text| *seen.get_mut(text.as_str()).expect("it knows all") += 1));
        parsing.time(|| drafts.iter().filter(|text| serde_json::from_str::<EventDraft>(text).is_ok()).count());
    }
    println!("  {}: {}", mix.name, tally.shares(events.len()));
    let against = |laps: &Laps| {
        let [of_parsing, of_ceiling] = [&parsing, &ceiling].map(|other| other.best() / laps.best());
        format!("{of_parsing:.2} of parsing, {of_ceiling:.2} of the ceiling")
    };
    let row = |what, laps: &Laps| Row::of(what, laps, per_second("events"));
    row("  publishing", &publishing).against(against(&publishing)).aim(mix.aim).print();
    row("  publishing and injecting", &both).against(against(&both)).print();
    row("  parsing the events from JSON", &parsing).print();
    row("  ceiling: hash the payload, look it up", &ceiling).print();
}

/// One pass over the events of a mix, with fresh mailboxes.
pub(crate) struct Round {
    pub(crate) publishing: Duration,
    pub(crate) injecting: Duration,
    pub(crate) tally: Tally,
}

impl Round {
    pub(crate) fn play(mix: &Mix, events: &[Arc<Event>], mailboxes: usize) -> Self {
        let mut post = Post::new(events);
        let mut mailboxes: Vec<Mailbox> = (0..mailboxes).map(mailbox).collect();
        let (mut publishing, mut injecting) = (Duration::ZERO, Duration::ZERO);
        let mut now = START;
        for (events, point) in events.chunks(mailboxes.len() * EVENTS_PER_INJECTION).zip(POINTS.into_iter().cycle()) {
            let request = Inject::new(point, "call").expect("a short call id is right");
            let start = Instant::now();
            now = deal(&mut post, &mut mailboxes, events, now, mix.gap_ms);
            let published = Instant::now();
            mailboxes.iter_mut().for_each(|mailbox| drop(post.inject(mailbox, &request, now)));
            publishing += published - start;
            injecting += published.elapsed();
        }
        Self { publishing, injecting, tally: post.tally }
    }
}

/// Brings one event to each mailbox, again and again, and says what time it is then.
fn deal(post: &mut Post, mailboxes: &mut [Mailbox], events: &[Arc<Event>], mut now: Time, gap_ms: u64) -> Time {
    for events in events.chunks(mailboxes.len()) {
        mailboxes.iter_mut().zip(events).for_each(|(mailbox, event)| post.bring(mailbox, event, now));
        now = now.plus(gap_ms);
    }
    now
}

impl Tally {
    /// What the verdicts were, in percent of the events.
    fn shares(&self, events: usize) -> String {
        let percent = |count: u64| format!("{:.0} %", count as f64 * 100.0 / events as f64);
        let [held, queued, duplicate] = [self.held, self.queued, self.duplicate].map(percent);
        let effects = self.effects as f64 / events as f64;
        format!("{held} held, {queued} queued, {duplicate} duplicate; {effects:.1} effects an event")
    }
}

fn payload_text(event: &Event) -> String {
    Value::Object(event.payload().as_map().clone()).to_string()
}
