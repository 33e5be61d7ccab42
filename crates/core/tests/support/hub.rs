//! A small hub: one conversation whose mailboxes are rows, whose commits fail, and whose process dies.
//!
//! Like a database, it keeps a mailbox only as saved bytes, and a notification only as its effects describe it. A
//! failed commit undoes everything but the ids it used; the input is then retried.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bellwire_core::conversation::{ConversationUpdate, InjectError, InjectOptions, PublishResult};
use bellwire_core::mailbox::{EventLookup, InjectInput, MailboxError};
use bellwire_core::{
    AgentName, Boundary, Effect, Event, EventId, Ids, Inject, Injection, Input, Mailbox, MailboxContext, MailboxKind,
    Notification, NotificationId, Preferences, Randomness, Subscribers, Time,
};

use super::driver::Driver;

pub(crate) struct Hub {
    context: MailboxContext,
    boundary: Boundary,
    randomness: Randomness,
    faults: Faults,
    /// Mailboxes in memory; others are loaded.
    live: BTreeMap<AgentName, Mailbox>,
    rows: BTreeMap<AgentName, Row>,
    events: HashMap<EventId, Arc<Event>>,
    answers: Vec<Stored>,
}

/// A mailbox as the database stores it.
#[derive(Default)]
struct Row {
    blob: Vec<u8>,
    pending: BTreeMap<NotificationId, Notification>,
}

struct Stored {
    agent: AgentName,
    answer: Injection,
    unseen: bool,
    at: Time,
}

/// What one input wants to write.
#[derive(Default)]
struct Writes {
    updates: Vec<ConversationUpdate>,
    unmatched: Option<u32>,
    detected: Vec<Arc<Event>>,
    answer: Option<Injection>,
    waiting: Vec<NotificationId>,
    ended: Vec<NotificationId>,
}

/// Injects faults, with probabilities in thousandths.
pub(crate) struct Faults {
    pub(crate) state: u64,
    pub(crate) failed_commit: u64,
    pub(crate) restart: u64,
    pub(crate) rest: u64,
}

impl Faults {
    fn happens(&mut self, thousandths: u64) -> bool {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % 1000 < thousandths
    }
}

impl Hub {
    pub(crate) fn new(subscribers: Arc<Subscribers>, seed: u64, faults: Faults) -> Self {
        let mut randomness = Randomness::repeatable(seed);
        Self {
            boundary: Boundary::from_seed(u128::from_le_bytes(randomness.draw())),
            randomness,
            context: MailboxContext::new(subscribers, Ids::seeded(seed.into())),
            faults,
            live: BTreeMap::new(),
            rows: BTreeMap::new(),
            events: HashMap::new(),
            answers: Vec::new(),
        }
    }

    /// Loads, handles, drains and commits, and retries until the commit succeeds.
    fn transact(
        &mut self,
        agent: &AgentName,
        now: Time,
        input: impl Fn(&mut Mailbox, &mut MailboxContext) -> Result<(), MailboxError>,
    ) -> Result<Writes, MailboxError> {
        loop {
            self.load(agent);
            let mailbox = self.live.get_mut(agent).expect("the mailbox was just loaded");
            self.context.now = now;
            let handled = input(mailbox, &mut self.context);
            let writes = Writes::drain(&mut self.context, mailbox);
            if self.faults.happens(self.faults.failed_commit) {
                self.live.remove(agent);
                continue;
            }
            handled?;
            self.commit(agent, &writes);
            return Ok(writes);
        }
    }

    fn load(&mut self, agent: &AgentName) {
        if self.live.contains_key(agent) {
            return;
        }
        let mailbox = match self.rows.get(agent) {
            Some(row) => {
                let rows = row.pending.values().cloned().collect();
                Mailbox::load(&row.blob, rows).expect("a saved mailbox can be loaded")
            }
            None => {
                let kind = if agent.is_main() { MailboxKind::MainAgent } else { MailboxKind::SubAgent };
                Mailbox::new(kind, self.randomness.draw())
            }
        };
        self.live.insert(agent.clone(), mailbox);
    }

