//! The handlers of `/mcp`. They are in the route table like all others, which decides on the scopes that may use them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::openapi::Operation;
use super::shape::NoContent;
use super::{ApiError, body, intake, shape};
use crate::auth::Identity;
use crate::mcp::Endpoint;

/// A request with a JSON-RPC message, which rmcp parses.
pub(super) struct McpMessage(Request);

/// A request without a body.
pub(super) struct McpRequest(Request);

/// rmcp's response.
pub(super) struct McpAnswer(Response);

/// Handles one message of a client.
pub(super) async fn send(
    State(endpoint): State<Endpoint>,
    Extension(identity): Extension<Arc<Identity>>,
    McpMessage(request): McpMessage,
) -> Result<McpAnswer, ApiError> {
    endpoint.answer(&identity, request).await.map(McpAnswer)
}

/// Opens the stream of messages from the server to a session.
pub(super) async fn listen(
    State(endpoint): State<Endpoint>,
    Extension(identity): Extension<Arc<Identity>>,
    McpRequest(request): McpRequest,
) -> Result<McpAnswer, ApiError> {
    endpoint.answer(&identity, request).await.map(McpAnswer)
}

/// Ends a session.
pub(super) async fn end(
    State(endpoint): State<Endpoint>,
    Extension(identity): Extension<Arc<Identity>>,
    McpRequest(request): McpRequest,
) -> Result<NoContent, ApiError> {
    // rmcp responds with 202, which some clients take for a failure, so the handler responds with 204.
    let status = endpoint.answer(&identity, request).await?.status();
    if status.is_success() { Ok(NoContent) } else { Err(ApiError::of_status(status)) }
}

impl<S: Send + Sync> FromRequest<S> for McpMessage {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, bytes) = intake::whole(request).await?;
        body::check_values(&bytes)?;
        Ok(Self(Request::from_parts(parts, bytes.into())))
    }
}

impl<S: Send + Sync> FromRequest<S> for McpRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        Ok(Self(request))
    }
}

impl shape::HandlerArgument for McpMessage {
    type Request = Self;
}

impl shape::HandlerArgument for McpRequest {
    type Request = ();
}

impl shape::RequestShape for McpMessage {
    fn describe(operation: &mut Operation<'_>) {
        let schema = serde_json::json!({
            "type": "object",
            "description": "A message of the Model Context Protocol, any revision up to 2026-07-28.",
            "properties": { "jsonrpc": { "const": "2.0" }, "method": { "type": "string" } },
            "required": ["jsonrpc"],
        });
        operation.body("application/json", schema);
    }
}

impl shape::ResponseShape for McpAnswer {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        operation.answer("application/json", serde_json::json!({ "type": "object" }));
        operation.answer("text/event-stream", serde_json::json!({ "type": "string" }));
    }
}

impl IntoResponse for McpAnswer {
    fn into_response(self) -> Response {
        self.0
    }
}
