//! The agent tools, the same over MCP and REST.
//!
//! Each tool has a file with a [`Tool`] (name, description, schemas, function) and an entry in [`TOOLS`]. The user, the
//! agent and the conversation are not arguments of a tool: they are its `Context`, which comes from the token and the
//! harness, never from the model. Tools do not depend on MCP or HTTP.

mod check_notifications;
mod context;
mod notification_throttle;
mod notify;
mod notify_self;
mod pending;
mod remind;
mod schema;
mod send_notification;
mod show_notification;
mod tool;

pub(crate) use context::{Context, RequestedContext};
pub(crate) use notification_throttle::NotificationThrottle;
pub(crate) use schema::input as object_schema;
pub use tool::{ResultForm, Tool, ToolHints};
pub(crate) use tool::{ToolRefusal, ToolResult};

use std::time::Instant;

use bellwire_core::person::ToolArguments;
use serde_json::Value;

use crate::http::Hub;
use tool::ToolInvocation;

/// All tools, in the order in which models get them.
pub static TOOLS: &[Tool] = &[
    check_notifications::TOOL,
    send_notification::TOOL,
    show_notification::TOOL,
    remind::TOOL,
    notify_self::TOOL,
    notify::TOOL,
];

/// The names of the tools that every agent has, once the hub has started.
pub const CORE_TOOL_NAMES: &[&str] = &[
    check_notifications::TOOL.name,
    send_notification::TOOL.name,
    show_notification::TOOL.name,
    remind::TOOL.name,
    notify_self::TOOL.name,
    notify::TOOL.name,
];

/// Finds a tool by its name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Calls a tool and returns its result or refusal, with the pending notifications of the context's conversation.
pub(crate) async fn call(hub: &Hub, tool: &Tool, context: Context, arguments: Value) -> ToolResult {
    let completed = match ToolArguments::parse(arguments) {
        Ok(arguments) => {
            let result = (tool.run)(ToolInvocation { hub: hub.clone(), context: context.clone(), arguments }).await;
            result.unwrap_or_else(|refused| tool.refused(refused))
        }
        // A missing user is reported before invalid arguments.
        Err(_) if tool.needs_user && context.user_id.is_none() => tool.refused(ToolRefusal::missing("user_id")),
        Err(message) => tool.refused(ToolRefusal::invalid(message)),
    };
    let (name, refused, correlation_id) = (tool.name, completed.result.is_error, &context.correlation_id);
    tracing::debug!(tool = name, refused, correlation_id, "a tool was called");
    // Only a refusal by a rate limit has `retry_after_seconds`.
    let is_limited =
        refused && completed.result.value.contains_key("retry_after_seconds") && context.idempotency_key.is_none();
    match tool.returns_notifications || (is_limited && !hub.notification_throttle.permits(&context, Instant::now())) {
        true => completed.result,
        false => pending::with_notifications(hub, &context, completed.result).await,
    }
}
