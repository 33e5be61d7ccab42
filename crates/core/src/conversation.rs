//! A conversation in memory, for agents that embed this crate and for tests.
//!
//! It owns what a hub keeps in tables: the agents' mailboxes, the events they refer to, past answers and the boundary. It
//! follows the drain rule of [`Mailbox`] and decides nothing itself.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::event::{AgentName, Event, Payload, Severity, ValidationError};
use crate::inject::{Inject, Injection, SystemMessage};
use crate::mailbox::{Effect, EventLookup, InjectInput, Input, Mailbox, MailboxContext, MailboxError, MailboxKind};
use crate::notification::{EndReason, Notification};
use crate::render::{Boundary, system_prompt};
use crate::subscriber::{Preferences, SubscriberId, Subscribers};
use crate::{EventId, Ids, InjectionPoint, NotificationId, Randomness, Time, Verdict};

/// How long an answer can be replayed.
const ANSWERS_KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The maximum number of system messages kept; the oldest are dropped first.
const MESSAGES_MAX: usize = 10_000;
/// With more agents than this, empty mailboxes of sub-agents are dropped.
const IDLE_AGENTS_MAX: usize = 64;
/// With fewer events than this, unreferenced ones are not searched for.
const FORGET_AT_LEAST: usize = 256;
/// The maximum number of answers kept; beyond it the oldest are dropped before their time.
const ANSWERS_MAX: usize = 10_000;

/// One conversation and the mailboxes of all its agents, in memory.
///
/// Bounds: answers are kept for seven days, at most ten thousand; system messages, at most ten thousand; sub-agents'
/// mailboxes, while they are not empty. The driver must call [`tick`](Self::tick) at [`wakes_at`](Self::wakes_at), because
/// timers run only then.
///
/// ```
/// use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Randomness, Severity, Subscribers, Time};
/// use serde_json::json;
///
/// let mut conversation = Conversation::new(Subscribers::bundled().into(), Randomness::repeatable(7));
/// let now = Time::from_millis(1_000_000);
/// let receipt = conversation.publish(
///     Event::new("source.file.changed", "file_watcher", Severity::Info, json!({"path": "src/lib.rs"}))?,
///     now,
/// )?;
/// assert_eq!(receipt.verdicts[0].1.name(), "held");
///
/// let inject = Inject::new(InjectionPoint::AfterTool, "call_1")?;
/// let answer = conversation.inject(inject.clone(), now)?;
/// let replay = conversation.inject(inject, now.plus(5_000))?;
/// assert_eq!(answer.block, replay.block);
/// assert!(answer.block.contains("- [file_watcher] files_modified[1]: src/lib.rs"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Conversation {
    context: MailboxContext,
    boundary: Boundary,
    randomness: Randomness,
    mailboxes: BTreeMap<AgentName, Mailbox>,
    events: HashMap<EventId, Arc<Event>>,
    answers: VecDeque<StoredInjection>,
    messages: Vec<SystemMessage>,
    /// The number of events at which unreferenced ones are dropped next.
    forget_at: usize,
}

/// A past answer, found by agent and call id.
#[derive(Debug)]
struct StoredInjection {
    agent: AgentName,
    answer: Injection,
    /// The ids of its system messages.
    messages: Vec<uuid::Uuid>,
    at: Time,
    /// Whether the caller reported that the model never saw it.
    unseen: bool,
}

/// The result of publishing an event.
#[derive(Clone, Debug)]
pub struct PublishResult {
    /// The event's id.
    pub event: EventId,
    /// One verdict per subscriber that listens for its type.
    pub verdicts: Vec<(SubscriberId, Verdict)>,
    /// The number of subscribers that do not listen for its type.
    pub unmatched: u32,
    /// Everything that happened, including detected events and wakes.
    pub updates: Vec<ConversationUpdate>,
}

