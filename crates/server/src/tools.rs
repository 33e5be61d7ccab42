//! What an agent can do through Bellwire, offered alike over MCP and over REST.
//!
//! One file a tool and one line in [`TOOLS`]: its name, what a model reads about it, what it takes, what it answers, and
//! the function that does it. Who calls and for which conversation is no argument of a tool: that is its `Context`,
//! which comes from the token and the harness, never from the model. A tool knows nothing of MCP or HTTP.

mod check_notifications;
mod context;
mod mail;
mod mail_throttle;
mod notify_self;
mod remind;
mod schema;
mod send_notification;
mod show_notification;
mod tool;

pub(crate) use context::{Context, RequestedContext};
pub(crate) use mail_throttle::MailThrottle;
pub use tool::{Tool, ToolHints};
pub(crate) use tool::{ToolRefusal, ToolResult};

use std::time::Instant;

use bellwire_core::person::ToolArguments;
use serde_json::Value;

use crate::http::Hub;
use tool::ToolInvocation;

/// Every tool, in the order in which a model reads them.
pub static TOOLS: &[Tool] =
    &[check_notifications::TOOL, send_notification::TOOL, show_notification::TOOL, remind::TOOL, notify_self::TOOL];

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Carries out a call: the tool's own answer, also where it refuses, with the mail of the conversation it was made in.
pub(crate) async fn call(hub: &Hub, tool: &Tool, context: Context, arguments: Value) -> ToolResult {
    let done = match ToolArguments::parse(arguments) {
        Ok(arguments) => {
            let done = (tool.run)(ToolInvocation { hub: hub.clone(), context: context.clone(), arguments }).await;
            done.unwrap_or_else(|refused| tool.refused(refused))
        }
        // Who is meant comes first, also where nothing else can be read.
        Err(_) if tool.needs_user && context.user_id.is_none() => tool.refused(ToolRefusal::missing("user_id")),
        Err(message) => tool.refused(ToolRefusal::invalid(message)),
    };
    let (name, refused, correlation_id) = (tool.name, done.called.is_error, &context.correlation_id);
    tracing::debug!(tool = name, refused, correlation_id, "a tool was called");
    // What is over a limit says when there is room again.
    let is_limited =
        refused && done.called.value.contains_key("retry_after_seconds") && context.idempotency_key.is_none();
    match tool.gives_mail || (is_limited && !hub.mail_throttle.permits(&context, Instant::now())) {
        true => done.called,
        false => mail::with_mail(hub, &context, done.called).await,
    }
}
