use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bellwire_core::ValidationError;
use bellwire_store::{ErrorKind, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use super::event_lookup::EventCandidate;
use super::field::Rfc3339Time;
use crate::usage::Exceeded;

/// The body of every error response.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(super) struct ErrorBody {
    error: ErrorDetail,
}

/// The error.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
struct ErrorDetail {
    /// A stable code for programs, such as `validation_error` or `not_found`.
    #[schemars(pattern(r"^[a-z_]+$"))]
    code: &'static str,
    /// A message for people: what is wrong and what is allowed.
    message: String,
    /// The path of the invalid field, such as `events[0].severity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// What settled a notification before this button was pressed, or why it cannot be restored. Only in their 409.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_by: Option<SettledBy>,
    /// The events that have the id. Only in the 409 of an event's id that several senders have used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    candidates: Vec<EventCandidate>,
}

/// What settled a notification: the button that was pressed first, or its dismissal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SettledBy {
    /// Whether a button said something to the agent, or the notification was dismissed.
    #[schemars(extend("enum" = ["prompt", "dismiss"]))]
    pub(crate) action: &'static str,
    /// The index of the button; null if the notification was dismissed without one.
    pub(crate) index: Option<usize>,
    /// The label of the button.
    pub(crate) label: Option<String>,
    /// When.
    pub(crate) at: Rfc3339Time,
}

/// A failed request: the HTTP status, a stable code for programs, and a message for people.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) field: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) retry_after_seconds: Option<u64>,
    pub(crate) conflict: Option<Box<Conflict>>,
}

/// What programs need to know about a conflict.
#[derive(Clone, Debug)]
pub(crate) enum Conflict {
    Settled(SettledBy),
    Ambiguous(Vec<EventCandidate>),
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, code, message, field: None, hint: None, retry_after_seconds: None, conflict: None }
    }

    /// The error for a status that middleware returned without a body of ours.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        let (code, message) = match status {
            StatusCode::PAYLOAD_TOO_LARGE => ("too_large", "the body is larger than the hub takes; send less at once"),
            StatusCode::GATEWAY_TIMEOUT => ("timeout", "this took too long; ask again, under the same id"),
            StatusCode::SERVICE_UNAVAILABLE => ("try_again", "the hub is busy; ask again in a moment"),
            status if status.is_server_error() => ("internal_error", "the hub failed; its log says why"),
            _ => ("bad_request", "this request cannot be understood"),
        };
        Self::new(status, code, message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no such {what}"))
    }

    pub(crate) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(StatusCode::BAD_REQUEST, "validation_error", message) }
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        let hint = "bellwire token create makes a token; the first start writes one to admin.token in the data folder";
        Self { hint: Some(hint.into()), ..Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message) }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Prefixes the field with the index of the event in its request: `events[2].severity`.
    pub(crate) fn within(self, at: usize) -> Self {
        let field = self.field.map_or_else(String::new, |field| format!(".{field}"));
        Self { field: Some(format!("events[{at}]{field}")), ..self }
    }

    /// The error for a body that is not valid JSON.
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "validation_error", error.to_string())
    }
}

impl From<Exceeded> for ApiError {
    fn from(exceeded: Exceeded) -> Self {
        let retry_after_seconds = Some(exceeded.retry_after_seconds);
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", exceeded.message);
        Self { retry_after_seconds, ..error }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let (status, code) = match error.kind {
            ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            ErrorKind::Conflict => (StatusCode::CONFLICT, "conflict"),
            ErrorKind::Invalid(_) => (StatusCode::BAD_REQUEST, "validation_error"),
            ErrorKind::Full => (StatusCode::TOO_MANY_REQUESTS, "mailbox_full"),
            ErrorKind::NoSpace => (StatusCode::INSUFFICIENT_STORAGE, "no_space"),
            ErrorKind::Retry => (StatusCode::SERVICE_UNAVAILABLE, "try_again"),
            ErrorKind::Damaged | ErrorKind::Broken => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        };
        let retry = matches!(error.kind, ErrorKind::Full | ErrorKind::Retry | ErrorKind::NoSpace).then_some(1);
        if status.is_server_error() {
            tracing::error!(code, error = %error, "a request could not be carried out");
        }
        // Internal errors are logged; the response does not show their details.
        let message = match error.kind {
            ErrorKind::Damaged | ErrorKind::Broken => "the hub could not do this; its log says why".to_owned(),
            _ => error.message,
        };
        let field = match error.kind {
            ErrorKind::Invalid(field) => Some(field.to_owned()),
            _ => None,
        };
        Self { field, retry_after_seconds: retry, ..Self::new(status, code, message) }
    }
}

impl From<ValidationError> for ApiError {
    fn from(invalid: ValidationError) -> Self {
        let status = if invalid.forbidden { StatusCode::FORBIDDEN } else { StatusCode::BAD_REQUEST };
        let code = if invalid.forbidden { "forbidden" } else { "validation_error" };
        Self { field: Some(invalid.field.to_owned()), ..Self::new(status, code, invalid.message) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kept = (self.status == StatusCode::NOT_FOUND).then(|| self.clone());
        let Self { code, message, field, hint, .. } = self;
        let (settled_by, candidates) = match self.conflict.map(|conflict| *conflict) {
            Some(Conflict::Settled(settled)) => (Some(settled), Vec::new()),
            Some(Conflict::Ambiguous(candidates)) => (None, candidates),
            None => (None, Vec::new()),
        };
        let error = ErrorDetail { code, message, field, hint, settled_by, candidates };
        let mut response = (self.status, Json(ErrorBody { error })).into_response();
        // The pipeline adds a hint to it.
        kept.map(|error| response.extensions_mut().insert(error));
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Replaces the body of an error from a library layer (too large, too slow) with the JSON body of an [`ApiError`].
pub(super) fn to_api_error(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    match (status.is_client_error() || status.is_server_error()) && !kind.starts_with(b"application/json") {
        true => ApiError::of_status(status).into_response(),
        false => response,
    }
}
