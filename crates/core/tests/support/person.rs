//! A person's mailbox: nobody takes mail out of it; what closes goes out at once, and all of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bellwire_core::notification::NotificationKind;
use bellwire_core::subscriber::SubscriberId;
use bellwire_core::{
    Effect, Event, EventId, Ids, Input, Mailbox, MailboxContext, MailboxKind, Notification, Severity, Subscribers,
    Time, Verdict,
};

use super::custom::subscribers;
use super::steps::{EventStep, Step, Timeline};

type Letter = (SubscriberId, EventId);

pub(crate) struct Person {
    mailbox: Mailbox,
    context: MailboxContext,
    now: Time,
    /// Letters that did not go out yet, and until when they may be held.
    held: HashMap<Letter, Time>,
    sent: HashSet<Letter>,
    /// Repeats that were counted and are not told.
    untold: HashMap<Letter, u64>,
    suppressed: HashSet<EventId>,
    suppressed_told: u64,
    /// Repeats of subscribers that nobody knew any more, told in one line.
    orphaned_told: u64,
}

impl Person {
    pub(crate) fn new(timeline: &Timeline) -> Self {
        let set = Subscribers::new(subscribers(&timeline.customs, &[]));
        Self {
            mailbox: Mailbox::new(MailboxKind::Person, u128::from(timeline.seed).to_le_bytes()),
            context: MailboxContext::new(Arc::new(set), Ids::seeded(timeline.seed.into())),
            now: Time::from_millis(1_767_000_000_000),
            held: HashMap::new(),
            sent: HashSet::new(),
            untold: HashMap::new(),
            suppressed: HashSet::new(),
            suppressed_told: 0,
            orphaned_told: 0,
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Publish { event, times, .. } => (0..*times).for_each(|number| self.publish(event, number)),
            Step::Sleep(millis) => self.now = self.now.plus(*millis),
            Step::Rewind(millis) => self.now = Time::from_millis(self.now.as_millis() - *millis as i64),
            Step::Run(millis) => self.run_until(self.now.plus(*millis)),
            Step::Tick => self.handle(Input::Time),
            Step::Reload { customs, without, forgetting } => {
                let next = subscribers(customs, without);
                let next = if *forgetting { Subscribers::new(next) } else { self.context.subscribers.reloaded(next) };
                self.context.subscribers = Arc::new(next);
            }
            _ => {}
        }
    }

    /// Serves every timer, until nothing is left to do.
    pub(crate) fn drain(&mut self) {
        for _ in 0..3_000 {
            if self.mailbox.wakes_at() == Time::NEVER {
                assert!(self.held.is_empty(), "{:?} never went out", self.held);
                assert_eq!(self.untold.values().sum::<u64>(), self.orphaned_told, "{:?} were never told", self.untold);
                assert_eq!(self.suppressed.len() as u64, self.suppressed_told);
                assert!(self.mailbox.pending().is_empty());
                return;
            }
            self.run_until(self.mailbox.wakes_at());
        }
        panic!("timers never come to an end");
    }

    fn run_until(&mut self, until: Time) {
        while self.mailbox.wakes_at() <= until {
            self.now = self.now.max(self.mailbox.wakes_at());
            self.handle(Input::Time);
        }
        self.now = until.max(self.now);
    }

    fn publish(&mut self, step: &EventStep, number: u32) {
        let mut payload = step.payload.clone();
        if step.distinct {
            payload["n"] = number.into();
        }
        let kind = if number.is_multiple_of(2) { step.kind } else { "agent.input.needed" };
        let event = Event::new(kind, step.source, Severity::Error, payload).expect("the pools hold what is allowed");
        let event = event.with_id(self.context.ids.event(self.now));
        self.handle(Input::Event(&event));
    }

    fn handle(&mut self, input: Input<'_>) {
        self.context.now = self.now;
        self.mailbox.handle(input, &mut self.context).expect("no message is sent to a person");
        while let Some(effect) = self.context.poll() {
            match effect {
                Effect::Verdict { event, subscriber, verdict } => self.decided((subscriber, event), verdict),
                Effect::Superseded { event, subscriber, .. } => {
                    let older = (subscriber, event);
                    assert!(self.held.remove(&older).is_some(), "{older:?} was superseded and did not wait");
                    self.untold.remove(&older);
                }
                Effect::Ready(notification) => self.sends(&notification),
                Effect::Decided { .. } | Effect::Waiting(_) => {}
                other => panic!("{other:?} is not for a person"),
            }
        }
        let late = self.held.iter().find(|(_, due)| **due <= self.now);
        assert!(late.is_none(), "{late:?} was due");
        assert!(self.mailbox.wakes_at() > self.now);
    }

    fn decided(&mut self, letter: Letter, verdict: Verdict) {
        match verdict {
            // What is queued went out before its verdict.
            Verdict::Queued { .. } => assert!(self.sent.contains(&letter), "{letter:?} did not go out"),
            Verdict::Held { until, .. } => drop(self.held.insert(letter, until)),
            Verdict::Duplicate { of, .. } => *self.untold.entry((letter.0, of)).or_default() += 1,
            Verdict::Suppressed => drop(self.suppressed.insert(letter.1)),
            Verdict::Filtered(_) => {}
        }
    }

    fn sends(&mut self, notification: &Notification) {
        if let NotificationKind::LeftOut(counts) = &notification.kind {
            assert_eq!(counts.notifications, 0, "a person's mail does not wait");
            self.suppressed_told += counts.storms.iter().map(|(_, events)| u64::from(*events)).sum::<u64>();
            self.suppressed_told += u64::from(counts.other_storms);
            self.orphaned_told += u64::from(counts.repeats);
        }
        for entry in &notification.events {
            let letter = (notification.subscriber.clone(), entry.event);
            if entry.merged > 0 {
                let untold = self.untold.get_mut(&letter).unwrap_or_else(|| panic!("{letter:?} was never repeated"));
                *untold = untold.checked_sub(entry.merged.into()).expect("no more is told than was counted");
            }
            if notification.kind == NotificationKind::Events {
                self.held.remove(&letter);
                assert!(self.sent.insert(letter), "something went out twice");
            }
        }
    }
}
