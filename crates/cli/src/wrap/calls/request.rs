//! What a client says in a request.

use std::time::Duration;

use serde_json::Value;

use super::EndedCall;
use crate::hook::call::{Outcome, ToolCall, bounded};
use crate::wrap::message::{fields, id_key, string};

/// Arguments that nest deeper or are longer are not reported: only the loop detector compares them.
const ARGUMENTS_MAX: usize = 1024 * 1024;

/// A request to call a tool.
pub(super) struct ToolRequest {
    name: String,
    arguments: Option<Value>,
    thread: Option<String>,
    /// In the form of [`id_key`].
    pub(super) progress_token: Option<String>,
    /// Whether its end was reported already.
    pub(super) is_reported: bool,
}

impl ToolRequest {
    pub(super) fn read(params: &str) -> Option<Self> {
        let [name, arguments, meta] = fields(params, ["name", "arguments", "_meta"])?;
        let [thread, token] = meta.and_then(|meta| fields(meta, ["threadId", "progressToken"])).unwrap_or_default();
        let arguments = arguments.filter(|text| text.len() <= ARGUMENTS_MAX);
        Some(Self {
            name: string(name)?,
            arguments: arguments.and_then(|text| serde_json::from_str(text).ok()).map(|value| bounded(&value)),
            thread: string(thread),
            progress_token: token.and_then(id_key),
            is_reported: false,
        })
    }

    pub(super) fn ended(
        &self,
        outcome: Outcome,
        error: Option<String>,
        took: Duration,
        client: Option<String>,
    ) -> EndedCall {
        let tool = ToolCall {
            arguments: self.arguments.clone(),
            error: error.filter(|error| !error.is_empty()),
            duration_ms: u64::try_from(took.as_millis()).ok(),
            ..ToolCall::new(&self.name, outcome)
        };
        EndedCall { tool, thread: self.thread.clone(), client, place: None, is_news: true }
    }
}

/// The name of the client: in `initialize`, or since MCP 2026-07-28 in each request.
pub(super) fn client_name(method: &str, params: Option<&str>) -> Option<String> {
    let info = if method == "initialize" {
        fields(params?, ["clientInfo"])?[0]
    } else {
        fields(fields(params?, ["_meta"])?[0]?, ["io.modelcontextprotocol/clientInfo"])?[0]
    };
    string(fields(info?, ["name"])?[0])
}
