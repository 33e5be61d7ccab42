//! What a page or a program can offer: the tools, the known event types, and the channels.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bellwire_core::event::{KNOWN_TYPES, KnownType};
use bellwire_core::{EventType, Severity, Subscriber};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::EnumText;
use super::shape::List;
use super::{ApiError, Hub};
use crate::channels::{Channel, ChannelStatus, Verification};
use crate::tools::{TOOLS, Tool};

/// An agent's tool.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolInfo")]
pub(super) struct ToolBody {
    /// The name, for `POST /v1/tools/{name}`.
    name: &'static str,
    /// The name for people.
    title: &'static str,
    /// The description that a model gets.
    description: &'static str,
    /// The JSON schema of the arguments.
    input_schema: Map<String, Value>,
}

/// An event type that Bellwire knows. Other types are allowed too.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventTypeInfo")]
pub(super) struct EventTypeBody {
    /// The type.
    #[serde(rename = "type")]
    name: &'static str,
    /// What has happened, and who publishes it.
    meaning: &'static str,
    /// The source of a sample event.
    source: &'static str,
    /// The severity of a sample event.
    severity: EnumText<Severity>,
    /// The payload fields that templates and detectors read.
    fields: Vec<FieldBody>,
    /// The subscribers of this hub that listen for it.
    subscribers: Vec<String>,
}

/// A payload field.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PayloadFieldInfo")]
struct FieldBody {
    /// The name.
    name: &'static str,
    /// What the value is.
    meaning: &'static str,
    /// An example of a value.
    example: Value,
    /// Whether the bundled template shows it, in words.
    shown: String,
}

/// A channel to people.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChannelInfo")]
pub(super) struct ChannelBody {
    /// The name in settings and paths.
    name: String,
    /// The name for people.
    display_name: &'static str,
    /// Whether the operator has configured it.
    available: bool,
    /// How a person proves that an address is theirs: with a `code` that the hub sends to it, or by `pairing`.
    #[schemars(extend("enum" = ["code", "pairing"]))]
    verification: &'static str,
}

/// Lists the tools, with the channels of this hub in their schemas.
pub(super) async fn tools() -> Result<Json<List<ToolBody>>, ApiError> {
    Ok(Json(List::whole(TOOLS.iter().map(ToolBody::from).collect())))
}

/// Lists the known event types.
pub(super) async fn event_types(State(hub): State<Hub>) -> Result<Json<List<EventTypeBody>>, ApiError> {
    let subscribers = hub.subscribers();
    let body = |known: &KnownType| {
        let kind = EventType::parse(known.name).ok();
        let listens = |one: &&Arc<Subscriber>| kind.as_ref().is_some_and(|kind| one.listens_for(kind));
        let listening = subscribers.iter().filter(listens);
        EventTypeBody {
            name: known.name,
            meaning: known.meaning,
            source: known.source,
            severity: EnumText(known.severity),
            fields: known.fields.iter().map(FieldBody::from).collect(),
            subscribers: listening.map(|one| one.id.to_string()).collect(),
        }
    };
    Ok(Json(List::whole(KNOWN_TYPES.iter().map(body).collect())))
}

/// Lists the channels, configured or not.
pub(super) async fn channels(State(hub): State<Hub>) -> Result<Json<List<ChannelBody>>, ApiError> {
    Ok(Json(List::whole(hub.channels.iter().map(|channel| ChannelBody::of(&**channel)).collect())))
}

impl From<&Tool> for ToolBody {
    fn from(tool: &Tool) -> Self {
        let input_schema = tool.input_schema();
        Self { name: tool.name, title: tool.title, description: tool.description, input_schema }
    }
}

impl From<&bellwire_core::event::PayloadField> for FieldBody {
    fn from(field: &bellwire_core::event::PayloadField) -> Self {
        let shown = field.shown.describe();
        Self { name: field.name, meaning: field.meaning, example: field.value(), shown }
    }
}

impl ChannelBody {
    fn of(channel: &dyn Channel) -> Self {
        let shape = channel.settings();
        Self {
            name: channel.name().to_string(),
            display_name: shape.display_name,
            available: !matches!(channel.status(), ChannelStatus::Off { .. }),
            verification: match shape.verification {
                Verification::Code => "code",
                Verification::Pairing => "pairing",
            },
        }
    }
}