/// What happened in a conversation, for a driver to act on or show.
#[derive(Clone, Debug)]
pub enum ConversationUpdate {
    /// A subscriber's verdict on an event.
    Decided(EventId, SubscriberId, Verdict),
    /// A detector made an event.
    Detected(Arc<Event>),
    /// A detector measured a budget again; the event replaces the older measurement that waits.
    Remeasured(Arc<Event>),
    /// For a subscriber, the first event was superseded by the second.
    Superseded(EventId, SubscriberId, EventId),
    /// A notification became pending, or changed while pending.
    Waiting(Notification),
    /// A notification ended.
    Ended(NotificationId, EndReason),
    /// The conversation is idle, and these notifications should wake it.
    Wake(Vec<NotificationId>),
}

/// An agent's latest tool call. It is published before the injection takes notifications.
#[derive(Clone, Debug)]
pub struct ObservedCall {
    /// The tool.
    pub tool_name: String,
    /// How the call ended.
    pub outcome: CallOutcome,
    /// The call's arguments, for the loop detector.
    pub arguments: Option<Value>,
    /// The kind of error.
    pub error_type: Option<String>,
    /// The error message.
    pub error_message: Option<String>,
    /// The duration of the call.
    pub duration_ms: Option<u64>,
    /// The used amounts and limits of budgets, for the budget detector.
    pub usage: Option<Value>,
    /// Whether the agent has read the result itself. Then it is not told of it again.
    pub seen: bool,
}

/// How a tool call ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// Published as `tool.call.success`.
    Success,
    /// Published as `tool.call.failure`.
    Failure,
    /// Published as `tool.call.timeout`.
    Timeout,
}

impl ObservedCall {
    /// A call without optional fields.
    pub fn new(tool_name: &str, outcome: CallOutcome) -> Self {
        Self {
            tool_name: tool_name.to_owned(),
            outcome,
            arguments: None,
            error_type: None,
            error_message: None,
            duration_ms: None,
            usage: None,
            seen: false,
        }
    }

    /// The `tool.call.*` event of this call.
    pub fn into_event(self) -> Result<Event, ValidationError> {
        let (kind, severity) = match self.outcome {
            CallOutcome::Success => ("tool.call.success", Severity::Info),
            CallOutcome::Failure => ("tool.call.failure", Severity::Error),
            CallOutcome::Timeout => ("tool.call.timeout", Severity::Warning),
        };
        let mut payload = Map::from_iter([("tool_name".to_owned(), json!(self.tool_name))]);
        let optional = [
            ("arguments", self.arguments),
            ("error_type", self.error_type.map(Value::from)),
            ("error_message", self.error_message.map(Value::from)),
            ("duration_ms", self.duration_ms.map(Value::from)),
            ("usage", self.usage),
            (Event::SEEN_FIELD, self.seen.then_some(Value::Bool(true))),
        ];
        payload.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        let payload = Payload::from_json(Value::Object(payload))?;
        Ok(Event::internal(kind, "tool_executor", severity, payload))
    }
}

/// Why an injection was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectError {
    /// The call id was used at another point.
    OtherPoint {
        /// The point of the first use.
        used_at: InjectionPoint,
    },
    /// The caller reported this call's answer as unseen, so the call id cannot be used again.
    Unseen,
    /// More calls are reported as unseen than [`Inject::UNSEEN_MAX`].
    TooManyUnseen(usize),
    /// The observed call is invalid.
    ObservedCall(ValidationError),
}

impl fmt::Display for InjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPoint { used_at } => write!(f, "this call_id was used at {used_at}; use a new one"),
            Self::Unseen => f.write_str("this call_id was reported as unseen; use a new one"),
            Self::TooManyUnseen(calls) => {
                write!(f, "unseen: names {calls} calls; at most {} are allowed", Inject::UNSEEN_MAX)
            }
            Self::ObservedCall(invalid) => write!(f, "observed.{invalid}"),
        }
    }
}

impl std::error::Error for InjectError {}

