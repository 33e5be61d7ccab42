//! The wire fields of a stored event, which lists and traces share.

use bellwire_core::event::StoredEvent;
use bellwire_core::{Severity, Time};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::field::{EnumText, Rfc3339Time};

/// A stored event. Whose it is stands beside it: a list names its owner, a trace the person it was sent to.
#[derive(Serialize, JsonSchema)]
pub(super) struct StoredEventBody {
    /// The hub's id of the event.
    id: Uuid,
    /// What happened.
    #[serde(rename = "type")]
    kind: String,
    /// The component it came from.
    source: String,
    /// How severe it is.
    severity: EnumText<Severity>,
    /// When it happened, as its sender says.
    timestamp: Rfc3339Time,
    /// Its data.
    #[schemars(with = "serde_json::Map<String, Value>")]
    payload: Value,
    /// Events with the same key are duplicates.
    dedupe_key: Option<String>,
    /// The conversation it was sent to; null if it was sent to a person.
    conversation_id: Option<String>,
    /// The agent it was sent to.
    agent: String,
    /// The correlation id of the request that published it.
    correlation_id: Option<String>,
    /// When the hub accepted it.
    accepted_at: Rfc3339Time,
    /// How many subscribers do not listen for its type.
    filtered: u32,
}

impl StoredEventBody {
    pub(super) fn new(event: StoredEvent, accepted_at: Time, filtered: u32) -> Self {
        Self {
            id: event.id.0,
            kind: event.kind,
            source: event.source,
            severity: EnumText(event.severity),
            timestamp: Rfc3339Time(event.timestamp),
            payload: serde_json::from_str(&event.payload).unwrap_or(Value::Null),
            dedupe_key: event.dedupe_key,
            conversation_id: event.conversation_id,
            agent: event.agent,
            correlation_id: event.correlation_id,
            accepted_at: Rfc3339Time(accepted_at),
            filtered,
        }
    }
}
