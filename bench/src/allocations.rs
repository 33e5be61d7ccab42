//! How often an event asks for memory. What comes to nothing should cost nothing: an event that nobody wants, or that
//! repeats another, needs no memory at all.

use std::sync::Arc;

use bellwire_core::{Event, Preferences, Severity};
use serde_json::{Value, json};

use crate::counting::counted;
use crate::events::{START, change, command, event, failure, named, unheard};
use crate::measure::{Effort, Row, print_section};
use crate::post::{Post, Tally, mailbox};

/// All at one moment; more than 500 from one source would be a storm.
const EVENTS: usize = 400;

pub(crate) fn run(_: Effort) {
    print_section("allocations", "per event, after the mailbox has seen one");
    for case in cases() {
        let allocations = format!("{:.2}", case.measure() as f64 / EVENTS as f64);
        Row::exact(case.what, allocations).aim(case.aim).print();
    }
}

struct Case {
    what: &'static str,
    event: fn(usize) -> Event,
    /// The count that grows by one with every event, so that nothing else is measured by mistake.
    counts: fn(&Tally) -> u64,
    aim: Option<&'static str>,
}

fn cases() -> [Case; 8] {
    let nothing = |what, event, counts| Case { what, event, counts, aim: Some("0") };
    [
        nothing("nobody listens", unheard, |tally| tally.effects),
        nothing("filtered: too mild", mild_failure, |tally| tally.filtered),
        nothing("filtered: switched off", command, |tally| tally.filtered),
        nothing("duplicate: by a key from the payload", |_| change(0), |tally| tally.duplicate),
        nothing("duplicate: by the whole payload", |_| checkpoint(), |tally| tally.duplicate),
        nothing("duplicate: a failed call", |_| failure(0), |tally| tally.duplicate),
        nothing("duplicate: a failed call with arguments", failure_with_arguments, |tally| tally.duplicate),
        Case {
            aim: None,
            ..nothing("news: joins a batch of 20 or opens it", change, |tally| tally.held + tally.queued)
        },
    ]
}

impl Case {
    fn measure(&self) -> u64 {
        let events = named((0..=EVENTS).map(self.event));
        let mut post = Post::new(&[]);
        let disabled = Preferences::disabling(["turn_summary"], &post.desk.subscribers);
        post.desk.preferences = Arc::new(disabled.expect("the summary may be switched off"));
        let mut mailbox = mailbox(0);
        let (first, rest) = events.split_first().expect("there is at least one event");
        post.bring(&mut mailbox, first, START);
        let before = (self.counts)(&post.tally);
        let (_, tally) = counted(|| rest.iter().for_each(|event| post.bring(&mut mailbox, event, START)));
        assert_eq!((self.counts)(&post.tally) - before, EVENTS as u64, "not every event was this: {}", self.what);
        tally.allocations
    }
}

fn mild_failure(number: usize) -> Event {
    let payload = failure(number).payload().as_map().clone();
    event("tool.call.failure", "tool_executor", Severity::Info, payload.into())
}

fn checkpoint() -> Event {
    event("task.checkpoint", "planner", Severity::Info, json!({"message": "the tests pass", "turn": 7}))
}

/// The same news each time, but each time another call to the detector of loops.
fn failure_with_arguments(number: usize) -> Event {
    let mut payload = Value::Object(failure(0).payload().as_map().clone());
    payload["arguments"] = json!({"query": format!("page {number}"), "limit": 10});
    event("tool.call.failure", "tool_executor", Severity::Error, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unlike a time, a number of allocations is the same on every machine. To look at a call's arguments the detector
    /// of loops still copies them, so that case is only printed.
    #[test]
    fn an_event_that_comes_to_nothing_asks_for_no_memory() {
        let looked_at = "duplicate: a failed call with arguments";
        for case in cases().iter().filter(|case| case.aim.is_some() && case.what != looked_at) {
            assert_eq!(case.measure(), 0, "{}", case.what);
        }
    }
}
