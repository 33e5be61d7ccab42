//! Events: type, source, severity and payload, validated.
//!
//! An [`Event`] is immutable and always valid: its constructors [`Event::new`], [`EventDraft::admit`] and
//! [`Event::user_message`] check every field. Only [`Event::user_message`] makes an event of type `user.message` or source
//! `user`, so an external event cannot impersonate the person.

mod canonical;
mod cut;
mod draft;
mod event_type;
mod known_types;
mod payload;
mod severity;
mod source;
mod stored;

pub(crate) use canonical::CanonicalJson;
pub use canonical::canonical_json;
pub(crate) use cut::{cut, cut_display};
pub use draft::EventDraft;
pub use event_type::{EventType, TypePattern};
pub use known_types::{KNOWN_TYPES, KnownType, PayloadField, Shown};
pub use payload::{HashKey, Payload};
pub(crate) use payload::{entries_fingerprint, fingerprint};
pub use severity::Severity;
pub use source::{AgentName, Source};
pub use stored::StoredEvent;

use std::fmt;

use crate::notify::RequestContext;
use crate::{EventId, Time};

/// A validated, immutable event.
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
    pub(crate) cause: EventCause,
}

/// Who caused an event. Decides whether it may wake a conversation and whether it may be dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EventCause {
    /// Anything outside the agent. May wake an idle conversation.
    World,
    /// The agent's own loop: an observed tool call, a detector, a note to itself. Never wakes.
    Agent,
    /// The person, through a call that only a person's token can make. Never dropped.
    Person,
}

impl Event {
    /// An event from its four required fields. The id is nil and the time zero until [`Event::with_id`] and
    /// [`Event::at`], or the conversation it is published to, set them.
    pub fn new(
        kind: &str,
        source: &str,
        severity: Severity,
        payload: serde_json::Value,
    ) -> Result<Self, ValidationError> {
        let kind = EventType::parse(kind)?;
        let source = Source::parse(source)?;
        refuse_reserved(&kind, &source)?;
        Ok(Self::from_parts(kind, source, severity, Payload::from_json(payload)?))
    }

    /// An event of the hub itself, such as a failed delivery. Its source is `bellwire`, which is reserved.
    pub fn from_hub(kind: &str, severity: Severity, payload: serde_json::Value) -> Result<Self, ValidationError> {
        let payload = Payload::from_json(payload)?;
        Ok(Self::from_parts(EventType::parse(kind)?, Source::known(HUB), severity, payload))
    }

    /// The payload field that says that the agent has read a tool's result itself.
    pub const SEEN_FIELD: &str = "seen_by_agent";

    /// Whether the agent has read the result of this tool call itself.
    pub(crate) fn is_seen_by_agent(&self) -> bool {
        self.payload.get(Self::SEEN_FIELD).is_some_and(|seen| seen == &serde_json::Value::Bool(true))
    }

    /// The longest message a person may send to an agent, in characters.
    pub const MESSAGE_MAX: usize = 4096;

    /// A message of the person. Callers must have authenticated the person.
    pub fn user_message(text: &str) -> Result<Self, ValidationError> {
        if text.trim().is_empty() {
            return Err(ValidationError::new("text", "is empty; a message says something"));
        }
        let payload = Payload::from_json(serde_json::json!({ "text": text }))?;
        let mut event =
            Self::from_parts(EventType::known("user.message"), Source::known("user"), Severity::Info, payload);
        event.cause = EventCause::Person;
        Ok(event)
    }

    /// A message that the person sent by a channel, with the context that a reply needs. Callers must have authenticated
    /// the person.
    pub fn user_message_in(text: &str, context: &RequestContext) -> Result<Self, ValidationError> {
        let mut event = Self::user_message(text)?;
        let context = context.to_json();
        event.payload = Payload::from_json(serde_json::json!({ "text": text, "request_context": context }))?;
        Ok(event)
    }

    /// An event made by this crate from constants, which need no check.
    pub(crate) fn internal(kind: &'static str, source: &'static str, severity: Severity, payload: Payload) -> Self {
        Self {
            cause: EventCause::Agent,
            ..Self::from_parts(EventType::known(kind), Source::known(source), severity, payload)
        }
    }

