//! Something that happened: its type, where it came from, how bad it is, and what it carries.
//!
//! An [`Event`] is immutable and always well formed: the only ways to get one are [`Event::new`], [`EventDraft::admit`]
//! and [`Event::user_message`], and each checks everything. What a text from outside may claim is decided here: nobody
//! but a person's own call can make an event that says it is the user speaking.

mod canonical;
mod cut;
mod draft;
mod event_type;
mod payload;
mod severity;
mod source;
mod stored;

pub(crate) use canonical::CanonicalJson;
pub use canonical::canonical_json;
pub(crate) use cut::{cut, cut_display};
pub use draft::EventDraft;
pub use event_type::{EventType, TypePattern};
pub use payload::{Payload, Secret};
pub(crate) use payload::{entries_fingerprint, fingerprint};
pub use severity::Severity;
pub use source::{AgentName, Source};
pub use stored::StoredEvent;

use std::fmt;

use crate::{EventId, Time};

/// Something that happened. Immutable once made.
///
/// ```
/// use bellwire_core::{Event, EventId, Severity, Time};
/// use serde_json::json;
///
/// let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, json!({"tool_name": "vault_search"}))
///     .unwrap()
///     .at(Time::from_millis(1_000));
/// assert_eq!(event.kind().as_str(), "tool.call.failure");
///
/// let wrong = Event::new("Tool.Call", "tool_executor", Severity::Error, json!({})).unwrap_err();
/// assert_eq!(wrong.field, "type");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub(crate) id: EventId,
    pub(crate) kind: EventType,
    pub(crate) source: Source,
    pub(crate) severity: Severity,
    pub(crate) timestamp: Time,
    pub(crate) payload: Payload,
    pub(crate) dedupe_key: Option<Box<str>>,
    pub(crate) agent: AgentName,
    pub(crate) conversation_id: Option<Box<str>>,
    pub(crate) user_id: Option<Box<str>>,
    pub(crate) correlation_id: Option<Box<str>>,
    pub(crate) cause: Cause,
}

/// Who made an event happen; it decides what the event may wake and whether it may be dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something outside the agent: it may wake an idle conversation.
    World,
    /// The agent's own loop (an observed tool call, a detector, a note to itself): it never wakes.
    Agent,
    /// The person, through a call only a person can make: never dropped.
    Person,
}

impl Event {
    /// An event with its four required parts checked; the id is nil and the time zero until [`Event::at`] and
    /// [`Event::with_id`] (or the conversation that takes it in) set them.
    pub fn new(kind: &str, source: &str, severity: Severity, payload: serde_json::Value) -> Result<Self, Invalid> {
        let kind = EventType::parse(kind)?;
        let source = Source::parse(source)?;
        refuse_the_persons_voice(&kind, &source)?;
        Ok(Self::from_parts(kind, source, severity, Payload::from_json(payload)?))
    }

    /// What the person said, as only the person's own call may make it.
    pub fn user_message(text: &str) -> Result<Self, Invalid> {
        if text.trim().is_empty() {
            return Err(Invalid::new("text", "is empty; a message says something"));
        }
        let payload = Payload::from_json(serde_json::json!({ "text": text }))?;
        let mut event =
            Self::from_parts(EventType::known("user.message"), Source::known("user"), Severity::Info, payload);
        event.cause = Cause::Person;
        Ok(event)
    }

    /// An event of our own making: the names are constants of this crate, so there is nothing to check.
    pub(crate) fn internal(kind: &'static str, source: &'static str, severity: Severity, payload: Payload) -> Self {
        Self {
            cause: Cause::Agent,
            ..Self::from_parts(EventType::known(kind), Source::known(source), severity, payload)
        }
    }

    fn from_parts(kind: EventType, source: Source, severity: Severity, payload: Payload) -> Self {
        let own_doing = OWN_DOING.iter().any(|prefix| kind.as_str().starts_with(prefix));
        Self {
            id: EventId(uuid::Uuid::nil()),
            kind,
            source,
            severity,
            timestamp: Time::ZERO,
            payload,
            dedupe_key: None,
            agent: AgentName::main(),
            conversation_id: None,
            user_id: None,
            correlation_id: None,
            cause: if own_doing { Cause::Agent } else { Cause::World },
        }
    }

    /// The same event, named.
    pub fn with_id(mut self, id: EventId) -> Self {
        self.id = id;
        self
    }

    /// Names the event, for a driver that shares it before it has a name.
    pub fn set_id(&mut self, id: EventId) {
        self.id = id;
    }

    /// The same event, at this time. The time is for display; windows run on the mailbox's own clock.
    pub fn at(mut self, timestamp: Time) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// The same event, for this sub-agent instead of `main`.
    pub fn for_agent(mut self, agent: AgentName) -> Self {
        self.agent = agent;
        self
    }

