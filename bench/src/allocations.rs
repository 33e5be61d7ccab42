//! Allocations per event. An event that matches no subscriber, is filtered or is a duplicate must not allocate.

use std::sync::Arc;

use bellwire_core::{Event, Preferences, Severity};
use serde_json::{Value, json};

use crate::counting::counted;
use crate::events::{START, change, command, event, failure, unmatched, with_ids};
use crate::mailbox_driver::{MailboxDriver, VerdictCounts, mailbox};
use crate::measure::{RunMode, TableRow, print_section};

/// All events have the same timestamp; more than 500 from one source would count as a storm.
const EVENTS: usize = 400;

pub(crate) fn run(_: RunMode) {
    print_section("allocations", "per event, after the mailbox has seen one");
    for case in cases() {
        let allocations = format!("{:.2}", case.measure() as f64 / EVENTS as f64);
        TableRow::exact(case.what, allocations).aim(case.aim).print();
    }
}

struct Case {
    what: &'static str,
    event: fn(usize) -> Event,
    /// The counter that every event must increment by one: proves that the case measures what it names.
    counter: fn(&VerdictCounts) -> u64,
    aim: Option<&'static str>,
}

fn cases() -> [Case; 8] {
    let nothing = |what, event, counter| Case { what, event, counter, aim: Some("0") };
    [
        nothing("nobody listens", unmatched, |counts| counts.effects),
        nothing("filtered: too mild", mild_failure, |counts| counts.filtered),
        nothing("filtered: switched off", command, |counts| counts.filtered),
        nothing("duplicate: by a key from the payload", |_| change(0), |counts| counts.duplicate),
        nothing("duplicate: by the whole payload", |_| checkpoint(), |counts| counts.duplicate),
        nothing("duplicate: a failed call", |_| failure(0), |counts| counts.duplicate),
        nothing("duplicate: a failed call with arguments", failure_with_arguments, |counts| counts.duplicate),
        Case {
            aim: None,
            ..nothing("news: joins a batch of 20 or opens it", change, |counts| counts.held + counts.queued)
        },
    ]
}

impl Case {
    fn measure(&self) -> u64 {
        let events = with_ids((0..=EVENTS).map(self.event));
        let mut driver = MailboxDriver::new(&[]);
        let disabled = Preferences::disabling(["turn_summary"], &driver.context.subscribers);
        driver.context.preferences = Arc::new(disabled.expect("the summary may be switched off"));
        let mut mailbox = mailbox(0);
        let (first, rest) = events.split_first().expect("there is at least one event");
        driver.publish(&mut mailbox, first, START);
        let before = (self.counter)(&driver.counts);
        let (_, counts) = counted(|| rest.iter().for_each(|event| driver.publish(&mut mailbox, event, START)));
        assert_eq!((self.counter)(&driver.counts) - before, EVENTS as u64, "not every event was this: {}", self.what);
        counts.allocations
    }
}

fn mild_failure(number: usize) -> Event {
    let payload = failure(number).payload().as_map().clone();
    event("tool.call.failure", "tool_executor", Severity::Info, payload.into())
}

fn checkpoint() -> Event {
    event("task.checkpoint", "planner", Severity::Info, json!({"message": "the tests pass", "turn": 7}))
}

/// A duplicate for the subscriber, but a new call for the loop detector.
fn failure_with_arguments(number: usize) -> Event {
    let mut payload = Value::Object(failure(0).payload().as_map().clone());
    payload["arguments"] = json!({"query": format!("page {number}"), "limit": 10});
    event("tool.call.failure", "tool_executor", Severity::Error, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unlike times, allocation counts are the same on every machine. The loop detector copies a call's arguments, so
    /// that case is only printed.
    #[test]
    fn an_event_without_a_notification_does_not_allocate() {
        let with_arguments = "duplicate: a failed call with arguments";
        for case in cases().iter().filter(|case| case.aim.is_some() && case.what != with_arguments) {
            assert_eq!(case.measure(), 0, "{}", case.what);
        }
    }
}
