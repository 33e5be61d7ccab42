//! An event as one allocation.
//!
//! A mailbox that no agent reads keeps its events for long. A parsed event is about twenty allocations and two kilobytes; a
//! packed one is one allocation of a few hundred bytes. Until the commit it also provides the payload text of the event's row.

use std::sync::Arc;

use bellwire_core::event::{EventCause, StoredEvent};
use bellwire_core::{Event, EventId, Severity, Time};
use serde::{Deserialize, Serialize};

/// The initial capacity, in bytes; enough for most events.
const CAPACITY: usize = 1024;

/// An event without its id.
#[derive(Clone, Debug)]
pub(crate) struct PackedEvent {
    /// The columns in postcard, then the payload as JSON.
    bytes: Arc<[u8]>,
    /// The offset of the payload.
    payload: usize,
}

/// The fields of an event except id and payload.
#[derive(Serialize, Deserialize)]
struct Columns<'a> {
    kind: &'a str,
    source: &'a str,
    severity: &'a str,
    timestamp: Time,
    dedupe_key: Option<&'a str>,
    agent: &'a str,
    conversation_id: Option<&'a str>,
    user_id: Option<&'a str>,
    correlation_id: Option<&'a str>,
    cause: &'a str,
}

impl Columns<'_> {
    fn to_bytes(&self) -> Vec<u8> {
        postcard::to_extend(self, Vec::with_capacity(CAPACITY)).expect("these types always serialize to postcard")
    }
}

impl PackedEvent {
    pub(crate) fn of(event: &Event) -> Self {
        let columns = Columns {
            kind: event.kind().as_str(),
            source: event.source().as_str(),
            severity: event.severity().as_str(),
            timestamp: event.timestamp(),
            dedupe_key: event.dedupe_key(),
            agent: event.agent().as_str(),
            conversation_id: event.conversation_id(),
            user_id: event.user_id(),
            correlation_id: event.correlation_id(),
            cause: event.cause().as_str(),
        };
        let mut bytes = columns.to_bytes();
        let payload = bytes.len();
        serde_json::to_writer(&mut bytes, event.payload().as_map()).expect("a JSON map always serializes");
        Self { bytes: bytes.into(), payload }
    }

    /// Packs an event read from a row, whose payload is already JSON.
    pub(crate) fn of_stored(stored: &StoredEvent) -> Self {
        let columns = Columns {
            kind: &stored.kind,
            source: &stored.source,
            severity: stored.severity.as_str(),
            timestamp: stored.timestamp,
            dedupe_key: stored.dedupe_key.as_deref(),
            agent: &stored.agent,
            conversation_id: stored.conversation_id.as_deref(),
            user_id: stored.user_id.as_deref(),
            correlation_id: stored.correlation_id.as_deref(),
            cause: stored.cause.as_str(),
        };
        let mut bytes = columns.to_bytes();
        let payload = bytes.len();
        bytes.extend_from_slice(stored.payload.as_bytes());
        Self { bytes: bytes.into(), payload }
    }

    /// The payload as JSON.
    pub(crate) fn payload(&self) -> &str {
        str::from_utf8(&self.bytes[self.payload..]).expect("JSON is UTF-8")
    }

    /// Parses the event and sets its id.
    pub(crate) fn unpack(&self, id: EventId) -> Option<Event> {
        Event::from_stored(self.to_stored(id)?).ok()
    }

    /// The event as it is stored, with this id.
    pub(crate) fn to_stored(&self, id: EventId) -> Option<StoredEvent> {
        let columns: Columns<'_> = postcard::from_bytes(&self.bytes[..self.payload]).ok()?;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Some(StoredEvent {
            id,
            kind: columns.kind.to_owned(),
            source: columns.source.to_owned(),
            severity: Severity::parse(columns.severity).ok()?,
            timestamp: columns.timestamp,
            payload: self.payload().to_owned(),
            dedupe_key: owned(columns.dedupe_key),
            agent: columns.agent.to_owned(),
            conversation_id: owned(columns.conversation_id),
            user_id: owned(columns.user_id),
            correlation_id: owned(columns.correlation_id),
            cause: EventCause::parse(columns.cause)?,
        })
    }

    /// Its size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packing_and_unpacking_keeps_the_event() -> Result<(), Box<dyn std::error::Error>> {
        let numbers = json!({"big": u64::MAX, "fine": 9.2681893583e-241});
        let payload = json!({"b": [1, 2.5, null], "a": {"text": "line\nline"}, "": "é", "numbers": numbers});
        let event = Event::new("ci.build.failed", "ci", Severity::Error, payload)?;
        let id = EventId(uuid::Uuid::from_u128(7));
        let event = event.with_dedupe_key("k")?.at(Time::from_millis(-5)).by_agent().with_id(id);
        let event = event.in_conversation("chat").for_person("ada").correlated("c");
        let packed = PackedEvent::of(&event);
        assert_eq!(packed.unpack(id), Some(event.clone()));
        assert_eq!(PackedEvent::of_stored(&event.to_stored()).bytes, packed.bytes);
        assert_eq!(packed.payload(), serde_json::to_string(event.payload().as_map())?);
        let message = Event::user_message("hello")?;
        assert_eq!(PackedEvent::of(&message).unpack(message.id()), Some(message));
        Ok(())
    }
}
