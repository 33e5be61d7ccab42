use std::pin::Pin;

use axum::http::StatusCode;
use bellwire_core::person::{Argument, ToolArguments};
use serde_json::{Map, Value, json};

use super::context::Context;
use super::schema;
use crate::http::{ApiError, Hub};

/// One tool: its description, schemas and function.
pub struct Tool {
    /// The name in MCP and in the REST path.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The description for the model: when to use it, when not, what it returns, one example.
    pub description: &'static str,
    /// MCP's annotations.
    pub hints: ToolHints,
    /// The arguments, from which the input schema is built.
    pub(super) input: &'static [Argument],
    /// Whether the argument `channel` names a channel of the hub.
    pub(crate) takes_channel: bool,
    /// How a result says whether the call succeeded.
    pub(super) result_form: ResultForm,
    /// The schemas of a success's properties, besides those that every result has.
    pub(super) output: fn() -> Value,
    pub(super) run: fn(ToolInvocation) -> ToolFuture,
    /// Whether the tool itself takes the pending notifications, so that [`super::call`] adds none.
    pub(super) returns_notifications: bool,
    /// Whether the tool needs a user; a missing one is reported before invalid arguments.
    pub(super) needs_user: bool,
    /// Writes a refusal in this tool's result format.
    pub(super) refuse: fn(ToolRefusal) -> Value,
}

/// How a result says whether the call succeeded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// By `success`, with `action` and `message`.
    Success,
    /// By `status`: ok, deferred or error.
    Status,
}

/// MCP's annotations: what a client may consider before it lets a model call the tool.
#[derive(Copy, Clone, Debug)]
pub struct ToolHints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// A second call with the same arguments has no further effect.
    pub idempotent: bool,
    /// The tool reaches people or systems outside of the hub.
    pub open_world: bool,
}

impl Tool {
    /// The JSON schema of the arguments.
    pub fn input_schema(&self) -> Map<String, Value> {
        schema::object(schema::input(self.input))
    }

    /// The JSON schema of the result: successes and refusals.
    pub fn output_schema(&self) -> Map<String, Value> {
        schema::output(self.result_form, (self.output)())
    }

    /// Whether a result says that the call was refused or has failed.
    pub fn is_failure(&self, result: &Map<String, Value>) -> bool {
        match self.result_form {
            ResultForm::Success => result.get("success") != Some(&Value::Bool(true)),
            ResultForm::Status => !matches!(result.get("status").and_then(Value::as_str), Some("ok" | "deferred")),
        }
    }

    /// The result of a call that the hub did not answer, for programs that pass calls on. It does not ask for a retry: the
    /// call may have been carried out.
    pub fn unanswered(&self, message: String) -> Map<String, Value> {
        self.refuse(ToolRefusal { action: "error", message, retry_after_seconds: None }).value
    }

    /// The result of a refused call.
    pub(crate) fn refuse(&self, refused: ToolRefusal) -> ToolResult {
        self.refused(refused).result
    }

    pub(super) fn refused(&self, refused: ToolRefusal) -> CompletedCall {
        CompletedCall::of((self.refuse)(refused), true)
    }
}

/// The input of a tool's function.
pub(super) struct ToolInvocation {
    pub(super) hub: Hub,
    pub(super) context: Context,
    pub(super) arguments: ToolArguments,
}

pub(super) type ToolFuture = Pin<Box<dyn Future<Output = Result<CompletedCall, ToolRefusal>> + Send>>;

/// The result of a tool call, for MCP and REST.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolResult {
    /// The structured result.
    pub(crate) value: Map<String, Value>,
    /// Whether the tool refused or failed.
    pub(crate) is_error: bool,
    /// The call id of the injection whose notifications the result contains.
    pub(crate) call_id: Option<String>,
}

/// The output of a tool's function, before [`super::call`] adds notifications.
pub(super) struct CompletedCall {
    pub(super) result: ToolResult,
}

impl CompletedCall {
    /// A result in the tool's own format, which its output schema must describe.
    pub(super) fn of(value: Value, is_error: bool) -> Self {
        Self { result: ToolResult { value: schema::object(value), is_error, call_id: None } }
    }

    /// A success with an `action` for programs and a `message` for the model.
    pub(super) fn success(action: &str, message: impl Into<String>) -> Self {
        Self::of(json!({ "success": true, "action": action, "message": message.into() }), false)
    }

    /// Adds a property.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.result.value.insert(name.to_owned(), value.into());
        self
    }
}

/// A refused or failed call, with a message from which the model can correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolRefusal {
    action: &'static str,
    message: String,
    retry_after_seconds: Option<u64>,
}

impl ToolRefusal {
    /// The arguments or the context are invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { action: "validation_error", message: message.into(), retry_after_seconds: None }
    }

    /// The context lacks a field that the tool needs.
    pub(super) fn missing(field: &str) -> Self {
        Self::invalid(format!("{field} must be present in context"))
    }

    /// The call exceeds a rate limit.
    pub(super) fn limited(message: impl Into<String>, seconds: u64) -> Self {
        Self { action: "rate_limited", message: message.into(), retry_after_seconds: Some(seconds) }
    }

    /// The store or the hub failed on a valid call.
    pub(super) fn failed(what: &str, error: impl Into<ApiError>) -> Self {
        let error = error.into();
        let message = format!("Failed to {what}: {}", error.message);
        // A call that can never succeed unchanged must not look retryable.
        let action = match error.status {
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::CONFLICT => "validation_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limited",
            _ => "error",
        };
        Self { action, message, retry_after_seconds: error.retry_after_seconds }
    }

    /// Whether the call itself is at fault.
    pub(super) fn is_validation(&self) -> bool {
        self.action == "validation_error"
    }

    /// The message for the model.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The result format that most tools use.
    pub(super) fn into_json(self) -> Value {
        let mut value = json!({ "success": false, "action": self.action, "message": self.message });
        if let Some(seconds) = self.retry_after_seconds {
            value["retry_after_seconds"] = seconds.into();
        }
        value
    }
}
