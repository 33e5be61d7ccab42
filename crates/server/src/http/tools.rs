use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use bellwire_core::Inject;
use bellwire_core::event::AgentName;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::body::{Body, Object};
use super::correlation::Correlation;
use super::field::{ID_MAX, PathId, SingleLineText};
use super::{ApiError, Hub, idempotency};
use crate::auth::Identity;
use crate::tools::{self, Context, RequestedContext, TOOLS};

/// A call of an agent's tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "arguments": { "message": "Re-run the tests before summing up" },
    "context": { "user_id": "ada", "conversation_id": "chat" },
}]))]
pub(super) struct ToolCall {
    /// The arguments from the model. Numbers, lists and objects are also accepted as strings, if they are unambiguous.
    #[serde(default)]
    arguments: Value,
    /// The person, conversation and agent of the call.
    context: Option<Object<ToolContext>>,
}

/// The person and conversation of a tool call. A field that the token is bound to may be omitted.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolContext {
    /// The person the agent works for.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// The conversation. Its pending notifications are added to the result.
    conversation_id: Option<SingleLineText<ID_MAX>>,
    /// The agent in the conversation.
    agent: Option<SingleLineText<{ AgentName::MAX }>>,
    /// An id that connects it with other requests in logs and traces.
    correlation_id: Option<SingleLineText<ID_MAX>>,
    /// The caller's id of this call. Default: the header `Idempotency-Key`.
    idempotency_key: Option<SingleLineText<{ Inject::CALL_ID_MAX }>>,
}

/// A tool's result, and the call id of the injection whose notifications it contains.
#[derive(Serialize)]
pub(super) struct ToolAnswer {
    #[serde(flatten)]
    value: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
}

/// Calls a tool. A refusal by the tool is a result with status 200, not an HTTP error.
pub(super) async fn call(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    correlation: Extension<Correlation>,
    headers: HeaderMap,
    PathId(name): PathId,
    Body(call): Body<ToolCall>,
) -> Result<Json<ToolAnswer>, ApiError> {
    let tool = tools::find(&name).ok_or_else(|| unknown(&name))?;
    let mut requested = call.context.map_or_else(RequestedContext::default, |Object(context)| context.into());
    let key = idempotency::key_of(&headers)?;
    requested.idempotency_key = requested.idempotency_key.or(key);
    let context = Context::of(identity, requested, correlation.id())?;
    let result = tools::call(&hub, tool, context, call.arguments).await;
    Ok(Json(ToolAnswer { value: result.value, call_id: result.call_id }))
}

fn unknown(name: &str) -> ApiError {
    let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let name: String = name.chars().take(64).collect();
    ApiError {
        message: format!("there is no tool '{name}'"),
        hint: Some(format!("the tools are: {}", known.join(", "))),
        ..ApiError::not_found("tool")
    }
}

impl From<ToolContext> for RequestedContext {
    fn from(context: ToolContext) -> Self {
        Self {
            user_id: context.user_id.map(|line| line.0),
            conversation_id: context.conversation_id.map(|line| line.0),
            agent: context.agent.map(|line| line.0),
            correlation_id: context.correlation_id.map(|line| line.0),
            idempotency_key: context.idempotency_key.map(|line| line.0),
        }
    }
}

impl JsonSchema for ToolAnswer {
    fn schema_name() -> Cow<'static, str> {
        "ToolAnswer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let call_id = json_schema!({
            "type": "string", "description": "The injection whose mail the result carries.",
        });
        let answers: Vec<Value> = TOOLS
            .iter()
            .map(|tool| {
                let mut schema = tool.output_schema();
                schema.insert("title".into(), tool.title.into());
                if let Some(Value::Object(properties)) = schema.get_mut("properties") {
                    properties.insert("call_id".into(), call_id.clone().to_value());
                }
                Value::Object(schema)
            })
            .collect();
        json_schema!({ "description": "The tool's own result, also where it refuses.", "anyOf": answers })
    }
}
