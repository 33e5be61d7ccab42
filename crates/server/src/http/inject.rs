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
use uuid::Uuid;

use super::body::{Body, Object};
use super::correlation::Correlation;
use super::field::{BoundedInteger, EnumText, SingleLineText, WireEnum};
use super::path::ConversationPath;
use super::{ApiError, Hub};
use crate::auth::Identity;

type CallId = SingleLineText<{ Inject::CALL_ID_MAX }>;
type ItemsMax = BoundedInteger<1, { InjectLimits::ITEMS_MOST as u64 }>;
type TokensMax = BoundedInteger<{ InjectLimits::TOKENS_MIN as u64 }, { InjectLimits::TOKENS_MOST as u64 }>;

/// An agent at an injection point.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "point": "after_tool", "call_id": "toolu_1", "tool_result": "File updated successfully.",
}]))]
#[schemars(rename = "InjectRequest")]
pub(super) struct InjectBody {
    /// Where the agent is.
    point: EnumText<InjectionPoint>,
    /// The caller's own name for this moment; asking again with it gives the same answer.
    call_id: CallId,
    /// The agent inside the conversation; `main` where it is left out.
    agent: Option<SingleLineText<{ AgentName::MAX }>>,
    /// What the tool returned. It comes back in `content`, unaltered, with the block behind it.
    tool_result: Option<String>,
    /// Whether the tool failed. Errors are augmented exactly like successes.
    #[serde(rename = "is_error")]
    _is_error: Option<bool>,
    /// How the news is written; `block` where it is left out.
    style: Option<EnumText<Style>>,
    /// For which API synthetic messages are shaped; `anthropic` where it is left out.
    shape: Option<EnumText<Shape>>,
    /// How many items at most; 10 where it is left out.
    max_items: Option<ItemsMax>,
    /// How many tokens at most, tags included; 1000 where it is left out.
    max_tokens: Option<TokensMax>,
    /// Earlier calls whose answers never reached the model; what they took waits again, within the bound of 200
    /// notifications that wait for an agent. At most 20 calls.
    #[serde(default)]
    #[schemars(length(max = Inject::UNSEEN_MAX))]
    unseen: Vec<CallId>,
    /// Take nothing unless something is among it that is reason to wake the agent.
    #[serde(default)]
    wake_only: bool,
    /// The tool call just seen, published first.
    observed: Option<Object<ObservedCallBody>>,
}

/// A tool call the agent just made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ObservedCall")]
struct ObservedCallBody {
    /// The tool.
    tool_name: SingleLineText<256>,
    /// How the call ended.
    outcome: EnumText<CallOutcome>,
    /// Its arguments, for the loop detector: any JSON.
    arguments: Option<Value>,
    /// The kind of error.
    error_type: Option<String>,
    /// The error in words.
    error_message: Option<String>,
    /// How long it took.
    duration_ms: Option<BoundedInteger>,
    /// What has been used of which budgets.
    usage: Option<Object<Usage>>,
}

/// What has been used of which budgets, for the budget detectors.
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

/// An agent's mail.
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
    /// The text to put behind the tool's result; empty where there is nothing to say.
    block: String,
    /// The tool's result, a blank line, and the block.
    content: String,
    /// Messages to add to the conversation, for style `synthetic` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    messages: Option<Vec<Value>>,
    /// The notifications that were taken.
    notifications: Vec<Uuid>,
    /// Showing, folded and pending together.
    count: usize,
    /// Items shown.
    showing: usize,
    /// Items summed up in a line.
    folded: usize,
    /// Items that did not fit and wait on.
    pending: usize,
    /// What the caller should know about its request, such as a call id in `unseen` that is not known. Left out where
    /// there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<String>,
}

/// Takes the agent's pending notifications at an injection point. The same call id gets the same response.
pub(super) async fn inject(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
    correlation: Extension<Correlation>,
    Body(mut ask): Body<InjectBody>,
) -> Result<Json<InjectResponse>, ApiError> {
    identity.usage.inject(std::time::Instant::now())?;
    let tool_result = ask.tool_result.take().unwrap_or_default();
    let mut take = ask.into_take(id, identity)?;
    take.correlation_id = Some(correlation.id().to_owned());
    let style = take.request.style;
    let given = hub.store.take(take).await?;
    Ok(Json(InjectResponse::of(given, &tool_result, style)))
}

impl InjectBody {
    fn into_take(self, conversation_id: String, identity: Identity) -> Result<InjectCommand, ApiError> {
        let mut request = Inject::new(self.point.0, &self.call_id.0)?;
        request.style = self.style.map_or(Style::Block, |word| word.0);
        request.shape = self.shape.map_or(Shape::Anthropic, |word| word.0);
        let default = InjectLimits::default();
        let items = self.max_items.map_or(default.items_max, |items| items.0 as usize);
        let tokens = self.max_tokens.map_or(default.tokens_max, |tokens| tokens.0 as usize);
        request.limits = InjectLimits::new(items, tokens)?;
        request.wake_only = self.wake_only;
        if self.unseen.len() > Inject::UNSEEN_MAX {
            let message = format!("names {} calls; at most {} are allowed", self.unseen.len(), Inject::UNSEEN_MAX);
            return Err(ApiError::invalid("unseen", message));
        }
        let agent = self.agent.map_or_else(|| Ok(AgentName::main()), |agent| AgentName::parse(&agent.0))?;
        let observed = self.observed.map(|Object(call)| call.into_observed()).transpose()?;
        let unseen = self.unseen.into_iter().map(|call_id| call_id.0).collect();
        let caller = identity.caller;
        let (correlation_id, unsure) = (None, false);
        Ok(InjectCommand { caller, conversation_id, agent, request, observed, unseen, correlation_id, unsure })
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
    fn of(given: InjectResult, tool_result: &str, style: Style) -> Self {
        Self {
            content: given.content(tool_result),
            block: given.block,
            messages: (style == Style::Synthetic).then_some(given.messages),
            notifications: given.notifications,
            count: given.count,
            showing: given.showing,
            folded: given.folded,
            pending: given.pending,
            warnings: given.warnings,
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
