//! The paragraph that explains notifications to a model, in the style that its harness injects.

use axum::Json;
use axum::extract::State;
use bellwire_core::event::AgentName;
use bellwire_core::inject::{Shape, Style};
use bellwire_core::render::{Boundary, system_prompt as prompt_for, tool_definition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::field::{EnumText, SingleLineText};
use super::idempotency::IdempotentQuery;
use super::path::ConversationPath;
use super::query::Query;
use super::{ApiError, Hub};

/// The query of `GET …/system_prompt` and `POST …/system_prompt/rotate`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptQuery {
    /// The style of the injections, which the paragraph explains. Default: `block`.
    style: Option<EnumText<Style>>,
    /// The API format of the tool definition, with style `synthetic` only. Default: `anthropic`.
    shape: Option<EnumText<Shape>>,
    /// The agent in the conversation: each has its own boundary. Default: `main`.
    agent: Option<SingleLineText<{ AgentName::MAX }>>,
    /// `ConversationPath` reads this parameter; it is listed here so that it is not refused as unknown.
    #[serde(rename = "user_id")]
    #[schemars(skip)]
    _owner: Option<serde::de::IgnoredAny>,
}

/// The paragraph for an agent's system prompt.
#[derive(Serialize, JsonSchema)]
pub(super) struct SystemPrompt {
    /// The paragraph. It contains the boundary.
    system_prompt: String,
    /// The current boundary, the mark of genuine notification blocks.
    boundary: String,
    /// The definition of the tool `_system_notification`, with style `synthetic` only. Providers refuse calls of a tool
    /// that is not defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    tool: Option<Value>,
}

/// Returns the system prompt paragraph that explains notifications of a style to the model.
pub(super) async fn system_prompt(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
    Query(query): Query<PromptQuery>,
) -> Result<Json<SystemPrompt>, ApiError> {
    let (style, shape) = style_and_shape(query.style, query.shape)?;
    let boundary = hub.store.boundary(identity.caller, id, agent_name(query.agent)?).await?;
    Ok(Json(SystemPrompt::of(&boundary, style, shape)))
}

/// Creates a new boundary for the agent, for a new session or after a compaction, and returns the paragraph with it.
pub(super) async fn rotate(
    State(hub): State<Hub>,
    ConversationPath { mut identity, id }: ConversationPath,
    IdempotentQuery { idempotency_key, query }: IdempotentQuery<PromptQuery>,
) -> Result<Json<SystemPrompt>, ApiError> {
    identity.act_as_own_person()?;
    let (style, shape) = style_and_shape(query.style, query.shape)?;
    let boundary = hub.store.rotate_boundary(identity.caller, id, agent_name(query.agent)?, idempotency_key).await?;
    Ok(Json(SystemPrompt::of(&boundary, style, shape)))
}

/// The agent of a request, `main` if it names none.
pub(super) fn agent_name(agent: Option<SingleLineText<{ AgentName::MAX }>>) -> Result<AgentName, ApiError> {
    Ok(agent.map_or_else(|| Ok(AgentName::main()), |agent| AgentName::parse(&agent.0))?)
}

/// The style and shape of a request. A shape that would have no effect is refused: the caller expects messages that do
/// not come.
pub(super) fn style_and_shape(
    style: Option<EnumText<Style>>,
    shape: Option<EnumText<Shape>>,
) -> Result<(Style, Shape), ApiError> {
    let style = style.map_or(Style::Block, |style| style.0);
    match shape {
        Some(_) if style != Style::Synthetic => {
            let message = format!("is only for style synthetic, not {}; leave it out or set style", style.as_str());
            Err(ApiError::invalid("shape", message))
        }
        shape => Ok((style, shape.map_or(Shape::Anthropic, |shape| shape.0))),
    }
}

impl SystemPrompt {
    fn of(boundary: &Boundary, style: Style, shape: Shape) -> Self {
        Self {
            system_prompt: prompt_for(boundary, style),
            boundary: boundary.as_str().to_owned(),
            tool: (style == Style::Synthetic).then(|| tool_definition(shape)),
        }
    }
}