    fn commit(&mut self, agent: &AgentName, writes: &Writes) {
        let mailbox = &self.live[agent];
        let row = self.rows.entry(agent.clone()).or_default();
        row.blob = mailbox.save();
        for id in &writes.waiting {
            row.pending.extend(mailbox.find(*id).map(|notification| (*id, notification.clone())));
        }
        for id in writes.ended.iter().filter(|id| mailbox.find(**id).is_none()) {
            row.pending.remove(id);
        }
        let mut written: Vec<_> = row.pending.values().cloned().collect();
        written.sort_by_key(|notification| notification.sequence);
        assert_eq!(written, mailbox.pending(), "the effects do not describe the pending notifications");
        self.events.extend(writes.detected.iter().map(|event| (event.id(), event.clone())));
        if let Some(answer) = &writes.answer {
            let old = |stored: &&Stored| stored.at.plus(7 * 24 * 3_600_000) <= self.context.now;
            let old = self.answers.iter().take_while(old).count();
            self.answers.drain(..old);
            let stored = Stored { agent: agent.clone(), answer: answer.clone(), unseen: false, at: self.context.now };
            self.answers.push(stored);
        }
    }

    /// Simulates what may happen between two inputs: unreferenced events are deleted, memory is released, the process
    /// dies.
    fn between(&mut self) {
        let taken = self.answers.iter().filter(|stored| !stored.unseen).flat_map(|stored| &stored.answer.taken);
        let taken = taken.flat_map(|row| &row.events).map(|entry| entry.event);
        let kept: HashSet<EventId> = self.live.values().flat_map(Mailbox::references).chain(taken).collect();
        if self.live.len() == self.rows.len() {
            self.events.retain(|id, _| kept.contains(id));
        }
        if self.faults.happens(self.faults.rest) {
            self.live.values_mut().for_each(Mailbox::compact);
        }
        if self.faults.happens(self.faults.restart) {
            self.crash();
        }
    }
}

impl Writes {
    fn drain(context: &mut MailboxContext, mailbox: &Mailbox) -> Self {
        let mut writes = Self::default();
        while let Some(effect) = context.poll() {
            match effect {
                Effect::Verdict { event, subscriber, verdict, .. } => {
                    writes.updates.push(ConversationUpdate::Decided(event, subscriber, verdict));
                }
                Effect::Decided { unmatched, .. } => writes.unmatched = writes.unmatched.or(Some(unmatched)),
                Effect::Detected(event) => {
                    writes.detected.push(event.clone());
                    writes.updates.push(ConversationUpdate::Detected(event));
                }
                Effect::Remeasured(event) => {
                    writes.detected.push(event.clone());
                    writes.updates.push(ConversationUpdate::Remeasured(event));
                }
                Effect::Superseded { event, subscriber, by } => {
                    writes.updates.push(ConversationUpdate::Superseded(event, subscriber, by));
                }
                Effect::Waiting(id) => {
                    writes.waiting.push(id);
                    writes.updates.extend(mailbox.find(id).cloned().map(ConversationUpdate::Waiting));
                }
                Effect::Ended(notification, end_reason) => {
                    writes.ended.push(notification.id);
                    writes.updates.push(ConversationUpdate::Ended(notification.id, end_reason));
                }
                Effect::Wake(ids) => writes.updates.push(ConversationUpdate::Wake(ids)),
                Effect::Injection(answer) => writes.answer = Some(*answer),
                Effect::Ready(_) => panic!("an agent's notifications are injected, not delivered"),
            }
        }
        writes
    }
}

impl Driver for Hub {
    fn publish(&mut self, event: Event, now: Time) -> Result<PublishResult, MailboxError> {
        let (id, agent, event) = (event.id(), event.agent().clone(), Arc::new(event));
        let writes = self.transact(&agent, now, |mailbox, context| mailbox.handle(Input::Event(&event), context))?;
        self.events.insert(id, event);
        self.between();
        let verdicts = writes.updates.iter().filter_map(|update| match update {
            ConversationUpdate::Decided(of, subscriber, verdict) if *of == id => Some((subscriber.clone(), *verdict)),
            _ => None,
        });
        let unmatched = writes.unmatched.expect("every event is decided");
        Ok(PublishResult { event: id, verdicts: verdicts.collect(), unmatched, updates: writes.updates })
    }

