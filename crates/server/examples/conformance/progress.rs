//! Fixtures that send progress and log messages during a call.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, ClientCapabilities, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::content::{plain, text};

const NAMES: [&str; 6] = [
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_reconnection",
    "test_streaming_elicitation",
    "test_missing_capability",
];
/// The delay between progress messages, so that the suite sees each of them.
const STEP: Duration = Duration::from_millis(50);

pub(crate) fn tools() -> Vec<Tool> {
    NAMES.map(plain).into()
}

pub(crate) fn has(name: &str) -> bool {
    NAMES.contains(&name)
}

pub(crate) async fn call(name: &str, request: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    match name {
        "test_missing_capability" => needs_sampling(request)?,
        "test_tool_with_progress" | "test_streaming_elicitation" | "test_reconnection" => steps(request).await,
        _ => logs(request).await,
    }
    Ok(text("Done."))
}

fn needs_sampling(request: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let needed = ClientCapabilities::builder().enable_sampling().build();
    let declared = request.client_capabilities().is_some_and(|all| all.sampling.is_some());
    match declared {
        true => Ok(()),
        false => Err(ErrorData::missing_required_client_capability(needed)),
    }
}

async fn steps(request: &RequestContext<RoleServer>) {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = request.meta.get_progress_token() {
            let mut step = ProgressNotificationParam::new(token, done);
            step.total = Some(100.0);
            let _ = request.peer.notify_progress(step).await;
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Since revision 2026-07-28, only a client that asks for log messages gets them.
async fn logs(request: &RequestContext<RoleServer>) {
    let version = request.protocol_version().map(|version| version.to_string()).unwrap_or_default();
    if version.as_str() >= "2026-07-28" && request.meta.log_level().is_none() {
        return;
    }
    for words in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, words.into());
        let _ = request.peer.notify_logging_message(line).await;
        tokio::time::sleep(STEP).await;
    }
}