/// The optional parts of an injection.
#[derive(Clone, Debug, Default)]
pub struct InjectOptions {
    /// The agent; `main` if absent.
    pub agent: Option<AgentName>,
    /// The agent's latest tool call.
    pub observed: Option<ObservedCall>,
    /// Earlier call ids whose answers never reached the model. Their notifications become pending again.
    pub unseen: Vec<String>,
}

impl Conversation {
    /// A conversation with these subscribers. Its boundary and the keys of its mailboxes' hashes come from `randomness`:
    /// hand in the operating system's.
    pub fn new(subscribers: Arc<Subscribers>, mut randomness: Randomness) -> Self {
        let boundary = Boundary::from_seed(u128::from_le_bytes(randomness.draw()));
        let ids = Ids::seeded(u128::from_le_bytes(randomness.draw()));
        Self {
            context: MailboxContext::new(subscribers, ids),
            boundary,
            randomness,
            mailboxes: BTreeMap::new(),
            events: HashMap::new(),
            answers: VecDeque::new(),
            messages: Vec::new(),
            forget_at: FORGET_AT_LEAST,
        }
    }

    /// Publishes an event to its agent's mailbox. Assigns the id and the timestamp if they are not set.
    pub fn publish(&mut self, event: Event, now: Time) -> Result<PublishResult, MailboxError> {
        let mut event = event;
        if event.id.0.is_nil() {
            event.id = self.context.ids.event(now);
        }
        if event.timestamp == Time::ZERO {
            event.timestamp = now;
        }
        let (id, agent) = (event.id(), event.agent().clone());
        let event = Arc::new(event);
        let mut mailbox = self.take_mailbox(&agent);
        self.context.now = now;
        let handled = mailbox.handle(Input::Event(&event), &mut self.context);
        self.events.insert(id, event);
        let (updates, unmatched, _) = self.drain(&mailbox);
        self.put_mailbox(agent, mailbox);
        handled?;
        let verdicts = updates.iter().filter_map(|update| match update {
            ConversationUpdate::Decided(of, subscriber, verdict) if *of == id => Some((subscriber.clone(), *verdict)),
            _ => None,
        });
        Ok(PublishResult { event: id, verdicts: verdicts.collect(), unmatched, updates })
    }

    /// Injects for the main agent. A repeated call id gets the same answer again.
    pub fn inject(&mut self, inject: Inject, now: Time) -> Result<Injection, InjectError> {
        self.inject_with(inject, InjectOptions::default(), now).map(|(answer, _)| answer)
    }

    /// Injects with the optional parts; also returns what happened.
    pub fn inject_with(
        &mut self,
        inject: Inject,
        more: InjectOptions,
        now: Time,
    ) -> Result<(Injection, Vec<ConversationUpdate>), InjectError> {
        let agent = more.agent.unwrap_or_else(AgentName::main);
        if let Some(stored) = self.stored(&agent, &inject.call_id) {
            return stored.replay(inject.point).map(|answer| (answer, Vec::new()));
        }
        if more.unseen.len() > Inject::UNSEEN_MAX {
            return Err(InjectError::TooManyUnseen(more.unseen.len()));
        }
        let observed = more.observed.map(ObservedCall::into_event).transpose().map_err(InjectError::ObservedCall)?;
        let observed = observed.map(|event| {
            let event = Arc::new(event.with_id(self.context.ids.event(now)).at(now).for_agent(agent.clone()));
            self.events.insert(event.id(), event.clone());
            event
        });
        let returned = self.take_unseen(&agent, &more.unseen);
        let mut mailbox = self.take_mailbox(&agent);
        self.context.now = now;
        let input =
            InjectInput { request: &inject, observed, events: &EventsInMemory(&self.events), boundary: &self.boundary };
        for input in [Input::Return(returned), Input::Inject(input)] {
            mailbox.handle(input, &mut self.context).expect("only a person's message can be refused");
        }
        let (updates, _, answer) = self.drain(&mailbox);
        let answer = answer.expect("a mailbox answers every injection");
        let messages = answer.system_messages(now, &mut self.context.ids);
        let stored = StoredInjection {
            agent: agent.clone(),
            answer: answer.clone(),
            messages: messages.iter().map(|message| message.id).collect(),
            at: now,
            unseen: false,
        };
        self.forget_old_answers(now);
        self.answers.push_back(stored);
        self.messages.extend(messages);
        let too_many = self.messages.len().saturating_sub(MESSAGES_MAX);
        self.messages.drain(..too_many);
        self.put_mailbox(agent, mailbox);
        Ok((answer, updates))
    }

