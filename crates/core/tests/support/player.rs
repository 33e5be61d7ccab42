//! Plays the steps of a timeline, and passes a record of each to a law.

use std::collections::HashMap;
use std::sync::Arc;

use bellwire_core::conversation::{CallOutcome, ConversationUpdate, InjectError, InjectOptions, ObservedCall};
use bellwire_core::inject::InjectLimits;
use bellwire_core::mailbox::PENDING_MAX;
use bellwire_core::{
    AgentName, Conversation, Event, Ids, Inject, Injection, InjectionPoint, Notification, NotificationId, Preferences,
    Randomness, Subscribers, Time,
};
use serde_json::Value;

use super::custom::subscribers;
use super::driver::Driver;
use super::steps::{EventStep, InjectStep, Step, Timeline};
use super::texts::{BOUNDARY, event_of};
use super::{Action, Law, StepRecord};

/// Longer than any batch or dedupe window.
const EVERY_WINDOW_MS: u64 = 70_000;
/// More timers in a row mean an endless loop.
const TICKS_MAX: usize = 3_000;
/// How many of the latest injections may be reported as unseen.
const UNSEEN_BACK: usize = 8;
/// Of many events in a row, only every 20th and the last get the costly checks.
const FULL_CHECK_EVERY: u32 = 20;

pub(crate) struct Player<D = Conversation> {
    pub(crate) driver: D,
    pub(crate) now: Time,
    /// The latest time at which any mailbox was handled.
    latest: Time,
    /// Saves and loads every mailbox after this many steps; 0 = never.
    pub(crate) crash_every: u32,
    handled: u32,
    is_one_of_many: bool,
    /// The agents of the notifications named in verdicts.
    known: HashMap<NotificationId, AgentName>,
    agents: [AgentName; 2],
    ids: Ids,
    disabled: Vec<String>,
    pub(crate) asked: Vec<AnsweredRequest>,
    /// How many of the first answers are too old to be replayed.
    forgotten: usize,
}

/// An answered injection request.
pub(crate) struct AnsweredRequest {
    pub(crate) agent: AgentName,
    pub(crate) request: Inject,
    pub(crate) answer: Injection,
    pub(crate) unseen: bool,
    at: Time,
}

impl Player {
    /// A conversation before the first step of the timeline.
    pub(crate) fn new(timeline: &Timeline) -> Self {
        let set = Subscribers::new(subscribers(&timeline.customs, &[]));
        Self::driving(Conversation::new(Arc::new(set), Randomness::repeatable(timeline.seed)), timeline.seed)
    }
}

impl<D: Driver> Player<D> {
    pub(crate) fn driving(driver: D, seed: u64) -> Self {
        Self {
            driver,
            now: Time::from_millis(1_767_000_000_000),
            latest: Time::ZERO,
            crash_every: 0,
            handled: 0,
            is_one_of_many: false,
            known: HashMap::new(),
            agents: [AgentName::main(), AgentName::parse("scout").expect("it is a name")],
            ids: Ids::seeded(u128::from(seed) << 1 | 1),
            disabled: Vec::new(),
            asked: Vec::new(),
            forgotten: 0,
        }
    }

    pub(crate) fn step(&mut self, step: &Step, law: &mut impl Law) {
        match step {
            Step::Publish { agent, event, times } => {
                for number in 0..*times {
                    self.is_one_of_many = number % FULL_CHECK_EVERY != 0 && number + 1 < *times;
                    let event = self.event(event, number).for_agent(self.agents[*agent].clone());
                    self.publish(event, law);
                }
            }
            Step::Say { agent, text, times } => {
                for number in 0..*times {
                    self.is_one_of_many = number % FULL_CHECK_EVERY != 0 && number + 1 < *times;
                    let said = Event::user_message(&self.with_boundary(text)).expect("the text is short enough");
                    let said = said.with_id(self.ids.event(self.now)).for_agent(self.agents[*agent].clone());
                    self.publish(said, law);
                }
            }
            Step::Inject(step) => self.inject(step, law),
            Step::AskAgain { back, point } => self.ask_again(*back, *point),
            Step::Sleep(millis) => self.now = self.now.plus(*millis),
            Step::Run(millis) => self.run(*millis, law),
            Step::Rewind(millis) => self.now = Time::from_millis(self.now.as_millis() - *millis as i64),
            Step::Tick => {
                let due = self.driver.wakes_at();
                if due < Time::NEVER {
                    self.now = self.now.max(due);
                    self.tick(self.now, law);
                }
            }
            Step::Prefer(bits) => self.prefer(*bits),
            Step::Reload { customs, without, forgetting } => {
                let next = subscribers(customs, without);
                let next = match forgetting {
                    true => Subscribers::new(next),
                    false => self.driver.subscribers().reloaded(next),
                };
                self.driver.set_subscribers(Arc::new(next));
            }
            Step::Rotate => self.driver.rotate_boundary(),
        }
    }

