use std::pin::Pin;

use axum::http::StatusCode;
use bellwire_core::person::{Argument, ToolArguments};
use serde_json::{Map, Value, json};

use super::context::Context;
use super::schema;
use crate::http::{ApiError, Hub};

/// One tool: what a model reads about it, and what it does.
pub struct Tool {
    /// How it is called.
    pub name: &'static str,
    /// What people read.
    pub title: &'static str,
    /// What a model reads: when to use it, when not, what comes back, one example.
    pub description: &'static str,
    /// What a client may know before it lets a model call it.
    pub hints: ToolHints,
    /// What it takes.
    pub(super) input: &'static [Argument],
    /// The properties of a success, besides those that every result has.
    pub(super) output: fn() -> Value,
    pub(super) run: fn(ToolInvocation) -> ToolFuture,
    /// Whether its result is the conversation's mail already, so that none is added, to a refusal neither.
    pub(super) gives_mail: bool,
    /// Whether it is for a person, who must be known before anything else is looked at.
    pub(super) needs_user: bool,
    /// A refusal as this tool writes it.
    pub(super) refuse: fn(ToolRefusal) -> Value,
}

/// What a client may know about a tool before it lets a model call it.
#[derive(Copy, Clone, Debug)]
pub struct ToolHints {
    /// It changes nothing.
    pub read_only: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It reaches people or systems outside.
    pub open_world: bool,
}

impl Tool {
    /// What it takes, as a JSON schema.
    pub fn input_schema(&self) -> Map<String, Value> {
        schema::object(schema::input(self.input))
    }

    /// What it answers, as a JSON schema: successes and refusals.
    pub fn output_schema(&self) -> Map<String, Value> {
        schema::output((self.output)())
    }

    /// A call of this tool that was not carried out.
    pub(crate) fn refuse(&self, refused: ToolRefusal) -> ToolResult {
        self.refused(refused).called
    }

    pub(super) fn refused(&self, refused: ToolRefusal) -> CompletedCall {
        CompletedCall::of((self.refuse)(refused), true)
    }
}

/// One call on its way to a tool.
pub(super) struct ToolInvocation {
    pub(super) hub: Hub,
    pub(super) context: Context,
    pub(super) arguments: ToolArguments,
}

pub(super) type ToolFuture = Pin<Box<dyn Future<Output = Result<CompletedCall, ToolRefusal>> + Send>>;

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolResult {
    /// The tool's own result.
    pub(crate) value: Map<String, Value>,
    /// Whether it failed.
    pub(crate) is_error: bool,
    /// The name of the injection whose mail the result carries.
    pub(crate) call_id: Option<String>,
}

/// A call that was carried out.
pub(super) struct CompletedCall {
    pub(super) called: ToolResult,
}

impl CompletedCall {
    /// A result of a shape of its own, which the tool's output schema must have.
    pub(super) fn of(value: Value, is_error: bool) -> Self {
        Self { called: ToolResult { value: schema::object(value), is_error, call_id: None } }
    }

    /// A success: what was done, in a word for programs and in words.
    pub(super) fn success(action: &str, message: impl Into<String>) -> Self {
        Self::of(json!({ "success": true, "action": action, "message": message.into() }), false)
    }

    /// The same, with more to say.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.called.value.insert(name.to_owned(), value.into());
        self
    }
}

/// A call that was not carried out, in words for the model that will try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolRefusal {
    action: &'static str,
    message: String,
    retry_after_seconds: Option<u64>,
}

impl ToolRefusal {
    /// The call is wrong; it says how.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { action: "validation_error", message: message.into(), retry_after_seconds: None }
    }

    /// Something that the call needs is not in its context.
    pub(super) fn missing(field: &str) -> Self {
        Self::invalid(format!("{field} must be present in context"))
    }

    /// The caller is too fast.
    pub(super) fn limited(message: impl Into<String>, seconds: u64) -> Self {
        Self { action: "rate_limited", message: message.into(), retry_after_seconds: Some(seconds) }
    }

    /// The call is right and could not be carried out.
    pub(super) fn failed(what: &str, error: impl Into<ApiError>) -> Self {
        let error = error.into();
        let message = format!("Failed to {what}: {}", error.message);
        // What can never succeed as it is must not look as if it could be tried again.
        let action = match error.status {
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::CONFLICT => "validation_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limited",
            _ => "error",
        };
        Self { action, message, retry_after_seconds: error.retry_after_seconds }
    }

    /// What to correct.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// As most tools write it.
    pub(super) fn into_json(self) -> Value {
        let mut value = json!({ "success": false, "action": self.action, "message": self.message });
        if let Some(seconds) = self.retry_after_seconds {
            value["retry_after_seconds"] = seconds.into();
        }
        value
    }
}
