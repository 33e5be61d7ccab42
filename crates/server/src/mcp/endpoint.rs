use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt as _};
use tokio::sync::broadcast::error::RecvError;
use tracing::Instrument as _;

use super::McpServer;
use super::priming::Priming;
use super::sessions::{McpSession, McpSessions};
use super::sse::{SseSessions, SseTransport};
use crate::auth::Identity;
use crate::clock;
use crate::config::Limits;
use crate::http::{ApiError, Hub, OpenStream};
use crate::usage::Exceeded;

const SESSION_HEADER: &str = "mcp-session-id";
/// Shorter than the idle timeout of common proxies.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Ended sessions are looked for this many times per idle timeout, and at least once per [`CHECK_INTERVAL_MAX`].
const CHECKS_PER_IDLE_TIMEOUT: u32 = 4;
const CHECK_INTERVAL_MAX: Duration = Duration::from_secs(15);

/// The refusal of a token that has too many sessions. Sessions end when they are idle or when their client ends them.
const SESSIONS_EXCEEDED: Exceeded = Exceeded {
    message: "this token has too many MCP sessions (limits.mcp_sessions_per_token); end those that are not used",
    retry_after_seconds: 60,
};

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;
type SessionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves MCP requests with rmcp and ends sessions.
#[derive(Clone)]
pub(crate) struct Endpoint {
    hub: Hub,
    sessions: Arc<McpSessions>,
    manager: Arc<LocalSessionManager>,
    serve: Arc<dyn Fn(Request) -> ResponseFuture + Send + Sync>,
    sse_sessions: Arc<SseSessions>,
    serve_sse: Arc<dyn Fn(SseTransport) -> SessionFuture + Send + Sync>,
}