    fn inject(
        &mut self,
        request: Inject,
        more: InjectOptions,
        now: Time,
    ) -> Result<(Injection, Vec<ConversationUpdate>), InjectError> {
        let agent = more.agent.clone().unwrap_or_else(AgentName::main);
        let own = |stored: &&mut Stored| stored.agent == agent;
        if let Some(stored) = self.answers.iter_mut().filter(own).find(|one| one.answer.call_id == request.call_id) {
            return match stored.answer.point == request.point {
                _ if stored.unseen => Err(InjectError::Unseen),
                true => Ok((stored.answer.clone(), Vec::new())),
                false => Err(InjectError::OtherPoint { used_at: stored.answer.point }),
            };
        }
        let observed = more.observed.map(|observed| observed.into_event().expect("it is small"));
        let observed = observed.map(|event| {
            let event = event.with_id(self.context.ids.event(now)).at(now).for_agent(agent.clone());
            Arc::new(event)
        });
        let is_unseen = |stored: &&mut Stored| !stored.unseen && more.unseen.contains(&stored.answer.call_id);
        let returned: Vec<Notification> = self
            .answers
            .iter_mut()
            .filter(own)
            .filter(is_unseen)
            .flat_map(|stored| stored.answer.taken.clone())
            .collect();
        self.events.extend(observed.iter().map(|event| (event.id(), event.clone())));
        let (events, boundary) = (Events(std::mem::take(&mut self.events)), self.boundary.clone());
        let writes = self.transact(&agent, now, |mailbox, context| {
            let observed = observed.clone();
            mailbox.handle(Input::Return(returned.clone()), context)?;
            let input = InjectInput { request: &request, observed, events: &events, boundary: &boundary };
            mailbox.handle(Input::Inject(input), context)
        });
        let writes = writes.expect("only a person's message is refused");
        self.events.extend(events.0);
        self.answers.iter_mut().filter(own).filter(is_unseen).for_each(|stored| stored.unseen = true);
        self.between();
        Ok((writes.answer.expect("every injection is answered"), writes.updates))
    }

    fn tick(&mut self, now: Time) -> Vec<ConversationUpdate> {
        let agents: Vec<AgentName> = self.rows.keys().cloned().collect();
        let mut updates = Vec::new();
        for agent in agents {
            let writes = self.transact(&agent, now, |mailbox, context| mailbox.handle(Input::Time, context));
            updates.extend(writes.expect("only a person's message is refused").updates);
        }
        self.between();
        updates
    }

    fn wakes_at(&self) -> Time {
        self.live.values().map(Mailbox::wakes_at).min().unwrap_or(Time::NEVER)
    }

    fn mailbox(&self, agent: &AgentName) -> Option<&Mailbox> {
        self.live.get(agent)
    }

    fn subscribers(&self) -> &Arc<Subscribers> {
        &self.context.subscribers
    }

    fn set_subscribers(&mut self, subscribers: Arc<Subscribers>) {
        self.context.subscribers = subscribers;
    }

    fn set_preferences(&mut self, preferences: Preferences) {
        self.context.preferences = Arc::new(preferences);
    }

    fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    fn rotate_boundary(&mut self) {
        self.boundary = Boundary::from_seed(u128::from_le_bytes(self.randomness.draw()));
    }

    /// The process dies and restarts with committed data only.
    fn crash(&mut self) {
        self.live.clear();
        for agent in self.rows.keys().cloned().collect::<Vec<_>>() {
            self.load(&agent);
        }
    }
}

/// The stored events; looking up an event that is no longer referenced is an error.
struct Events(HashMap<EventId, Arc<Event>>);

impl EventLookup for Events {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        Some(self.0.get(&id).cloned().unwrap_or_else(|| panic!("{id} is shown and was deleted")))
    }
}
