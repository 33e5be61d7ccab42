//! Sends a message and passes what comes back, resuming streams that break off.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};

use super::{Kind, Outgoing, Upstream, headers};
use crate::output::printable;
use crate::wrap::lines::{MESSAGE_MAX, Piece};
use crate::wrap::message::{fields, id_key, string};
use crate::wrap::sse::{Event, EventSplitter};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// How long to wait before a stream is asked for again, unless the server says it.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// How often a stream on which a response is awaited is asked for in a row without an event.
const RESUMES_MAX: u32 = 5;

/// Where a stream stood when it ended.
#[derive(Default)]
struct Position {
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Whether any event came.
    has_event: bool,
}

impl Upstream {
    /// Sends a message of the client and passes what the server answers. A request that gets no answer gets an error.
    pub(super) async fn post(&self, outgoing: Outgoing) {
        let Outgoing { body, kind, ids, headers } = outgoing;
        let request = self.remote.http.post(self.remote.url.clone()).headers(self.common(headers));
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        let outcome = match request.header(CONTENT_TYPE, "application/json").body(body).send().await {
            Ok(response) => self.answer(response, kind, &ids).await,
            Err(error) => Err(format!("cannot be reached: {}", root_cause(&error))),
        };
        if let Err(why) = outcome {
            self.fail(&ids, &why).await;
        }
    }

    /// Follows the stream for messages that belong to no request, until the server has none or the session ends.
    pub(super) async fn listen(self: Arc<Self>) {
        let (mut position, mut wait) = (Position::default(), RETRY);
        loop {
            match self.stream(position.last_id.as_deref()).await {
                Ok(Some(response)) => position = self.events(response, Kind::Other, position).await.unwrap_or_default(),
                Ok(None) => return,
                Err(_) => position.has_event = false,
            }
            wait = if position.has_event { RETRY } else { (wait * 2).min(RETRY_MAX) };
            // A server that asks to be called at once must not be called in a loop.
            tokio::time::sleep(position.retry.unwrap_or(wait).clamp(RETRY, RETRY_MAX)).await;
        }
    }

    async fn answer(&self, response: Response, kind: Kind, ids: &[String]) -> Result<(), String> {
        let status = response.status();
        let is_stream = media_type(&response) == "text/event-stream";
        if !status.is_success() {
            return self.refusal(response, ids).await;
        }
        if is_stream {
            let position = self.events(response, kind, Position::default()).await?;
            return self.resume(position, ids).await;
        }
        let headers = response.headers().clone();
        let body = whole(response).await?;
        if kind == Kind::Initialize {
            self.settle(&headers, &String::from_utf8_lossy(&body));
        }
        if !body.iter().all(u8::is_ascii_whitespace) {
            self.pass(&body).await;
        }
        if self.calls.is_any_open(ids) { Err(format!("answers {status} without a response")) } else { Ok(()) }
    }

