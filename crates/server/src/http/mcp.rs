//! The handlers of `/mcp` and of the paths below it. They are in the route table like all others, which decides on the scopes that may use them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequest, FromRequestParts as _, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rmcp::model::ClientJsonRpcMessage;
use schemars::JsonSchema;
use serde::Deserialize;

use super::openapi::Operation;
use super::query::Query;
use super::shape::NoContent;
use super::{ApiError, body, intake, shape};
use crate::auth::Identity;
use crate::mcp::{DaemonEndpoints, Endpoint, to_api_error};
use crate::notify::DaemonTool;

/// A request with a JSON-RPC message, which rmcp parses.
pub(super) struct McpMessage(Request);

/// A request without a body.
pub(super) struct McpRequest(Request);

/// rmcp's response.
pub(super) struct McpAnswer(Response);

/// A message to the session of an event stream.
pub(super) struct SseMessage {
    session_id: String,
    message: ClientJsonRpcMessage,
}

/// The query of `POST /mcp/messages`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SseQuery {
    /// The session, as the first event of `GET /mcp/sse` names it.
    #[serde(rename = "sessionId")]
    session_id: Option<String>,
}

/// The event stream of a session.
pub(super) struct SseStream(Response);

/// 202: the response to the message comes on the event stream.
pub(super) struct MessageTaken;

/// Opens the event stream of a client of revision 2024-11-05.
pub(super) async fn open_sse(
    State(endpoint): State<Endpoint>,
    Extension(identity): Extension<Arc<Identity>>,
) -> Result<SseStream, ApiError> {
    endpoint.open_sse(&identity).await.map(SseStream)
}

/// Takes one message of a client of revision 2024-11-05.
pub(super) async fn take_sse(
    State(endpoint): State<Endpoint>,
    Extension(identity): Extension<Arc<Identity>>,
    SseMessage { session_id, message }: SseMessage,
) -> Result<MessageTaken, ApiError> {
    endpoint.take_sse(&identity, &session_id, message).await?;
    Ok(MessageTaken)
}

/// Handles one message of a client.
pub(super) async fn send(
    State(endpoint): State<Endpoint>,
    Extension(identity): Extension<Arc<Identity>>,
    McpMessage(request): McpMessage,
) -> Result<McpAnswer, ApiError> {
    endpoint.answer(&identity, request).await.map(McpAnswer)
}

/// Handles one message to the Switchboard.
pub(super) async fn send_switchboard(
    State(daemons): State<DaemonEndpoints>,
    McpMessage(request): McpMessage,
) -> Result<McpAnswer, ApiError> {
    to_api_error(daemons.answer(DaemonTool::Deliver, request).await).map(McpAnswer)
}

/// Handles one message to the Messenger.
pub(super) async fn send_messenger(
    State(daemons): State<DaemonEndpoints>,
    McpMessage(request): McpMessage,
) -> Result<McpAnswer, ApiError> {
    to_api_error(daemons.answer(DaemonTool::RouteExecute, request).await).map(McpAnswer)
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

impl<S: Send + Sync> FromRequest<S> for SseMessage {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        body::check_json(request.headers())?;
        let (mut parts, bytes) = intake::whole(request).await?;
        let Query(SseQuery { session_id }) = Query::from_request_parts(&mut parts, state).await?;
        let session_id = session_id.ok_or_else(|| {
            ApiError::invalid("sessionId", "is missing; post to the path that the first event of GET /mcp/sse has")
        })?;
        body::check_values(&bytes)?;
        let message = serde_json::from_slice(&bytes).map_err(|_| {
            ApiError::new(StatusCode::BAD_REQUEST, "bad_request", "the body is no JSON-RPC message of MCP")
        });
        let mut message: ClientJsonRpcMessage = message?;
        // The server finds in it who asks, and it counts as a request in progress until the server is done.
        message.insert_extension(parts);
        Ok(Self { session_id, message })
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

impl shape::HandlerArgument for SseMessage {
    type Request = Self;
}

impl shape::RequestShape for SseMessage {
    const HAS_QUERY: bool = true;

    fn describe(operation: &mut Operation<'_>) {
        let query = SseQuery::json_schema(operation.requests);
        operation.query(&query.to_value());
        <McpMessage as shape::RequestShape>::describe(operation);
    }
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

impl shape::ResponseShape for SseStream {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        let schema = serde_json::json!({
            "type": "string",
            "description": "Server-sent events: first `endpoint`, whose data is the path for messages, then `message`, whose \
                            data is one JSON-RPC message.",
        });
        operation.answer("text/event-stream", schema);
    }
}

impl shape::ResponseShape for MessageTaken {
    const STATUS: StatusCode = StatusCode::ACCEPTED;
    fn describe(_: &mut Operation<'_>) {}
}

impl IntoResponse for SseStream {
    fn into_response(self) -> Response {
        self.0
    }
}

impl IntoResponse for MessageTaken {
    fn into_response(self) -> Response {
        StatusCode::ACCEPTED.into_response()
    }
}

impl IntoResponse for McpAnswer {
    fn into_response(self) -> Response {
        self.0
    }
}
