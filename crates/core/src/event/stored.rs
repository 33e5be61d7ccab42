use serde_json::Value;

use super::{AgentName, Event, EventCause, EventType, Payload, Severity, Source, ValidationError};
use crate::{EventId, Time};

/// An event as the columns of a store's row.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// [`Event::id`].
    pub id: EventId,
    /// [`Event::kind`].
    pub kind: String,
    /// [`Event::source`].
    pub source: String,
    /// [`Event::severity`].
    pub severity: Severity,
    /// [`Event::timestamp`].
    pub timestamp: Time,
    /// [`Event::payload`] as JSON.
    pub payload: String,
    /// [`Event::dedupe_key`].
    pub dedupe_key: Option<String>,
    /// [`Event::agent`].
    pub agent: String,
    /// [`Event::conversation_id`].
    pub conversation_id: Option<String>,
    /// [`Event::user_id`].
    pub user_id: Option<String>,
    /// [`Event::correlation_id`].
    pub correlation_id: Option<String>,
    /// [`Event::cause`].
    pub cause: EventCause,
}

impl Event {
    /// The event as columns.
    pub fn to_stored(&self) -> StoredEvent {
        StoredEvent {
            id: self.id,
            kind: self.kind.to_string(),
            source: self.source.to_string(),
            severity: self.severity,
            timestamp: self.timestamp,
            payload: Value::Object(self.payload.as_map().clone()).to_string(),
            dedupe_key: self.dedupe_key.as_deref().map(Into::into),
            agent: self.agent.to_string(),
            conversation_id: self.conversation_id.as_deref().map(Into::into),
            user_id: self.user_id.as_deref().map(Into::into),
            correlation_id: self.correlation_id.as_deref().map(Into::into),
            cause: self.cause,
        }
    }

    /// The event of a stored row. It is validated again, because the row may be damaged.
    pub fn from_stored(stored: StoredEvent) -> Result<Self, ValidationError> {
        let json = serde_json::from_str(&stored.payload)
            .map_err(|error| ValidationError::new("payload", error.to_string()))?;
        let (kind, source) = (EventType::parse(&stored.kind)?, Source::parse(&stored.source)?);
        let mut event = Self::from_parts(kind, source, stored.severity, Payload::from_json(json)?);
        event.id = stored.id;
        event.timestamp = stored.timestamp;
        event.dedupe_key = stored.dedupe_key.map(Into::into);
        event.agent = AgentName::parse(&stored.agent)?;
        event.conversation_id = stored.conversation_id.map(Into::into);
        event.user_id = stored.user_id.map(Into::into);
        event.correlation_id = stored.correlation_id.map(Into::into);
        event.cause = stored.cause;
        Ok(event)
    }
}

impl EventCause {
    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::World => "world",
            Self::Agent => "agent",
            Self::Person => "person",
        }
    }

    /// Parses a stored name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::World, Self::Agent, Self::Person].into_iter().find(|cause| cause.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_survives_storing_and_loading() {
        let payload = json!({"b": [1, 2.5, null], "a": {"text": "line\nline", "big": u64::MAX}});
        let event = Event::new("ci.build.failed", "ci", Severity::Error, payload).unwrap();
        let event = event.with_dedupe_key("k").unwrap().at(Time::from_millis(5)).by_agent();
        assert_eq!(Event::from_stored(event.to_stored()).unwrap(), event);
        let message = Event::user_message("hello").unwrap();
        assert_eq!(Event::from_stored(message.to_stored()).unwrap(), message);
    }
}