    /// Runs the timers due by `now`: windows close, notifications expire, delayed wakes are sent.
    pub fn tick(&mut self, now: Time) -> Vec<ConversationUpdate> {
        self.context.now = now;
        let agents: Vec<AgentName> = self.mailboxes.keys().cloned().collect();
        let mut all = Vec::new();
        for agent in agents {
            let mut mailbox = self.take_mailbox(&agent);
            mailbox.handle(Input::Time, &mut self.context).expect("only a person's message can be refused");
            all.extend(self.drain(&mailbox).0);
            self.put_mailbox(agent, mailbox);
        }
        all
    }

    /// When to call [`tick`](Self::tick) next; [`Time::NEVER`] if no timer is set.
    pub fn wakes_at(&self) -> Time {
        self.mailboxes.values().map(Mailbox::wakes_at).min().unwrap_or(Time::NEVER)
    }

    /// The mailbox of an agent; `None` before its first event or injection.
    pub fn mailbox(&self, agent: &AgentName) -> Option<&Mailbox> {
        self.mailboxes.get(agent)
    }

    /// An event that a mailbox or an answer still refers to.
    pub fn event(&self, id: EventId) -> Option<&Arc<Event>> {
        self.events.get(&id)
    }

    /// The system messages of all injections, oldest first; at most the last ten thousand.
    pub fn messages(&self) -> &[SystemMessage] {
        &self.messages
    }

    /// The id that marks this conversation's genuine blocks.
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// The paragraph for the system prompt that explains the blocks.
    pub fn system_prompt(&self) -> String {
        system_prompt(&self.boundary, crate::inject::Style::Block)
    }

    /// Changes the boundary, for a new session or after a compaction. Past answers keep the old one.
    pub fn rotate_boundary(&mut self) {
        self.boundary = Boundary::from_seed(u128::from_le_bytes(self.randomness.draw()));
    }

    /// Sets the user's disabled subscribers, from the next event on.
    pub fn set_preferences(&mut self, preferences: Preferences) {
        self.context.preferences = Arc::new(preferences);
    }

    /// Replaces the subscribers, from the next event on. Open batches of removed ones close with their last version.
    pub fn set_subscribers(&mut self, subscribers: Arc<Subscribers>) {
        self.context.subscribers = subscribers;
    }

    /// The current subscribers.
    pub fn subscribers(&self) -> &Arc<Subscribers> {
        &self.context.subscribers
    }

    /// Saves and loads every mailbox, like a crash and restart. It must not change any later result.
    pub fn crash(&mut self) {
        for mailbox in self.mailboxes.values_mut() {
            let rows = mailbox.pending().to_vec();
            *mailbox = Mailbox::load(&mailbox.save(), rows).expect("what was saved can be loaded");
        }
    }

    fn take_mailbox(&mut self, agent: &AgentName) -> Mailbox {
        self.mailboxes.remove(agent).unwrap_or_else(|| {
            let kind = if agent.is_main() { MailboxKind::MainAgent } else { MailboxKind::SubAgent };
            Mailbox::new(kind, self.randomness.draw())
        })
    }