    /// Lets every window close and takes every pending notification.
    pub(crate) fn drain(&mut self, law: &mut impl Law) {
        self.now = self.latest.max(self.now);
        self.run(EVERY_WINDOW_MS, law);
        for agent in self.agents.clone() {
            let mut rounds = 0;
            while self.driver.mailbox(&agent).is_some_and(|mailbox| !mailbox.pending().is_empty()) {
                let mut request = self.request(&agent, InjectionPoint::TurnStart);
                request.limits = InjectLimits::new(100, 4_000).expect("these are allowed");
                self.answer(
                    &agent,
                    request,
                    InjectOptions { agent: Some(agent.clone()), ..InjectOptions::default() },
                    law,
                );
                rounds += 1;
                assert!(rounds < 300, "{agent} still has notifications after {rounds} turns");
            }
        }
    }

    /// Advances the clock by this much and handles every timer when it is due.
    pub(crate) fn run(&mut self, millis: u64, law: &mut impl Law) {
        let until = self.now.plus(millis);
        let mut ticks = 0;
        while self.driver.wakes_at() <= until {
            self.now = self.now.max(self.driver.wakes_at());
            self.tick(self.now, law);
            ticks += 1;
            assert!(ticks < TICKS_MAX, "timers never come to an end");
        }
        self.now = until;
    }

    fn publish(&mut self, event: Event, law: &mut impl Law) {
        let (before, agent, given) = (self.pending(event.agent()), event.agent().clone(), self.now);
        let result = self.driver.publish(event.clone().at(given), given);
        let updates = result.as_ref().map_or(&[][..], |receipt| &receipt.updates);
        let action = Action::Published { event: &event, result: result.as_ref() };
        self.show(&agent, given, action, updates, &before, law);
        self.handled();
    }

    pub(crate) fn event(&mut self, step: &EventStep, number: u32) -> Event {
        let mut payload = self.payload(&step.payload);
        if step.distinct {
            payload["n"] = number.into();
        }
        let source = self.with_boundary(step.source);
        let event = event_of(step.kind, &source, step.severity, payload);
        let event = event.with_id(self.ids.event(self.now));
        let event = if step.by_agent { event.by_agent() } else { event };
        match step.dedupe_key {
            Some(key) => event.with_dedupe_key(key).expect("it is short"),
            None => event,
        }
    }

    fn inject(&mut self, step: &InjectStep, law: &mut impl Law) {
        let agent = self.agents[step.agent].clone();
        let mut request = self.request(&agent, step.point);
        request.style = step.style;
        request.shape = step.shape;
        request.limits = InjectLimits::new(step.items_max, step.tokens_max).expect("these are allowed");
        request.wake_only = step.wake_only;
        let own = self.asked.iter().rev().filter(|asked| asked.agent == agent).take(UNSEEN_BACK).enumerate();
        let unseen =
            own.filter(|(back, _)| step.unseen >> back & 1 == 1).map(|(_, asked)| asked.request.call_id.clone());
        let unseen: Vec<String> = unseen.collect();
        let mut observed = step.observed.clone();
        if let Some(text) = observed.as_mut().and_then(|observed| observed.error_message.as_mut()) {
            *text = self.with_boundary(text);
        }
        self.answer(&agent, request, InjectOptions { agent: Some(agent.clone()), observed, unseen }, law);
    }

    fn answer(&mut self, agent: &AgentName, request: Inject, more: InjectOptions, law: &mut impl Law) {
        let (before, given) = (self.pending(agent), self.now);
        let observed = more.observed.clone().map(|observed| observed.into_event().expect("it is small").at(given));
        let unseen = more.unseen.clone();
        let (answer, updates) = self.driver.inject(request.clone(), more, given).expect("the call id is new");
        let fresh: Vec<String> = self.asked[self.forgotten..]
            .iter_mut()
            .filter(|asked| asked.agent == *agent && !asked.unseen && unseen.contains(&asked.request.call_id))
            .map(|asked| {
                asked.unseen = true;
                asked.request.call_id.clone()
            })
            .collect();
        let action =
            Action::Injected { request: &request, observed: observed.as_ref(), unseen: &fresh, answer: &answer };
        self.show(agent, given, action, &updates, &before, law);
        self.forget_old_answers();
        self.asked.push(AnsweredRequest { agent: agent.clone(), request, answer, unseen: false, at: given });
        self.handled();
    }