    /// The same event, for this conversation.
    pub fn in_conversation(mut self, id: &str) -> Self {
        self.conversation_id = Some(id.into());
        self
    }

    /// The same event, for every open conversation of this person.
    pub fn for_person(mut self, id: &str) -> Self {
        self.user_id = Some(id.into());
        self
    }

    /// The same event, part of this thread of work unless its sender named another.
    pub fn correlated(mut self, id: &str) -> Self {
        self.correlation_id.get_or_insert_with(|| id.into());
        self
    }

    /// The same event, for the agent and conversation of the event that showed it.
    pub(crate) fn shown_by(mut self, other: &Self) -> Self {
        self.agent = other.agent.clone();
        self.conversation_id = other.conversation_id.clone();
        self.correlation_id = other.correlation_id.clone();
        self
    }

    /// The same event, with a dedupe key of its own that wins over the subscriber's.
    pub fn with_dedupe_key(mut self, key: &str) -> Result<Self, Invalid> {
        self.dedupe_key = Some(bounded_text("dedupe_key", key, DEDUPE_KEY_MAX)?.into());
        Ok(self)
    }

    /// The same event, as something the agent itself brought about: it never wakes the conversation.
    pub fn by_agent(mut self) -> Self {
        self.cause = Cause::Agent;
        self
    }

    /// Its name.
    pub fn id(&self) -> EventId {
        self.id
    }
    /// Its type, such as `tool.call.failure`.
    pub fn kind(&self) -> &EventType {
        &self.kind
    }
    /// The component it came from.
    pub fn source(&self) -> &Source {
        &self.source
    }
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.severity
    }
    /// When it happened, as its sender says.
    pub fn timestamp(&self) -> Time {
        self.timestamp
    }
    /// What it carries.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }
    /// The dedupe key it brought, if any.
    pub fn dedupe_key(&self) -> Option<&str> {
        self.dedupe_key.as_deref()
    }
    /// The agent it is for.
    pub fn agent(&self) -> &AgentName {
        &self.agent
    }
    /// The conversation it is for, if it names one.
    pub fn conversation_id(&self) -> Option<&str> {
        self.conversation_id.as_deref()
    }
    /// The person whose open conversations it is for, if it names one.
    pub fn user_id(&self) -> Option<&str> {
        self.user_id.as_deref()
    }
    /// The thread of work it belongs to, for logs and traces.
    pub fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }
    /// Who made it happen.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The one line an event comes to where no template speaks for it.
    pub fn message(&self) -> String {
        self.payload.message()
    }
}

/// What only an agent's own loop brings about, whoever reports it: its tool calls, its budgets, its notes to itself.
const OWN_DOING: [&str; 5] = ["tool.call.", "budget.", "context.limit.", "agent.loop.", "agent.self."];

/// The longest dedupe key an event may bring.
pub(crate) const DEDUPE_KEY_MAX: usize = 256;
/// The longest conversation, user or correlation id.
const NAME_MAX: usize = 128;

/// Why something from outside was refused: the field, what is wrong with it, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field at fault, as the sender wrote it.
    pub field: &'static str,
    /// What came and what is allowed, as one sentence.
    pub message: String,
    /// True where the fault is not the form but the claim: only a person's own call may make it.
    pub forbidden: bool,
}

impl Invalid {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), forbidden: false }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for Invalid {}

/// The person's voice cannot be borrowed: neither its type nor its label.
fn refuse_the_persons_voice(kind: &EventType, source: &Source) -> Result<(), Invalid> {
    let (field, claim) = if kind.as_str() == "user.message" {
        ("type", "user.message")
    } else if reads_as_person(source.as_str()) {
        ("source", "user")
    } else {
        return Ok(());
    };
    let message = format!("'{claim}' is the person's own voice; only the messages and actions calls may use it");
    Err(Invalid { forbidden: true, ..Invalid::new(field, message) })
}

/// A label is followed by how many events it stands for, so `user x7` reads as the person's too.
fn reads_as_person(source: &str) -> bool {
    let mut name = source;
    while let Some((shorter, count)) = name.rsplit_once(" x")
        && count.bytes().all(|byte| byte.is_ascii_digit())
    {
        name = shorter.trim_end();
    }
    name.eq_ignore_ascii_case("user")
}

/// A text of 1 to `max` characters without control characters, or why not.
fn bounded_text<'a>(field: &'static str, text: &'a str, max: usize) -> Result<&'a str, Invalid> {
    let length = text.chars().count();
    if length == 0 || length > max {
        return Err(Invalid::new(field, format!("has {length} characters; 1 to {max} are allowed")));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(control) => Err(Invalid::new(field, format!("contains the control character {control:?}"))),
        None => Ok(text),
    }
}

/// At most 40 characters of a value that was refused, for the error that refuses it.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
