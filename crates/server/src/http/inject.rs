use axum::extract::State;
use axum::{Extension, Json};
use bellwire_core::conversation::{CallOutcome, ObservedCall};
use bellwire_core::event::AgentName;
use bellwire_core::inject::{InjectLimits, Shape, Style};
use bellwire_core::{Inject, InjectionPoint};
use bellwire_store::{InjectCommand, InjectResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::body::{Body, Object};
use super::correlation::Correlation;
use super::field::{BoundedInteger, EnumText, SingleLineText, WireEnum};
use super::path::ConversationPath;
use super::system_prompt::{agent_name, style_and_shape};
use super::{ApiError, Hub};
use crate::auth::Identity;

type CallId = SingleLineText<{ Inject::CALL_ID_MAX }>;
type ItemsMax = BoundedInteger<1, { InjectLimits::ITEMS_MOST as u64 }>;
type TokensMax = BoundedInteger<{ InjectLimits::TOKENS_MIN as u64 }, { InjectLimits::TOKENS_MOST as u64 }>;

/// A request of an agent at an injection point.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "point": "after_tool", "call_id": "toolu_1", "tool_result": "File updated successfully.",
}]))]
#[schemars(extend("if" = { "properties": { "shape": { "type": "string" } }, "required": ["shape"] }))]
#[schemars(extend("then" = { "properties": { "style": { "const": "synthetic" } }, "required": ["style"] }))]
#[schemars(rename = "InjectRequest")]
pub(super) struct InjectBody {
    /// The injection point.
    point: EnumText<InjectionPoint>,
    /// The caller's id of this call. A repeated call id gets the same answer.
    call_id: CallId,
    /// The agent in the conversation. Default: `main`.
    agent: Option<SingleLineText<{ AgentName::MAX }>>,
    /// The tool's result. `content` of the response is this text, unchanged, followed by the block.
    tool_result: Option<String>,
    /// Whether the tool failed. A failed result gets the block like a successful one.
    #[serde(rename = "is_error")]
    _is_error: Option<bool>,
    /// The form of the notifications. Default: `block`.
    style: Option<EnumText<Style>>,
    /// The API format of synthetic messages, with style `synthetic` only. Default: `anthropic`.
    shape: Option<EnumText<Shape>>,
    /// The maximum number of items. Default: 10.
    max_items: Option<ItemsMax>,
    /// The maximum number of tokens, including the tags. Default: 1000.
    max_tokens: Option<TokensMax>,
    /// The call ids of earlier answers that never reached the model. Their notifications become pending again, within
    /// the limit of 200 pending notifications per agent. At most 20 call ids.
    #[serde(default)]
    #[schemars(length(max = Inject::UNSEEN_MAX))]
    unseen: Vec<CallId>,
    /// Take notifications only if at least one of them would wake the agent.
    #[serde(default)]
    wake_only: bool,
    /// The agent's latest tool call. It is published as an event first.
    observed: Option<Object<ObservedCallBody>>,
}

/// The agent's latest tool call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ObservedCall")]
struct ObservedCallBody {
    /// The name of the tool.
    tool_name: SingleLineText<256>,
    /// How the call ended.
    outcome: EnumText<CallOutcome>,
    /// The arguments, any JSON, for the loop detector.
    arguments: Option<Value>,
    /// The kind of error.
    error_type: Option<String>,
    /// The error message.
    error_message: Option<String>,
    /// The duration.
    duration_ms: Option<BoundedInteger>,
    /// The usage of budgets.
    usage: Option<Object<Usage>>,
    /// Whether the agent has read the result itself, as behind a hook: then the event is stored and feeds the detectors, and
    /// the agent is not told of it again. Default: false.
    #[serde(default)]
    seen: bool,
}

/// The usage of budgets, for the budget detectors.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_used: Option<BoundedInteger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_limit: Option<BoundedInteger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<BoundedInteger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration_limit: Option<BoundedInteger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_used: Option<BoundedInteger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_limit: Option<BoundedInteger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ms: Option<BoundedInteger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_limit_ms: Option<BoundedInteger>,
}