    /// Puts a mailbox back. Once `events` has grown to `forget_at`, drops the unreferenced ones.
    fn put_mailbox(&mut self, agent: AgentName, mailbox: Mailbox) {
        self.mailboxes.insert(agent, mailbox);
        if self.mailboxes.len() > IDLE_AGENTS_MAX {
            self.mailboxes.retain(|agent, mailbox| agent.is_main() || !mailbox.is_empty());
        }
        if self.events.len() < self.forget_at {
            return;
        }
        let held = self.mailboxes.values().flat_map(Mailbox::references);
        let taken = self.answers.iter().flat_map(|stored| &stored.answer.taken).flat_map(|taken| &taken.events);
        let kept: HashSet<EventId> = held.chain(taken.map(|entry| entry.event)).collect();
        self.events.retain(|id, _| kept.contains(id));
        self.forget_at = FORGET_AT_LEAST.max(2 * self.events.len());
    }

    fn drain(&mut self, mailbox: &Mailbox) -> (Vec<ConversationUpdate>, u32, Option<Injection>) {
        let (mut updates, mut first_unmatched, mut answer) = (Vec::new(), None, None);
        while let Some(effect) = self.context.poll() {
            match effect {
                Effect::Verdict { event, subscriber, verdict, .. } => {
                    updates.push(ConversationUpdate::Decided(event, subscriber, verdict))
                }
                Effect::Decided { unmatched, .. } => first_unmatched = first_unmatched.or(Some(unmatched)),
                Effect::Detected(event) => {
                    self.events.insert(event.id(), event.clone());
                    updates.push(ConversationUpdate::Detected(event));
                }
                Effect::Remeasured(event) => {
                    self.events.insert(event.id(), event.clone());
                    updates.push(ConversationUpdate::Remeasured(event));
                }
                Effect::Superseded { event, subscriber, by } => {
                    updates.push(ConversationUpdate::Superseded(event, subscriber, by))
                }
                Effect::Waiting(id) => updates.extend(mailbox.find(id).cloned().map(ConversationUpdate::Waiting)),
                Effect::Ended(notification, end_reason) => {
                    updates.push(ConversationUpdate::Ended(notification.id, end_reason))
                }
                Effect::Wake(ids) => updates.push(ConversationUpdate::Wake(ids)),
                Effect::Injection(given) => answer = Some(*given),
                Effect::Ready(_) => unreachable!("a conversation has no person's mailbox"),
            }
        }
        (updates, first_unmatched.unwrap_or(0), answer)
    }

    fn stored(&self, agent: &AgentName, call_id: &str) -> Option<&StoredInjection> {
        self.answers.iter().find(|stored| stored.agent == *agent && stored.answer.call_id == call_id)
    }

    /// Marks these calls as unseen, removes their system messages, and returns the notifications they took.
    fn take_unseen(&mut self, agent: &AgentName, call_ids: &[String]) -> Vec<Notification> {
        let (mut returned, mut hidden) = (Vec::new(), HashSet::new());
        for stored in self.answers.iter_mut().filter(|stored| stored.agent == *agent && !stored.unseen) {
            if call_ids.contains(&stored.answer.call_id) {
                stored.unseen = true;
                returned.append(&mut stored.answer.taken);
                hidden.extend(stored.messages.drain(..));
            }
        }
        if !hidden.is_empty() {
            self.messages.retain(|message| !hidden.contains(&message.id));
        }
        returned
    }

    fn forget_old_answers(&mut self, now: Time) {
        while self.answers.len() >= ANSWERS_MAX
            || self.answers.front().is_some_and(|oldest| oldest.at.plus(ANSWERS_KEPT_MS) <= now)
        {
            self.answers.pop_front();
        }
    }
}

impl StoredInjection {
    fn replay(&self, point: InjectionPoint) -> Result<Injection, InjectError> {
        match point == self.answer.point {
            _ if self.unseen => Err(InjectError::Unseen),
            true => Ok(self.answer.clone()),
            false => Err(InjectError::OtherPoint { used_at: self.answer.point }),
        }
    }
}

struct EventsInMemory<'a>(&'a HashMap<EventId, Arc<Event>>);

impl EventLookup for EventsInMemory<'_> {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        self.0.get(&id).cloned()
    }
}
