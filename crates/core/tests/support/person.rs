//! A person's mailbox: every closed batch is delivered at once and completely.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bellwire_core::notification::NotificationKind;
use bellwire_core::subscriber::SubscriberId;
use bellwire_core::{
    Effect, EventId, Ids, Input, Mailbox, MailboxContext, MailboxKind, Notification, Severity, Subscribers, Time,
    Verdict,
};

use super::custom::subscribers;
use super::steps::{EventStep, Step, Timeline};
use super::texts::event_of;

type EventKey = (SubscriberId, EventId);

pub(crate) struct Person {
    mailbox: Mailbox,
    context: MailboxContext,
    now: Time,
    /// Events not delivered yet, and until when they may be held.
    held: HashMap<EventKey, Time>,
    sent: HashSet<EventKey>,
    /// Repeats counted and not reported.
    unreported: HashMap<EventKey, u64>,
    suppressed: HashSet<EventId>,
    suppressed_reported: u64,
    /// Reported repeats whose subscriber no longer exists.
    orphaned_reported: u64,
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
            unreported: HashMap::new(),
            suppressed: HashSet::new(),
            suppressed_reported: 0,
            orphaned_reported: 0,
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

    /// Handles every timer until none is left.
    pub(crate) fn drain(&mut self) {
        for _ in 0..3_000 {
            if self.mailbox.wakes_at() == Time::NEVER {
                assert!(self.held.is_empty(), "{:?} were never delivered", self.held);
                assert_eq!(
                    self.unreported.values().sum::<u64>(),
                    self.orphaned_reported,
                    "{:?} were never reported",
                    self.unreported
                );
                assert_eq!(self.suppressed.len() as u64, self.suppressed_reported);
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
        let event = event_of(kind, step.source, Severity::Error, payload);
        let event = event.with_id(self.context.ids.event(self.now));
        self.handle(Input::Event(&event));
    }

    fn handle(&mut self, input: Input<'_>) {
        self.context.now = self.now;
        self.mailbox.handle(input, &mut self.context).expect("no message is sent to a person");
        while let Some(effect) = self.context.poll() {
            match effect {
                Effect::Verdict { event, subscriber, verdict, .. } => self.decided((subscriber, event), verdict),
                Effect::Superseded { event, subscriber, .. } => {
                    let older = (subscriber, event);
                    assert!(self.held.remove(&older).is_some(), "{older:?} was superseded and was not held");
                    self.unreported.remove(&older);
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

    fn decided(&mut self, key: EventKey, verdict: Verdict) {
        match verdict {
            // A queued event is delivered before its verdict.
            Verdict::Queued { .. } => assert!(self.sent.contains(&key), "{key:?} was not delivered"),
            Verdict::Held { until, .. } => drop(self.held.insert(key, until)),
            Verdict::Duplicate { of, .. } => *self.unreported.entry((key.0, of)).or_default() += 1,
            Verdict::Suppressed => drop(self.suppressed.insert(key.1)),
            Verdict::Filtered(_) => {}
        }
    }

    fn sends(&mut self, notification: &Notification) {
        if let NotificationKind::LeftOut(counts) = &notification.kind {
            assert_eq!(counts.notifications, 0, "a person's notifications are never folded");
            self.suppressed_reported += counts.storms.iter().map(|(_, events)| u64::from(*events)).sum::<u64>();
            self.suppressed_reported += u64::from(counts.other_storms);
            self.orphaned_reported += u64::from(counts.repeats);
        }
        for entry in &notification.events {
            let key = (notification.subscriber.clone(), entry.event);
            if entry.merged > 0 {
                let unreported = self.unreported.get_mut(&key).unwrap_or_else(|| panic!("{key:?} was never repeated"));
                *unreported =
                    unreported.checked_sub(entry.merged.into()).expect("no more repeats are reported than counted");
            }
            if notification.kind == NotificationKind::Events {
                self.held.remove(&key);
                assert!(self.sent.insert(key), "an event was delivered twice");
            }
        }
    }
}