    fn from_parts(kind: EventType, source: Source, severity: Severity, payload: Payload) -> Self {
        let own_doing = AGENT_OWN_TYPES.iter().any(|prefix| kind.as_str().starts_with(prefix));
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
            cause: if own_doing { EventCause::Agent } else { EventCause::World },
        }
    }

    /// Sets the id.
    pub fn with_id(mut self, id: EventId) -> Self {
        self.id = id;
        self
    }

    /// Names the event, for a driver that shares it before it has a name.
    pub fn set_id(&mut self, id: EventId) {
        self.id = id;
    }

    /// Sets the timestamp. It is only displayed; windows use the mailbox's clock.
    pub fn at(mut self, timestamp: Time) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// Sets the agent; the default is `main`.
    pub fn for_agent(mut self, agent: AgentName) -> Self {
        self.agent = agent;
        self
    }

    /// Sets the conversation.
    pub fn in_conversation(mut self, id: &str) -> Self {
        self.conversation_id = Some(id.into());
        self
    }

    /// Addresses the event to every open conversation of a person.
    pub fn for_person(mut self, id: &str) -> Self {
        self.user_id = Some(id.into());
        self
    }

    /// Sets the correlation id unless the sender set one.
    pub fn correlated(mut self, id: &str) -> Self {
        self.correlation_id.get_or_insert_with(|| id.into());
        self
    }

    /// Addresses a detected event to the agent and conversation of the observed one.
    pub(crate) fn addressed_like(mut self, other: &Self) -> Self {
        self.agent = other.agent.clone();
        self.conversation_id = other.conversation_id.clone();
        self.correlation_id = other.correlation_id.clone();
        self
    }

    /// Sets the event's own dedupe key, which overrides the subscriber's.
    pub fn with_dedupe_key(mut self, key: &str) -> Result<Self, ValidationError> {
        self.dedupe_key = Some(bounded_text("dedupe_key", key, DEDUPE_KEY_MAX)?.into());
        Ok(self)
    }

    /// Marks the event as caused by the agent itself: it never wakes the conversation.
    pub fn by_agent(mut self) -> Self {
        self.cause = EventCause::Agent;
        self
    }

    /// The id; nil if it was not set.
    pub fn id(&self) -> EventId {
        self.id
    }
    /// The type, such as `tool.call.failure`.
    pub fn kind(&self) -> &EventType {
        &self.kind
    }
    /// The component it came from.
    pub fn source(&self) -> &Source {
        &self.source
    }
    /// The severity.
    pub fn severity(&self) -> Severity {
        self.severity
    }
    /// When it happened, according to its sender.
    pub fn timestamp(&self) -> Time {
        self.timestamp
    }
    /// The payload.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }
    /// The event's own dedupe key.
    pub fn dedupe_key(&self) -> Option<&str> {
        self.dedupe_key.as_deref()
    }
    /// The agent it is for.
    pub fn agent(&self) -> &AgentName {
        &self.agent
    }
    /// The conversation it is for.
    pub fn conversation_id(&self) -> Option<&str> {
        self.conversation_id.as_deref()
    }
    /// The person whose open conversations it is for.
    pub fn user_id(&self) -> Option<&str> {
        self.user_id.as_deref()
    }
    /// The correlation id, for logs and traces.
    pub fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }
    /// Who caused it.
    pub fn cause(&self) -> EventCause {
        self.cause
    }

    /// The text for display without a template: the full message of a person or an agent, at most 200
    /// characters of anything else.
    pub fn message(&self) -> String {
        match self.is_shown_in_full() {
            true => self.payload.whole_message(),
            false => self.payload.message(),
        }
    }

    /// Whether it is a person's message or an agent's note to itself. Only a limit on tokens may shorten these.
    pub(crate) fn is_shown_in_full(&self) -> bool {
        let kind = self.kind.as_str();
        kind == "user.message" || kind.starts_with("agent.self.")
    }
}

/// Type prefixes of events that the agent itself causes, independent of the publisher. They never wake.
const AGENT_OWN_TYPES: [&str; 5] = ["tool.call.", "budget.", "context.limit.", "agent.loop.", "agent.self."];

/// The maximum length of an event's dedupe key, in characters.
pub(crate) const DEDUPE_KEY_MAX: usize = 256;
/// The maximum length of a conversation, user or correlation id, in characters.
const NAME_MAX: usize = 128;

/// A field of external input that was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The wire name of the field.
    pub field: &'static str,
    /// What was sent and what is allowed, as one sentence.
    pub message: String,
    /// Whether the value is valid but not allowed for this sender, such as a message in the person's name.
    pub forbidden: bool,
}

impl ValidationError {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), forbidden: false }
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for ValidationError {}

/// The name under which the hub itself speaks.
pub const HUB: &str = "bellwire";
/// The name under which the holder of an admin token speaks to people.
pub const OPERATOR: &str = "operator";
/// The name under which a person speaks.
pub const PERSON: &str = "user";
/// Names that no source and no origin from outside may have. Two of them are for the hub's own processes.
pub const RESERVED_NAMES: [&str; 5] = [HUB, PERSON, OPERATOR, "switchboard", "messenger"];

/// The reserved name that this one is, in whatever case. Unicode is to be normalised before.
pub fn reserved_name(name: &str) -> Option<&'static str> {
    RESERVED_NAMES.into_iter().find(|reserved| name.to_lowercase() == *reserved)
}

/// Reserved names cannot be borrowed, nor can the type of a person's message.
fn refuse_reserved(kind: &EventType, source: &Source) -> Result<(), ValidationError> {
    let persons =
        |claim: &str| format!("'{claim}' is the person's own voice; only the messages and actions calls may use it");
    let (field, message) = match reserved_name(without_count(source.as_str())) {
        _ if kind.as_str() == "user.message" => ("type", persons("user.message")),
        Some(PERSON) => ("source", persons(PERSON)),
        Some(name) => ("source", format!("'{name}' is reserved for Bellwire itself; name the component that reports")),
        None => return Ok(()),
    };
    Err(ValidationError { forbidden: true, ..ValidationError::new(field, message) })
}

/// A label is followed by how many events it stands for, so `user x7` reads as the person's too.
fn without_count(source: &str) -> &str {
    let mut name = source;
    while let Some((shorter, count)) = name.rsplit_once(" x")
        && count.bytes().all(|byte| byte.is_ascii_digit())
    {
        name = shorter.trim_end();
    }
    name
}

/// Checks for 1 to `max` characters and no control characters.
fn bounded_text<'a>(field: &'static str, text: &'a str, max: usize) -> Result<&'a str, ValidationError> {
    let length = text.chars().count();
    if length == 0 || length > max {
        return Err(ValidationError::new(field, format!("has {length} characters; 1 to {max} are allowed")));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(control) => Err(ValidationError::new(field, format!("contains the control character {control:?}"))),
        None => Ok(text),
    }
}

/// The first 40 characters of a refused value, for its error message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
