//! Plays the steps of a timeline, and shows each of them to a law.

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
use super::texts::BOUNDARY;
use super::{Deed, Law, Moment};

/// Longer than any batch or dedupe window.
const EVERY_WINDOW_MS: u64 = 70_000;
/// More timers than this in a row are a loop.
const TICKS_MAX: usize = 3_000;
/// As many answers back may be reported as unseen.
const UNSEEN_BACK: usize = 8;
/// Of many events in a row, so many are only glanced at.
const GLANCES: u32 = 20;

pub(crate) struct Player<D = Conversation> {
    pub(crate) driver: D,
    pub(crate) now: Time,
    /// The latest time any mailbox was handled at.
    latest: Time,
    /// Saves and loads every mailbox after every so many steps; never, where it is zero.
    pub(crate) crash_every: u32,
    handled: u32,
    glance: bool,
    /// Whose the notifications are that verdicts spoke of.
    known: HashMap<NotificationId, AgentName>,
    agents: [AgentName; 2],
    ids: Ids,
    disabled: Vec<String>,
    pub(crate) asked: Vec<Asked>,
    /// How many of the answers, the first ones, are too old to be remembered.
    forgotten: usize,
}

/// An injection that was answered.
pub(crate) struct Asked {
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
            glance: false,
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
                    self.glance = number % GLANCES != 0 && number + 1 < *times;
                    let event = self.event(event, number).for_agent(self.agents[*agent].clone());
                    self.publish(event, law);
                }
            }
            Step::Say { agent, text, times } => {
                for number in 0..*times {
                    self.glance = number % GLANCES != 0 && number + 1 < *times;
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

    /// Lets every window close and takes everything that waits.
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
                assert!(rounds < 300, "{agent} still has mail after {rounds} turns");
            }
        }
    }

    /// Serves every timer when it is due, for so long.
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
        let news = result.as_ref().map_or(&[][..], |receipt| &receipt.news);
        let deed = Deed::Published { event: &event, result: result.as_ref() };
        self.show(&agent, given, deed, news, &before, law);
        self.handled();
    }

    pub(crate) fn event(&mut self, step: &EventStep, number: u32) -> Event {
        let mut payload = self.payload(&step.payload);
        if step.distinct {
            payload["n"] = number.into();
        }
        let source = self.with_boundary(step.source);
        let event = Event::new(step.kind, &source, step.severity, payload).expect("the pools hold what is allowed");
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
        let (answer, news) = self.driver.inject(request.clone(), more, given).expect("the call id is new");
        let fresh: Vec<String> = self.asked[self.forgotten..]
            .iter_mut()
            .filter(|asked| asked.agent == *agent && !asked.unseen && unseen.contains(&asked.request.call_id))
            .map(|asked| {
                asked.unseen = true;
                asked.request.call_id.clone()
            })
            .collect();
        let deed = Deed::Injected { request: &request, observed: observed.as_ref(), unseen: &fresh, answer: &answer };
        self.show(agent, given, deed, &news, &before, law);
        self.forget_old_answers();
        self.asked.push(Asked { agent: agent.clone(), request, answer, unseen: false, at: given });
        self.handled();
    }

    /// Asking twice gives the same answer, and nothing else happens, whatever comes with the question.
    pub(crate) fn ask_again(&mut self, back: usize, point: InjectionPoint) {
        let Some(asked) = self.asked[self.forgotten..].iter().rev().nth(back) else { return };
        let before = self.pending(&asked.agent);
        let request = Inject { point, ..asked.request.clone() };
        let observed = Some(ObservedCall::new("grep", CallOutcome::Failure));
        let unseen = self.asked.iter().map(|asked| asked.request.call_id.clone()).collect();
        let more = InjectOptions { agent: Some(asked.agent.clone()), observed, unseen };
        match self.driver.inject(request, more, self.now) {
            Ok((answer, news)) => {
                assert!(!asked.unseen && point == asked.request.point);
                assert_eq!(format!("{answer:?}"), format!("{:?}", asked.answer));
                assert!(news.is_empty());
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

    /// Answers are kept for seven days; the old ones go when a new one comes.
    fn forget_old_answers(&mut self) {
        let old = |asked: &Asked| asked.at.plus(7 * 24 * 3_600_000) <= self.now;
        self.forgotten += self.asked[self.forgotten..].iter().take_while(|asked| old(asked)).count();
    }

    fn tick(&mut self, given: Time, law: &mut impl Law) {
        let before: Vec<_> = self.agents.iter().map(|agent| self.pending(agent)).collect();
        let all = self.driver.tick(given);
        for (agent, before) in self.agents.clone().iter().zip(before) {
            let news: Vec<ConversationUpdate> =
                all.iter().filter(|news| self.concerns(news, agent, &before)).cloned().collect();
            if self.driver.mailbox(agent).is_some() {
                self.show(agent, given, Deed::Waited, &news, &before, law);
            }
        }
        self.handled();
    }

    /// Whether what a tick did happened to this agent. A notification that came and went within the tick can only have
    /// gone from a mailbox that is full.
    fn concerns(&self, news: &ConversationUpdate, agent: &AgentName, before: &[Notification]) -> bool {
        let pending = self.pending(agent);
        match news {
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
        deed: Deed<'_>,
        news: &[ConversationUpdate],
        before: &[Notification],
        law: &mut impl Law,
    ) {
        self.latest = self.latest.max(given);
        for news in news {
            if let ConversationUpdate::Decided(_, _, verdict) = news {
                self.known.extend(verdict.notification().map(|id| (id, agent.clone())));
            }
        }
        let driver = &self.driver;
        law.see(&Moment {
            given,
            agent,
            deed,
            glance: self.glance,
            news,
            before,
            mailbox: driver.mailbox(agent).expect("what was handled exists"),
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