impl Endpoint {
    /// Serves what `offer` makes of our server, one for each session or request.
    pub(crate) fn new<H: ServerHandler + Send + 'static>(
        hub: Hub,
        limits: &Limits,
        offer: impl Fn(McpServer) -> H + Send + Sync + 'static,
    ) -> Self {
        let manager = Arc::new(lasting_sessions());
        let config = StreamableHttpServerConfig::default()
            // `OriginCheck` has checked host and origin already, as for all routes.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_max_request_body_bytes(limits.body_bytes);
        let stop = config.cancellation_token.clone();
        let ours = hub.clone();
        let new_server = Arc::new(move || offer(McpServer::new(ours.clone())));
        let of_session = new_server.clone();
        let service = StreamableHttpService::new(move || Ok(of_session()), manager.clone(), config);
        let sessions = Arc::new(McpSessions::default());
        let idle = Duration::from_secs(limits.mcp_session_idle_seconds);
        let ending = end_sessions(hub.clone(), manager.clone(), sessions.clone(), idle, move || stop.cancel());
        hub.supervisor.spawn("the end of MCP sessions", ending);
        let serve = move |request: Request| -> ResponseFuture {
            let service = service.clone();
            Box::pin(async move { service.handle(request).await.map(Body::new) })
        };
        let serve_sse = move |transport: SseTransport| -> SessionFuture {
            let server = new_server();
            Box::pin(async move {
                match server.serve(transport).await {
                    Ok(session) => drop(session.waiting().await),
                    Err(error) => tracing::debug!(%error, "a session ended before it was initialized"),
                }
            })
        };
        let (serve, serve_sse) = (Arc::new(serve), Arc::new(serve_sse));
        Self { hub, sessions, manager, serve, sse_sessions: Arc::default(), serve_sse }
    }

    /// Handles one authenticated request.
    pub(crate) async fn answer(&self, identity: &Identity, request: Request) -> Result<Response, ApiError> {
        let session = session_of(request.headers());
        let method = request.method().clone();
        let priming = Priming::of(request.headers());
        // Another token's session looks like one that does not exist.
        if session.as_deref().is_some_and(|id| !self.sessions.admits(id, &identity.token_id)) {
            return Err(session_gone());
        }
        let stream = (method == Method::GET).then(|| self.hub.overload.stream(&identity.usage)).transpose()?;
        let in_use = session.as_deref().and_then(|id| self.sessions.enter(id, Instant::now()));
        let (response, begins) = match session {
            Some(_) => ((self.serve)(request).await, false),
            None => self.answer_outside_sessions(identity, request).await?,
        };
        if method == Method::DELETE && response.status().is_success() {
            session.iter().for_each(|id| self.sessions.end(id));
        }
        // A token revoked while the session began would not end it, so check the token again.
        let lasts = begins || method == Method::GET;
        if lasts && !self.hub.tokens.is_still_valid(identity).await? {
            close(&self.manager, self.sessions.of_token(Some(&identity.token_id))).await;
            return Err(ApiError::unauthorized("this token was revoked or has expired"));
        }
        let response = priming.apply(to_api_error(response)?);
        let counted = stream.map(|permit| (permit, self.hub.metrics.stream()));
        Ok(held(response, (in_use, counted)))
    }

    /// Handles a request that names no session. It may begin one: then the second value is true. It runs in its own task,
    /// because the future of a request is dropped when its client disconnects: rmcp would keep a session that has no owner.
    async fn answer_outside_sessions(
        &self,
        identity: &Identity,
        request: Request,
    ) -> Result<(Response, bool), ApiError> {
        let (endpoint, identity) = (self.clone(), identity.clone());
        let answering = async move {
            let response = (endpoint.serve)(request).await;
            let Some(id) = session_of(response.headers()) else { return Ok((response, false)) };
            if let Err(exceeded) = endpoint.begin(&id, &identity).await {
                close(&endpoint.manager, vec![id]).await;
                return Err(exceeded);
            }
            Ok((response, true))
        };
        let answered = tokio::spawn(answering.in_current_span()).await;
        answered.unwrap_or_else(|_| Err(ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR)))
    }

    /// Opens the event stream of a client of revision 2024-11-05, which is a session of its own.
    pub(crate) async fn open_sse(&self, identity: &Identity) -> Result<Response, ApiError> {
        let open = OpenStream::new(&self.hub, identity).await?;
        let id = SseSessions::new_id();
        self.begin(&id, identity).await?;
        let ends = SessionEnd { id: id.clone(), sessions: self.sessions.clone() };
        let in_use = self.sessions.enter(&id, Instant::now());
        let (transport, client_end) = self.sse_sessions.begin(&id, &identity.token_id);
        tokio::spawn((self.serve_sse)(transport));
        Ok(client_end.into_response(open, (in_use, ends)))
    }

    /// Takes one message of a client of revision 2024-11-05. The response to it comes on the session's event stream.
    pub(crate) async fn take_sse(
        &self,
        identity: &Identity,
        session_id: &str,
        message: ClientJsonRpcMessage,
    ) -> Result<(), ApiError> {
        match self.sse_sessions.pass(session_id, &identity.token_id, message).await {
            true => Ok(()),
            false => Err(ApiError { hint: Some("open GET /mcp/sse again".into()), ..session_gone() }),
        }
    }

    /// Counts a new session, or refuses it because its token has too many.
    async fn begin(&self, id: &str, identity: &Identity) -> Result<(), ApiError> {
        let session = McpSession::new(&identity.token_id, identity.expires_at, Instant::now());
        let surplus = self.sessions.begin(id, session, identity.usage.limits.mcp_sessions).ok_or(SESSIONS_EXCEEDED)?;
        close(&self.manager, surplus).await;
        Ok(())
    }
}

/// Forgets a session when it is dropped.
struct SessionEnd {
    id: String,
    sessions: Arc<McpSessions>,
}

impl Drop for SessionEnd {
    fn drop(&mut self) {
        self.sessions.end(&self.id);
    }
}

/// rmcp's session manager without its idle timeout, which would end a session after five minutes without a message even
/// while its stream is open.
fn lasting_sessions() -> LocalSessionManager {
    let mut manager = LocalSessionManager::default();
    manager.session_config.keep_alive = None;
    manager
}

