//! Injections per second: from pending notifications to the rendered block.
//!
//! The reference is the minimum a harness could do instead: serialize the same events as a JSON array.

use bellwire_core::mailbox::PENDING_MAX;
use bellwire_core::{Event, Inject, InjectionPoint, Mailbox, Time};
use serde_json::Value;

use crate::events::{START, change, draft, failure, task, with_ids};
use crate::full_mailbox;
use crate::mailbox_driver::{MailboxDriver, mailbox};
use crate::measure::{Laps, RunMode, TableRow, per_second, print_section};

const INJECTIONS: usize = 500;

pub(crate) fn run(mode: RunMode) {
    print_section("injection", "a block of the default limits, rendered from templates, at after_tool");
    let three = vec![failure(1), change(1), task(1)];
    let ten = (0..10).map(failure).collect();
    measure("three items of one event", three, "showing=\"3\"", mode.laps(25));
    measure("one table of ten failures", ten, "tool_fails[10]{", mode.laps(25));
    measure_full(mode.laps(25));
    full_mailbox::measure(mode);
}

/// A mailbox with as many pending notifications as it holds, each of which is an item of its own.
fn measure_full(laps: usize) {
    let events = with_ids((0..PENDING_MAX).map(task));
    let mut driver = MailboxDriver::new(&events);
    let mut full = mailbox(0);
    for (event, second) in events.iter().zip(0..) {
        driver.publish(&mut full, event, START.plus(second * 1_000));
    }
    assert_eq!(full.pending().len(), PENDING_MAX, "the mailbox is not full");
    let request = Inject::new(InjectionPoint::AfterTool, "call").expect("a short call id is right");
    let now = START.plus(300_000);
    let mut laps_taken = Laps::of(INJECTIONS);
    for _ in 0..laps {
        let mut mailboxes = vec![full.clone(); INJECTIONS];
        laps_taken.time(|| inject_all(&mut driver, &mut mailboxes, &request, now));
    }
    TableRow::of("a mailbox of 200 waiting", &laps_taken, per_second("injections")).print();
}

fn measure(what: &str, events: Vec<Event>, expected: &str, laps: usize) {
    let events = with_ids(events);
    let mut driver = MailboxDriver::new(&events);
    let mut full = mailbox(0);
    events.iter().for_each(|event| driver.publish(&mut full, event, START));
    let request = Inject::new(InjectionPoint::AfterTool, "call").expect("a short call id is right");
    let now = START.plus(1_000);
    let block = driver.inject(&mut full.clone(), &request, now).block;
    assert!(block.contains(expected), "the block does not contain {expected}:\n{block}");

    let json: Vec<Value> = events.iter().map(|event| draft(event)).collect();
    let [mut ours, mut theirs] = [(); 2].map(|()| Laps::of(INJECTIONS));
    for _ in 0..laps {
        let mut mailboxes = vec![full.clone(); INJECTIONS];
        ours.time(|| inject_all(&mut driver, &mut mailboxes, &request, now));
        theirs.time(|| (0..INJECTIONS).map(|_| json_length(&json)).sum::<usize>());
    }
    TableRow::of(what, &ours, per_second("injections"))
        .against(format!("{:.1} times writing the JSON", ours.best() / theirs.best()))
        .print();
}

fn inject_all(driver: &mut MailboxDriver, mailboxes: &mut [Mailbox], request: &Inject, now: Time) -> usize {
    mailboxes.iter_mut().map(|mailbox| driver.inject(mailbox, request, now).block.len()).sum()
}

fn json_length(events: &[Value]) -> usize {
    serde_json::to_string(events).map_or(0, |text| text.len())
}