/// The notifications of an injection.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "block": "<notifications id=\"k7Qm2xTb\" count=\"1\" showing=\"1\">\n\
              - [tool_executor] tool_fail: vault_search timeout\n</notifications>",
    "content": "File updated successfully.\n\n<notifications id=\"k7Qm2xTb\" count=\"1\" showing=\"1\">\n\
                - [tool_executor] tool_fail: vault_search timeout\n</notifications>",
    "notifications": ["0198c0de-5bbd-7d47-b5fb-4c6c85fb6ae0"],
    "count": 1, "showing": 1, "folded": 0, "pending": 0,
}]))]
#[schemars(rename = "Injection")]
pub(super) struct InjectResponse {
    /// The text to append to the tool's result; empty if there is nothing to show.
    block: String,
    /// The tool's result, a blank line, and the block.
    content: String,
    /// Messages to add to the conversation, for style `synthetic` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    messages: Option<Vec<Value>>,
    /// The notifications that were taken.
    notifications: Vec<Uuid>,
    /// The sum of `showing`, `folded` and `pending`.
    count: usize,
    /// The number of items shown.
    showing: usize,
    /// The number of items that are only counted in summary lines.
    folded: usize,
    /// The number of items that did not fit and stay pending.
    pending: usize,
    /// Warnings about the request: an unknown call id in `unseen`, or a call id that returned with another `tool_result`.
    /// Omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<String>,
}

/// Takes the agent's pending notifications at an injection point. The same call id gets the same response.
pub(super) async fn inject(
    State(hub): State<Hub>,
    ConversationPath { mut identity, id }: ConversationPath,
    correlation: Extension<Correlation>,
    Body(mut ask): Body<InjectBody>,
) -> Result<Json<InjectResponse>, ApiError> {
    identity.usage.inject(std::time::Instant::now())?;
    identity.act_as_own_person()?;
    let tool_result = ask.tool_result.take();
    let mut command = ask.into_command(id, identity)?;
    command.tool_result_digest = tool_result.as_deref().map(|text| digest(&command.request.call_id, text));
    command.correlation_id = Some(correlation.id().to_owned());
    let style = command.request.style;
    let result = hub.inject(command).await?;
    Ok(Json(InjectResponse::of(result, tool_result.as_deref().unwrap_or_default(), style)))
}

/// A digest of a tool's result. It includes the call id, so that equal results of different calls have different digests.
fn digest(call_id: &str, tool_result: &str) -> [u8; 16] {
    let hash = Sha256::new().chain_update(call_id).chain_update([0]).chain_update(tool_result).finalize();
    std::array::from_fn(|at| hash[at])
}

impl InjectBody {
    fn into_command(self, conversation_id: String, identity: Identity) -> Result<InjectCommand, ApiError> {
        let mut request = Inject::new(self.point.0, &self.call_id.0)?;
        (request.style, request.shape) = style_and_shape(self.style, self.shape)?;
        let default = InjectLimits::default();
        let items = self.max_items.map_or(default.items_max, |items| items.0 as usize);
        let tokens = self.max_tokens.map_or(default.tokens_max, |tokens| tokens.0 as usize);
        request.limits = InjectLimits::new(items, tokens)?;
        request.wake_only = self.wake_only;
        if self.unseen.len() > Inject::UNSEEN_MAX {
            let message = format!("names {} calls; at most {} are allowed", self.unseen.len(), Inject::UNSEEN_MAX);
            return Err(ApiError::invalid("unseen", message));
        }
        let agent = agent_name(self.agent)?;
        let observed = self.observed.map(|Object(call)| call.into_observed()).transpose()?;
        let unseen = self.unseen.into_iter().map(|call_id| call_id.0).collect();
        let caller = identity.caller;
        let (tool_result_digest, correlation_id, unsure) = (None, None, false);
        Ok(InjectCommand {
            caller,
            conversation_id,
            agent,
            request,
            observed,
            unseen,
            tool_result_digest,
            correlation_id,
            unsure,
        })
    }
}

impl ObservedCallBody {
    fn into_observed(self) -> Result<ObservedCall, ApiError> {
        let usage = self.usage.map(|Object(usage)| serde_json::to_value(usage).expect("integers can be serialized"));
        let observed = ObservedCall {
            tool_name: self.tool_name.0,
            outcome: self.outcome.0,
            arguments: self.arguments,
            error_type: self.error_type,
            error_message: self.error_message,
            duration_ms: self.duration_ms.map(|duration| duration.0),
            usage,
            seen: self.seen,
        };
        // An observed call that is no valid event is refused before the store is called.
        observed.clone().into_event().map_err(|invalid| ApiError {
            field: Some(format!("observed.{}", invalid.field)),
            ..ApiError::from(invalid)
        })?;
        Ok(observed)
    }
}

impl InjectResponse {
    fn of(result: InjectResult, tool_result: &str, style: Style) -> Self {
        Self {
            content: result.content(tool_result),
            block: result.block,
            messages: (style == Style::Synthetic).then_some(result.messages),
            notifications: result.notifications,
            count: result.count,
            showing: result.showing,
            folded: result.folded,
            pending: result.pending,
            warnings: result.warnings,
        }
    }
}

impl WireEnum for CallOutcome {
    const VALUES: &'static [Self] = &[Self::Success, Self::Failure, Self::Timeout];

    fn text(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Timeout => "timeout",
        }
    }
}