/// Ends idle, expired and revoked sessions, and all sessions when the hub stops.
async fn end_sessions(
    hub: Hub,
    manager: Arc<LocalSessionManager>,
    sessions: Arc<McpSessions>,
    idle: Duration,
    stop: impl FnOnce(),
) {
    let mut revoked = hub.revoked.subscribe();
    let mut stopping = hub.stopping.clone();
    let mut check = tokio::time::interval((idle / CHECKS_PER_IDLE_TIMEOUT).min(CHECK_INTERVAL_MAX));
    loop {
        let ended = tokio::select! {
            _ = check.tick() => [sessions.idle(idle, Instant::now()), sessions.expired(clock::now())].concat(),
            token = revoked.recv() => match token {
                Ok(token_id) => sessions.of_token(Some(&token_id)),
                // The ids of some revoked tokens were missed, so all sessions end; clients start new ones.
                Err(RecvError::Lagged(_)) => sessions.of_token(None),
                Err(RecvError::Closed) => break,
            },
            _ = stopping.changed() => break,
        };
        close(&manager, ended).await;
    }
    stop();
}

async fn close(manager: &LocalSessionManager, ended: Vec<String>) {
    for id in ended {
        if let Err(error) = manager.close_session(&id.into()).await {
            tracing::debug!(%error, "a session had ended by itself");
        }
    }
}

fn session_of(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn session_gone() -> ApiError {
    ApiError {
        hint: Some("send initialize again, without Mcp-Session-Id".into()),
        ..ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is no such session; it may have ended")
    }
}

/// Replaces rmcp's plain-text errors with an [`ApiError`]; JSON-RPC errors stay.
pub(crate) fn to_api_error(response: Response) -> Result<Response, ApiError> {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !(status.is_client_error() || status.is_server_error()) || kind.starts_with(b"application/json") {
        return Ok(response);
    }
    let refused = |code, message: &str| ApiError::new(status, code, message);
    Err(match status {
        StatusCode::NOT_FOUND => session_gone(),
        StatusCode::METHOD_NOT_ALLOWED => {
            refused("method_not_allowed", "since revision 2026-07-28 there is only POST; subscriptions/listen streams")
        }
        StatusCode::NOT_ACCEPTABLE => {
            refused("not_acceptable", "send Accept: application/json, text/event-stream (GET: text/event-stream)")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => refused("unsupported_media_type", "send Content-Type: application/json"),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => refused(
            "bad_request",
            "this is no message of MCP that can be answered here: send initialize first, or name a revision that is \
             known in MCP-Protocol-Version",
        ),
        status => ApiError::of_status(status),
    })
}

/// Keeps the guard alive until the response's body was read.
fn held(response: Response, guard: impl Send + 'static) -> Response {
    response.map(|body| match body.is_end_stream() {
        true => body,
        false => Body::from_stream(body.into_data_stream().map(move |chunk| {
            let _held = &guard;
            chunk
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    struct Nothing;
    impl ServerHandler for Nothing {}

    fn request(method: Method, session: Option<&str>, message: &Value) -> Request {
        let request = Request::builder().method(method).uri("http://localhost/mcp");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("content-type", "application/json");
        let request = session.into_iter().fold(request, |request, id| request.header(SESSION_HEADER, id));
        request.body(Body::from(message.to_string())).expect("a request")
    }

    /// The status of a request to a session after an hour in which only its stream was open.
    async fn after_an_hour(manager: LocalSessionManager) -> StatusCode {
        let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
        let service = StreamableHttpService::new(|| Ok(Nothing), Arc::new(manager), config);
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let answer = service.handle(request(Method::POST, None, &hello)).await;
        let id = session_of(answer.headers()).expect("a session");
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        service.handle(request(Method::POST, Some(&id), &ready)).await;
        let stream = service.handle(request(Method::GET, Some(&id), &Value::Null)).await;
        assert_eq!(stream.status(), StatusCode::OK);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
        service.handle(request(Method::POST, Some(&id), &ping)).await.status()
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_with_an_open_stream_outlives_rmcps_idle_timeout() {
        assert_eq!(after_an_hour(LocalSessionManager::default()).await, StatusCode::NOT_FOUND, "the trap is gone");
        assert_eq!(after_an_hour(lasting_sessions()).await, StatusCode::OK);
    }
}