    /// A repeated call id gets the same response and changes nothing, whatever the request contains.
    pub(crate) fn ask_again(&mut self, back: usize, point: InjectionPoint) {
        let Some(asked) = self.asked[self.forgotten..].iter().rev().nth(back) else { return };
        let before = self.pending(&asked.agent);
        let request = Inject { point, ..asked.request.clone() };
        let observed = Some(ObservedCall::new("grep", CallOutcome::Failure));
        let unseen = self.asked.iter().map(|asked| asked.request.call_id.clone()).collect();
        let more = InjectOptions { agent: Some(asked.agent.clone()), observed, unseen };
        match self.driver.inject(request, more, self.now) {
            Ok((answer, updates)) => {
                assert!(!asked.unseen && point == asked.request.point);
                assert_eq!(format!("{answer:?}"), format!("{:?}", asked.answer));
                assert!(updates.is_empty());
            }
            Err(InjectError::Unseen) => assert!(asked.unseen),
            Err(InjectError::OtherPoint { used_at }) => {
                assert!(used_at == asked.request.point && used_at != point);
            }
            Err(error) => panic!("{error}"),
        }
        let after = self.pending(&self.asked.iter().rev().nth(back).expect("it was there").agent);
        assert_eq!(before, after);
    }

    /// Responses are kept for seven days; a new one removes the old ones.
    fn forget_old_answers(&mut self) {
        let old = |asked: &AnsweredRequest| asked.at.plus(7 * 24 * 3_600_000) <= self.now;
        self.forgotten += self.asked[self.forgotten..].iter().take_while(|asked| old(asked)).count();
    }

    fn tick(&mut self, given: Time, law: &mut impl Law) {
        let before: Vec<_> = self.agents.iter().map(|agent| self.pending(agent)).collect();
        let all = self.driver.tick(given);
        for (agent, before) in self.agents.clone().iter().zip(before) {
            let updates: Vec<ConversationUpdate> =
                all.iter().filter(|update| self.concerns(update, agent, &before)).cloned().collect();
            if self.driver.mailbox(agent).is_some() {
                self.show(agent, given, Action::Waited, &updates, &before, law);
            }
        }
        self.handled();
    }

    /// Whether an update of a tick belongs to this agent. A notification that was created and ended within the tick can
    /// only come from a full mailbox.
    fn concerns(&self, update: &ConversationUpdate, agent: &AgentName, before: &[Notification]) -> bool {
        let pending = self.pending(agent);
        match update {
            ConversationUpdate::Waiting(notification) => pending.iter().any(|one| one.id == notification.id),
            ConversationUpdate::Ended(id, _) => match self.known.get(id) {
                Some(known) => known == agent,
                None => before.iter().any(|one| one.id == *id) || pending.len() >= PENDING_MAX,
            },
            _ => agent.is_main(),
        }
    }

    fn prefer(&mut self, bits: u32) {
        let set = self.driver.subscribers();
        let chosen = set.iter().enumerate().filter(|(at, one)| bits >> (at % 32) & 1 == 1 && !one.output.core);
        self.disabled = chosen.map(|(_, one)| one.id.to_string()).collect();
        let preferences = Preferences::disabling(self.disabled.iter().map(String::as_str), set);
        self.driver.set_preferences(preferences.expect("none of them is core"));
    }

    /// A call id that is new for the agent; another agent may have used it.
    fn request(&mut self, agent: &AgentName, point: InjectionPoint) -> Inject {
        let asked = self.asked.iter().filter(|asked| asked.agent == *agent).count();
        Inject::new(point, &format!("call_{asked}")).expect("it is short")
    }

    fn pending(&self, agent: &AgentName) -> Vec<Notification> {
        self.driver.mailbox(agent).map_or_else(Vec::new, |mailbox| mailbox.pending().to_vec())
    }

    fn handled(&mut self) {
        self.handled += 1;
        if self.crash_every > 0 && self.handled.is_multiple_of(self.crash_every) {
            self.driver.crash();
        }
    }

    fn show(
        &mut self,
        agent: &AgentName,
        given: Time,
        action: Action<'_>,
        updates: &[ConversationUpdate],
        before: &[Notification],
        law: &mut impl Law,
    ) {
        self.latest = self.latest.max(given);
        for update in updates {
            if let ConversationUpdate::Decided(_, _, verdict) = update {
                self.known.extend(verdict.notification().map(|id| (id, agent.clone())));
            }
        }
        let driver = &self.driver;
        law.observe(&StepRecord {
            given,
            agent,
            action,
            is_one_of_many: self.is_one_of_many,
            updates,
            before,
            mailbox: driver.mailbox(agent).expect("a handled mailbox exists"),
            subscribers: driver.subscribers(),
            disabled: &self.disabled,
            boundary: driver.boundary(),
        });
    }

    fn with_boundary(&self, text: &str) -> String {
        text.replace(BOUNDARY, self.driver.boundary().as_str())
    }

    /// The payload with the real boundary in its texts.
    fn payload(&self, payload: &Value) -> Value {
        let text =
            serde_json::to_string(payload).expect("it is JSON").replace(BOUNDARY, self.driver.boundary().as_str());
        serde_json::from_str(&text).expect("the boundary is letters and digits")
    }
}
