//! Brings events to mailboxes and agents to their mail, by the drain rule: one input, then every effect.

use std::collections::HashMap;
use std::sync::Arc;

use bellwire_core::mailbox::{EventLookup, InjectInput};
use bellwire_core::{
    Answer, Boundary, Desk, Effect, Event, EventId, Ids, Inject, Input, Keeper, Mailbox, Subscribers, Time, Verdict,
};

/// A desk, the events that were brought to it, and what became of them.
pub(crate) struct Post {
    pub(crate) desk: Desk,
    pub(crate) tally: Tally,
    events: Events,
    boundary: Boundary,
}

/// What events came to. Adding up is all that is done with an effect here; a hub would write it down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) effects: u64,
    pub(crate) queued: u64,
    pub(crate) held: u64,
    pub(crate) duplicate: u64,
    pub(crate) filtered: u64,
    pub(crate) suppressed: u64,
}

impl Post {
    /// A desk with the bundled subscribers, which knows these events.
    pub(crate) fn new(events: &[Arc<Event>]) -> Self {
        Self {
            desk: Desk::new(Arc::new(Subscribers::bundled()), Ids::seeded(1)),
            tally: Tally::default(),
            events: Events(events.iter().map(|event| (event.id(), event.clone())).collect()),
            boundary: Boundary::from_seed(1),
        }
    }

    pub(crate) fn bring(&mut self, mailbox: &mut Mailbox, event: &Event, now: Time) {
        self.desk.now = now;
        mailbox.handle(Input::Event(event), &mut self.desk).expect("no event here is a person's message");
        while let Some(effect) = self.desk.poll() {
            self.note(effect);
        }
    }

    pub(crate) fn inject(&mut self, mailbox: &mut Mailbox, request: &Inject, now: Time) -> Box<Answer> {
        self.desk.now = now;
        let events = &self.events;
        let input = InjectInput { request, observed: None, returned: Vec::new(), events, boundary: &self.boundary };
        mailbox.handle(Input::Inject(input), &mut self.desk).expect("only a person's message can be refused");
        let mut answer = None;
        while let Some(effect) = self.desk.poll() {
            match effect {
                Effect::Answer(given) => answer = Some(given),
                other => self.note(other),
            }
        }
        answer.expect("a mailbox answers every injection")
    }

    fn note(&mut self, effect: Effect) {
        self.tally.effects += 1;
        match effect {
            Effect::Verdict { verdict, .. } => self.tally.count(&verdict),
            Effect::Detected(event) => drop(self.events.0.insert(event.id(), event)),
            _ => {}
        }
    }
}

impl Tally {
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

struct Events(HashMap<EventId, Arc<Event>>);

impl EventLookup for Events {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        self.0.get(&id).cloned()
    }
}

/// An agent's empty mailbox; each has its own secret.
pub(crate) fn mailbox(number: usize) -> Mailbox {
    Mailbox::new(Keeper::MainAgent, (number as u128).to_le_bytes())
}
