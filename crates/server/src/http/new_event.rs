//! The wire type of a published event, and its schemas. It checks which fields are present; the core checks their values.

use std::borrow::Cow;

use bellwire_core::{AgentName, Event, Severity, Time, ValidationError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use super::field::{EnumText, ID_MAX, Rfc3339Time, SingleLineText};

/// An event to publish.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEvent {
    /// The client's own id of the event. A repeat with the same content gets the first answer; with other content, 409.
    /// `stream` is no id, because `GET /v1/events/stream` is another call.
    #[schemars(extend("not" = { "const": "stream" }))]
    id: Option<SingleLineText<ID_MAX>>,
    /// The type: two to six lower-case parts joined by dots. `user.message` is reserved for the person.
    #[serde(rename = "type")]
    #[schemars(length(min = 3, max = 128), pattern(r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){1,5}$"))]
    kind: String,
    /// The component it comes from; the label of its notifications. `user` is reserved for the person.
    #[schemars(length(min = 1, max = 64), pattern(r"^[A-Za-z0-9_.:/-]([A-Za-z0-9 _.:/-]*[A-Za-z0-9_.:/-])?$"))]
    source: String,
    /// The severity.
    severity: EnumText<Severity>,
    /// When it happened. Default: when it arrives.
    timestamp: Option<Rfc3339Time>,
    /// The payload: any JSON object of at most 64 KiB and 64 levels.
    #[schemars(with = "serde_json::Map<String, Value>")]
    payload: Value,
    /// Events with the same key are duplicates. It replaces the subscriber's own rule.
    dedupe_key: Option<SingleLineText<256>>,
    /// The conversation it is for.
    conversation_id: Option<SingleLineText<ID_MAX>>,
    /// The agent in the conversation. Default: `main`.
    agent: Option<SingleLineText<128>>,
    /// The person it is for. Without `conversation_id`, it goes to every open conversation of this person.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// An id that connects it with other requests in logs and traces.
    correlation_id: Option<SingleLineText<128>>,
}

impl NewEvent {
    /// The client event id.
    pub(super) fn client_id(&self) -> Option<&str> {
        self.id.as_ref().map(|line| line.0.as_str())
    }

    /// Removes and returns the client event id. The store assigns the event's own id.
    pub(super) fn take_client_id(&mut self) -> Option<String> {
        self.id.take().map(|line| line.0)
    }

    /// The person it is for.
    pub(super) fn user_id(&self) -> Option<&str> {
        self.user_id.as_ref().map(|line| line.0.as_str())
    }

    /// Whether it has a conversation id or a user id.
    pub(super) fn is_addressed(&self) -> bool {
        self.conversation_id.is_some() || self.user_id.is_some()
    }

    /// Sets the conversation id.
    pub(super) fn address(&mut self, conversation_id: String) {
        self.conversation_id = Some(SingleLineText(conversation_id));
    }

    /// Converts to the core's event, which validates the values. The store assigns its id.
    pub(super) fn into_event(self, now: Time) -> Result<Event, ValidationError> {
        let mut event = Event::new(&self.kind, &self.source, self.severity.0, self.payload)?;
        event = event.at(self.timestamp.map_or(now, |at| at.0));
        if let Some(agent) = self.agent {
            event = event.for_agent(AgentName::parse(&agent.0)?);
        }
        if let Some(key) = self.dedupe_key {
            event = event.with_dedupe_key(&key.0)?;
        }
        if let Some(id) = self.conversation_id {
            event = event.in_conversation(&id.0);
        }
        if let Some(id) = self.user_id {
            event = event.for_person(&id.0);
        }
        Ok(match self.correlation_id {
            Some(id) => event.correlated(&id.0),
            None => event,
        })
    }
}

/// The schema of an event with a conversation id or a user id.
pub(super) struct AddressedEvent;

impl JsonSchema for AddressedEvent {
    fn schema_name() -> Cow<'static, str> {
        "AddressedEvent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An event with `conversation_id` or `user_id`. A token that is bound to a conversation may \
                            leave both out and publishes to that one.",
            "allOf": [generator.subschema_for::<NewEvent>()],
            "anyOf": [with_field("conversation_id"), with_field("user_id")],
        })
    }
}

/// The schema of a CloudEvent 1.0 in structured mode.
pub(super) struct CloudEvent;

impl JsonSchema for CloudEvent {
    fn schema_name() -> Cow<'static, str> {
        "CloudEvent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let id = generator.subschema_for::<Option<SingleLineText<ID_MAX>>>();
        let key = generator.subschema_for::<Option<SingleLineText<256>>>();
        json_schema!({
            "type": "object",
            "description": "A CloudEvent 1.0 in structured mode. The extension attributes `severity`, `conversationid`, \
                            `agent`, `userid` and `dedupekey` say what an event of ours says; other ones go into \
                            `payload.extensions`. Binary mode, with the attributes as `ce-` headers, works too.",
            "properties": {
                "specversion": { "const": "1.0" },
                "id": { "type": "string", "minLength": 1, "description": "Remembered together with the source." },
                "source": { "type": "string", "minLength": 1 },
                "type": { "type": "string", "minLength": 1, "description": "Made into a type of our form." },
                "time": { "anyOf": [generator.subschema_for::<Rfc3339Time>(), { "type": "null" }] },
                "data": { "description": "What it carries: any JSON. What is no object becomes `{data}`." },
                "severity": generator.subschema_for::<Option<EnumText<Severity>>>(),
                "conversationid": id,
                "agent": id,
                "userid": id,
                "dedupekey": key,
            },
            "required": ["specversion", "id", "source", "type"],
            "anyOf": [with_field("conversationid"), with_field("userid")],
            "examples": [{
                "specversion": "1.0", "id": "42", "source": "ci", "type": "ci.build.failed", "severity": "error",
                "conversationid": "chat", "data": { "message": "two tests fail" },
            }],
        })
    }
}

/// The schema of an object with this field, not null.
fn with_field(field: &str) -> Schema {
    json_schema!({ "required": [field], "properties": { field: { "type": "string" } } })
}

/// The example event of the API documentation.
pub(super) fn example() -> Value {
    json!({
        "type": "tool.call.failure", "source": "tool_executor", "severity": "error", "conversation_id": "chat",
        "payload": { "tool_name": "vault_search", "error_type": "timeout" },
    })
}
