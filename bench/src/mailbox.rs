//! Events per second through mailboxes, with and without injections.
//!
//! The ceiling is the minimum work of any deduplication: hash the payload text with a keyed hash and look it up in one
//! map. JSON parsing is measured too, because a hub parses every event before it can decide: deciding is not the
//! bottleneck while it takes less time than parsing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwire_core::{Event, EventDraft, Inject, InjectionPoint, Mailbox, Time};
use serde_json::Value;

use crate::events::{START, draft};
use crate::mailbox_driver::{MailboxDriver, VerdictCounts, mailbox};
use crate::measure::{Laps, RunMode, TableRow, per_second, print_section};
use crate::mixes::{BATCHED, DUPLICATE, Mix, RECURRING, UNIQUE};

const MAILBOXES: usize = 20;
const EVENTS_EACH: usize = 1_000;
/// Each mailbox gets an injection after this many events.
const EVENTS_PER_INJECTION: usize = 50;
/// The injection points, used in turn.
const POINTS: [InjectionPoint; 4] =
    [InjectionPoint::AfterTool, InjectionPoint::AfterTool, InjectionPoint::TurnEnd, InjectionPoint::TurnStart];

pub(crate) fn run(mode: RunMode) {
    print_section("mailbox", "20 mailboxes, 15 bundled subscribers, an injection every 50 events of a mailbox");
    for mix in [UNIQUE, DUPLICATE, BATCHED, RECURRING] {
        measure(&mix, mode.laps(25));
    }
}

fn measure(mix: &Mix, laps: usize) {
    let events = mix.events(MAILBOXES, EVENTS_EACH);
    let payloads: Vec<String> = events.iter().map(|event| payload_text(event)).collect();
    let drafts: Vec<String> = events.iter().map(|event| draft(event).to_string()).collect();
    let mut seen: HashMap<&str, u32> = payloads.iter().map(|text| (text.as_str(), 0)).collect();
    let [mut publishing, mut both, mut ceiling, mut parsing] = [(); 4].map(|()| Laps::of(events.len()));
    let mut counts = VerdictCounts::default();
    for _ in 0..laps {
        let pass = Pass::run(mix, &events, MAILBOXES);
        publishing.add(pass.publishing);
        both.add(pass.publishing + pass.injecting);
        counts = pass.counts;
        ceiling.time(|| payloads.iter().for_each(|text| *seen.get_mut(text.as_str()).expect("every key exists") += 1));
        parsing.time(|| drafts.iter().filter(|text| serde_json::from_str::<EventDraft>(text).is_ok()).count());
    }
    println!("  {}: {}", mix.name, counts.shares(events.len()));
    let against = |laps: &Laps| {
        let [of_parsing, of_ceiling] = [&parsing, &ceiling].map(|other| other.best() / laps.best());
        format!("{of_parsing:.2} of parsing, {of_ceiling:.2} of the ceiling")
    };
    let row = |what, laps: &Laps| TableRow::of(what, laps, per_second("events"));
    row("  publishing", &publishing).against(against(&publishing)).aim(mix.aim).print();
    row("  publishing and injecting", &both).against(against(&both)).print();
    row("  parsing the events from JSON", &parsing).print();
    row("  ceiling: hash the payload, look it up", &ceiling).print();
}

/// One pass over the events of a mix with new mailboxes.
pub(crate) struct Pass {
    pub(crate) publishing: Duration,
    pub(crate) injecting: Duration,
    pub(crate) counts: VerdictCounts,
}

impl Pass {
    pub(crate) fn run(mix: &Mix, events: &[Arc<Event>], mailboxes: usize) -> Self {
        let mut driver = MailboxDriver::new(events);
        let mut mailboxes: Vec<Mailbox> = (0..mailboxes).map(mailbox).collect();
        let (mut publishing, mut injecting) = (Duration::ZERO, Duration::ZERO);
        let mut now = START;
        for (events, point) in events.chunks(mailboxes.len() * EVENTS_PER_INJECTION).zip(POINTS.into_iter().cycle()) {
            let request = Inject::new(point, "call").expect("a short call id is right");
            let start = Instant::now();
            now = publish_in_turn(&mut driver, &mut mailboxes, events, now, mix.gap_ms);
            let published = Instant::now();
            mailboxes.iter_mut().for_each(|mailbox| drop(driver.inject(mailbox, &request, now)));
            publishing += published - start;
            injecting += published.elapsed();
        }
        Self { publishing, injecting, counts: driver.counts }
    }
}

/// Publishes the events to the mailboxes in turn; returns the virtual time after the last.
fn publish_in_turn(
    driver: &mut MailboxDriver,
    mailboxes: &mut [Mailbox],
    events: &[Arc<Event>],
    mut now: Time,
    gap_ms: u64,
) -> Time {
    for events in events.chunks(mailboxes.len()) {
        mailboxes.iter_mut().zip(events).for_each(|(mailbox, event)| driver.publish(mailbox, event, now));
        now = now.plus(gap_ms);
    }
    now
}

impl VerdictCounts {
    /// The verdicts in percent of the events, as printed text.
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
