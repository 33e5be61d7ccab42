//! How many injections a second: from mail that waits to the block an agent reads.
//!
//! It stands beside the least an agent's harness could do instead: write the same events as a JSON array.

use bellwire_core::{Event, Inject, InjectionPoint, Mailbox, Time};
use serde_json::Value;

use crate::events::{START, change, draft, failure, named, task};
use crate::measure::{Effort, Laps, Row, per_second, print_section};
use crate::post::{Post, mailbox};

const INJECTIONS: usize = 500;

pub(crate) fn run(effort: Effort) {
    print_section("injection", "a block of the default limits, rendered from templates, at after_tool");
    let three = vec![failure(1), change(1), task(1)];
    let ten = (0..10).map(failure).collect();
    measure("three items of one event", three, "showing=\"3\"", effort.laps(25));
    measure("one table of ten failures", ten, "tool_fails[10]{", effort.laps(25));
}

fn measure(what: &str, events: Vec<Event>, expected: &str, laps: usize) {
    let events = named(events);
    let mut post = Post::new(&events);
    let mut full = mailbox(0);
    events.iter().for_each(|event| post.bring(&mut full, event, START));
    let request = Inject::new(InjectionPoint::AfterTool, "call").expect("a short call id is right");
    let now = START.plus(1_000);
    let block = post.inject(&mut full.clone(), &request, now).block;
    assert!(block.contains(expected), "this is not the block that was meant:\n{block}");

    let json: Vec<Value> = events.iter().map(|event| draft(event)).collect();
    let [mut ours, mut theirs] = [(); 2].map(|()| Laps::of(INJECTIONS));
    for _ in 0..laps {
        let mut mailboxes = vec![full.clone(); INJECTIONS];
        ours.time(|| inject_all(&mut post, &mut mailboxes, &request, now));
        theirs.time(|| (0..INJECTIONS).map(|_| json_length(&json)).sum::<usize>());
    }
    Row::of(what, &ours, per_second("injections"))
        .against(format!("{:.1} times writing the JSON", ours.best() / theirs.best()))
        .print();
}

fn inject_all(post: &mut Post, mailboxes: &mut [Mailbox], request: &Inject, now: Time) -> usize {
    mailboxes.iter_mut().map(|mailbox| post.inject(mailbox, request, now).block.len()).sum()
}

fn json_length(events: &[Value]) -> usize {
    serde_json::to_string(events).map_or(0, |text| text.len())
}
