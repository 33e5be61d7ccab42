use bellwire_core::Time;
use bellwire_core::notify::RequestContext;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::context::WireContext;
use super::notify_request::NotifyRequest;
use super::read::Envelope;

/// The name of the Switchboard in the context of the routes it makes, and the origin of its token.
pub(crate) const SWITCHBOARD: &str = "switchboard";
/// The channel of requests between processes.
pub(crate) const MCP_CHANNEL: &str = "mcp";
/// The prompt of every route that carries a notify request.
const PROMPT: &str = "Deliver the notify request in the context.";

/// route.v1: what the Switchboard asks the Messenger to do. These are the arguments of `route.execute`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteEnvelope {
    pub(crate) schema_version: RouteVersion,
    /// The id of the request, and the agent it comes from. It authenticates nothing: the caller's token does.
    pub(crate) request_context: WireContext,
    /// The request.
    pub(crate) input: RouteInput,
    /// Where it goes.
    pub(crate) target: RouteTarget,
    /// Ids of the caller's trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace_context: Option<Map<String, Value>>,
}

/// The version of a route.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum RouteVersion {
    #[default]
    #[serde(rename = "route.v1")]
    V1,
}

/// The content of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteInput {
    /// What to do, as a sentence.
    pub(crate) prompt: String,
    /// The request.
    pub(crate) context: RouteContext,
}

/// The request in a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteContext {
    /// The notify request.
    pub(crate) notify_request: NotifyRequest,
    /// The person whose target it is. Checked where the store is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<String>,
}

/// Where a route goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteTarget {
    /// The receiving process.
    pub(crate) butler: TargetButler,
    /// The tool to call there.
    pub(crate) tool: TargetTool,
}

/// The receiving process of a route.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TargetButler {
    /// The Messenger.
    #[default]
    Messenger,
}

/// The tool that a route calls.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum TargetTool {
    /// The Messenger's only tool.
    #[default]
    #[serde(rename = "route.execute")]
    Execute,
}

impl RouteEnvelope {
    /// The route of a notify request. Its context is the Switchboard's own: the request keeps the one it came with.
    pub(crate) fn of(request: NotifyRequest, user_id: Option<String>, request_id: Uuid, now: Time) -> Self {
        let request_context = RequestContext {
            request_id,
            source_channel: MCP_CHANNEL.to_owned(),
            source_endpoint_identity: SWITCHBOARD.to_owned(),
            source_sender_identity: request.origin_butler.clone(),
            source_thread_identity: None,
            received_at: Some(now.to_string()),
        };
        Self {
            schema_version: RouteVersion::V1,
            request_context: WireContext(request_context),
            input: RouteInput { prompt: PROMPT.to_owned(), context: RouteContext { notify_request: request, user_id } },
            target: RouteTarget { butler: TargetButler::Messenger, tool: TargetTool::Execute },
            trace_context: None,
        }
    }
}

impl Envelope for RouteEnvelope {
    const OBJECTS: &'static [&'static str] = &[
        "request_context",
        "input",
        "input.context",
        "input.context.notify_request",
        "input.context.notify_request.delivery",
        "input.context.notify_request.request_context",
        "target",
        "trace_context",
    ];
}
