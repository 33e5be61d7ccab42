//! The HTTP+SSE transport of revision 2024-11-05, which later revisions replaced by the one at `/mcp`.
//!
//! A client opens an event stream, whose first event has the path for the client's messages. A posted message is answered with
//! 202 at once; the response to it comes on the stream. A session lives exactly as long as its stream.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::endpoint::KEEP_ALIVE;
use crate::clock;
use crate::http::OpenStream;

/// The path for the messages of clients.
const MESSAGES_PATH: &str = "/mcp/messages";

/// How many messages of a session may wait in each direction. Beyond it the sender waits.
const WAITING_MAX: usize = 32;

/// The sessions by id.
#[derive(Default)]
pub(super) struct SseSessions(Mutex<HashMap<String, SseSession>>);

struct SseSession {
    token_id: String,
    messages: mpsc::Sender<ClientJsonRpcMessage>,
}

/// The server's end of a session, for rmcp.
pub(super) struct SseTransport {
    from_client: mpsc::Receiver<ClientJsonRpcMessage>,
    to_client: mpsc::Sender<ServerJsonRpcMessage>,
}

/// The client's end of a session. Dropping it ends the session.
pub(super) struct SseClientEnd {
    id: String,
    sessions: Arc<SseSessions>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
}

impl SseSessions {
    /// An id that cannot be guessed.
    pub(super) fn new_id() -> String {
        uuid::Builder::from_random_bytes(clock::random()).into_uuid().to_string()
    }

    /// Begins a session of this token.
    pub(super) fn begin(self: &Arc<Self>, id: &str, token_id: &str) -> (SseTransport, SseClientEnd) {
        let (messages, from_client) = mpsc::channel(WAITING_MAX);
        let (to_client, to_send) = mpsc::channel(WAITING_MAX);
        self.lock().insert(id.to_owned(), SseSession { token_id: token_id.to_owned(), messages });
        let client_end = SseClientEnd { id: id.to_owned(), sessions: self.clone(), messages: to_send };
        (SseTransport { from_client, to_client }, client_end)
    }

    /// Passes a client's message to the server. False = the token has no such session.
    pub(super) async fn pass(&self, id: &str, token_id: &str, message: ClientJsonRpcMessage) -> bool {
        let session = self.lock().get(id).filter(|session| session.token_id == token_id).map(|it| it.messages.clone());
        match session {
            Some(messages) => messages.send(message).await.is_ok(),
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SseSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SseClientEnd {
    /// The event stream. It ends with the server, with the token and with the hub; `guard` lives as long.
    pub(super) fn into_response(self, open: OpenStream, guard: impl Send + 'static) -> Response {
        let path = format!("{MESSAGES_PATH}?sessionId={}", self.id);
        let first = stream::once(std::future::ready(Event::default().event("endpoint").data(path)));
        let rest = stream::unfold((self, open, guard), |(mut client_end, mut open, guard)| async move {
            let message = tokio::select! {
                message = client_end.messages.recv() => message?,
                () = open.ended() => return None,
            };
            let json = serde_json::to_string(&message).expect("a message can be serialized");
            Some((Event::default().event("message").data(json), (client_end, open, guard)))
        });
        let events = first.chain(rest).map(Ok::<_, Infallible>);
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
    }
}

impl Drop for SseClientEnd {
    fn drop(&mut self) {
        self.sessions.lock().remove(&self.id);
    }
}

impl Transport<RoleServer> for SseTransport {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to_client = self.to_client.clone();
        async move { to_client.send(message).await.map_err(|_| io::ErrorKind::BrokenPipe.into()) }
    }

    fn receive(&mut self) -> impl Future<Output = Option<ClientJsonRpcMessage>> + Send {
        self.from_client.recv()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.from_client.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping() -> ClientJsonRpcMessage {
        serde_json::from_str(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#).expect("a message")
    }

    #[tokio::test]
    async fn a_session_takes_messages_of_its_token_until_its_stream_is_dropped() {
        let sessions = Arc::new(SseSessions::default());
        let id = SseSessions::new_id();
        let (mut transport, client_end) = sessions.begin(&id, "a");
        assert!(sessions.pass(&id, "a", ping()).await);
        assert!(!sessions.pass(&id, "b", ping()).await, "another token's session looks like one that does not exist");
        assert!(!sessions.pass("other", "a", ping()).await);
        drop(client_end);
        assert!(!sessions.pass(&id, "a", ping()).await);
        assert!(transport.receive().await.is_some() && transport.receive().await.is_none(), "rmcp sees the end");
    }
}