    /// An answer without success: as it is, if it is a JSON-RPC response to this request.
    async fn refusal(&self, response: Response, ids: &[String]) -> Result<(), String> {
        let status = response.status();
        let body = whole(response).await.unwrap_or_default();
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let [error, id] = fields(text, ["error", "id"]).unwrap_or_default();
        if error.is_some() && id.and_then(id_key).is_some_and(|id| ids.contains(&id)) {
            self.pass(&body).await;
            return Ok(());
        }
        let said = error.and_then(|error| fields(error, ["message"])).and_then(|[message]| string(message));
        let said = said.map(|said| format!(": {}", printable(&said))).unwrap_or_default();
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                format!("answers {status}; give it a token with --header 'Authorization: Bearer ${{TOKEN}}'")
            }
            StatusCode::NOT_FOUND if self.settled().contains_key(headers::SESSION) => {
                format!("answers {status}: it has ended the session; start the server again")
            }
            _ => format!("answers {status}{said}"),
        })
    }

    /// Passes the events of a stream until it ends; returns where it stood.
    async fn events(&self, mut response: Response, kind: Kind, mut position: Position) -> Result<Position, String> {
        let headers = response.headers().clone();
        let mut splitter = EventSplitter::default();
        position.has_event = false;
        // A stream that breaks off is continued behind the last event.
        while let Ok(Some(bytes)) = response.chunk().await {
            splitter.push(&bytes);
            while let Some(piece) = splitter.next() {
                position.has_event = true;
                let Piece::Line(raw) = piece else {
                    return Err(format!("sends an event of more than {} MiB", MESSAGE_MAX >> 20));
                };
                let event = Event::read(&raw);
                position.last_id = event.id.or(position.last_id).filter(|id| !id.is_empty());
                position.retry = event.retry_ms.map(Duration::from_millis).or(position.retry);
                if event.data.is_empty() {
                    continue;
                }
                if kind == Kind::Initialize && fields(&event.data, ["result"]).is_some_and(|[result]| result.is_some())
                {
                    self.settle(&headers, &event.data);
                }
                self.pass(event.data.as_bytes()).await;
            }
        }
        Ok(position)
    }

    /// Continues the stream on which a response is still awaited.
    async fn resume(&self, mut position: Position, ids: &[String]) -> Result<(), String> {
        let mut attempts = 0;
        while self.calls.is_any_open(ids) {
            let (Some(last_id), true) = (position.last_id.clone(), attempts < RESUMES_MAX) else {
                return Err("closed the stream before it answered".to_owned());
            };
            tokio::time::sleep(position.retry.unwrap_or(RETRY).min(RETRY_MAX)).await;
            match self.stream(Some(&last_id)).await {
                Ok(Some(response)) => position = self.events(response, Kind::Other, position).await?,
                Ok(None) => return Err("closed the stream before it answered".to_owned()),
                Err(_) => position.has_event = false,
            }
            attempts = if position.has_event { 0 } else { attempts + 1 };
        }
        Ok(())
    }

    /// Opens a stream of the server's messages; `None` if it offers none.
    async fn stream(&self, last_id: Option<&str>) -> reqwest::Result<Option<Response>> {
        let mut request = self.remote.http.get(self.remote.url.clone()).headers(self.common(HeaderMap::new()));
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            request = request.header(LAST_EVENT, id);
        }
        let response = request.header(ACCEPT, "text/event-stream").send().await?;
        let is_stream = response.status().is_success() && media_type(&response) == "text/event-stream";
        match response.status().is_server_error() {
            true => response.error_for_status().map(|_| None),
            false => Ok(is_stream.then_some(response)),
        }
    }

    /// A message of the server as a line. Outside of strings a newline is only a space, and inside there is none.
    async fn pass(&self, message: &[u8]) {
        let mut line: Vec<u8> =
            message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        line.push(b'\n');
        self.output.message(line, &self.proxy, &self.calls).await;
    }

    async fn fail(&self, ids: &[String], why: &str) {
        let why = format!("the MCP server at {} {why}", self.proxy.server);
        let lines = self.proxy.abandon(&self.calls, Some(ids), &why);
        if lines.is_empty() {
            self.tell(&why);
        }
        for line in lines {
            self.output.own_line(line).await;
        }
    }

    fn settle(&self, response: &HeaderMap, body: &str) {
        *self.settled() = headers::settled(response, body);
    }

    /// The headers of every request: what the handshake settled, what this one says, and those of the command line.
    fn common(&self, more: HeaderMap) -> HeaderMap {
        let mut all = self.settled().clone();
        all.extend(more);
        all.extend(self.remote.headers.clone());
        all
    }
}

/// The body of a response, within the bound for messages.
async fn whole(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| format!("broke off: {}", root_cause(&error)))? {
        if body.len() + bytes.len() > MESSAGE_MAX {
            return Err(format!("answers with more than {} MiB", MESSAGE_MAX >> 20));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// The content type without its parameters.
fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// What lies below an error, without the address, which may contain a secret.
fn root_cause(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
