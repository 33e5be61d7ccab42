//! Drives mailboxes by the drain rule: one input, then every effect.

use std::collections::HashMap;
use std::sync::Arc;

use bellwire_core::mailbox::{EventLookup, InjectInput};
use bellwire_core::{
    Boundary, Effect, Event, EventId, Ids, Inject, Injection, Input, Mailbox, MailboxContext, MailboxKind, Subscribers,
    Time, Verdict,
};

/// Handles events and injections, and counts the effects.
pub(crate) struct MailboxDriver {
    pub(crate) context: MailboxContext,
    pub(crate) counts: VerdictCounts,
    events: EventMap,
    boundary: Boundary,
}

/// Effects, and verdicts by kind. Effects are counted and dropped; a hub would write them to its store.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerdictCounts {
    pub(crate) effects: u64,
    pub(crate) queued: u64,
    pub(crate) held: u64,
    pub(crate) duplicate: u64,
    pub(crate) filtered: u64,
    pub(crate) suppressed: u64,
}

impl MailboxDriver {
    /// A driver with the bundled subscribers. Injections look their events up in `events`.
    pub(crate) fn new(events: &[Arc<Event>]) -> Self {
        Self {
            context: MailboxContext::new(Arc::new(Subscribers::bundled()), Ids::seeded(1)),
            counts: VerdictCounts::default(),
            events: EventMap(events.iter().map(|event| (event.id(), event.clone())).collect()),
            boundary: Boundary::from_seed(1),
        }
    }

    pub(crate) fn publish(&mut self, mailbox: &mut Mailbox, event: &Event, now: Time) {
        self.context.now = now;
        mailbox.handle(Input::Event(event), &mut self.context).expect("no event here is a person's message");
        while let Some(effect) = self.context.poll() {
            self.count_effect(effect);
        }
    }

    pub(crate) fn inject(&mut self, mailbox: &mut Mailbox, request: &Inject, now: Time) -> Box<Injection> {
        self.context.now = now;
        let events = &self.events;
        let input = InjectInput { request, observed: None, events, boundary: &self.boundary };
        mailbox.handle(Input::Inject(input), &mut self.context).expect("only a person's message can be refused");
        let mut answer = None;
        while let Some(effect) = self.context.poll() {
            match effect {
                Effect::Injection(taken) => answer = Some(taken),
                other => self.count_effect(other),
            }
        }
        answer.expect("a mailbox answers every injection")
    }

    fn count_effect(&mut self, effect: Effect) {
        self.counts.effects += 1;
        match effect {
            Effect::Verdict { verdict, .. } => self.counts.count(&verdict),
            Effect::Detected(event) => drop(self.events.0.insert(event.id(), event)),
            _ => {}
        }
    }
}

impl VerdictCounts {
    fn count(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Queued { .. } => &mut self.queued,
            Verdict::Held { .. } => &mut self.held,
            Verdict::Duplicate { .. } => &mut self.duplicate,
            Verdict::Filtered(_) => &mut self.filtered,
            Verdict::Suppressed => &mut self.suppressed,
        } += 1;
    }
}

struct EventMap(HashMap<EventId, Arc<Event>>);

impl EventLookup for EventMap {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        self.0.get(&id).cloned()
    }
}

/// An empty mailbox of a main agent; `number` becomes its secret.
pub(crate) fn mailbox(number: usize) -> Mailbox {
    Mailbox::new(MailboxKind::MainAgent, (number as u128).to_le_bytes())
}
