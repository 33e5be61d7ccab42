//! Passes one HTTP request to the server and its response back.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};

use super::Listener;
use super::guard::{self, plain};
use crate::wrap::calls::Calls;
use crate::wrap::lines::{MESSAGE_MAX, Piece};
use crate::wrap::message::request_ids;
use crate::wrap::proxy::{Insertions, Proxy};
use crate::wrap::splice::insert;
use crate::wrap::sse::{Event, EventSplitter};

/// Headers that belong to one connection, and those that are made anew. A compressed response could not be read.
const NOT_PASSED: [&str; 11] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Listener {
    pub(super) async fn relay(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let calls = self.sessions.find(&head.headers).unwrap_or_else(|| self.new_calls(&head.headers));
        let (body, ids) = match self.read(&head.method, body, &calls).await {
            Ok(read) => read,
            Err(error) => return plain(StatusCode::BAD_REQUEST, format!("the request broke off: {error}\n")),
        };
        let mut headers = passed(&head.headers);
        // A page of this address is, for the server, one of its own.
        if let Some(origin) = self.origin().filter(|_| guard::is_same_origin(&head.headers)) {
            headers.insert(ORIGIN, origin);
        }
        headers.extend(self.remote.headers.clone());
        let request = self.remote.http.request(head.method.clone(), self.target(&head.uri)).headers(headers).body(body);
        match request.send().await {
            Ok(response) => {
                if head.method == Method::DELETE && response.status().is_success() {
                    self.sessions.forget(&head.headers);
                }
                self.sessions.note(response.headers(), &calls);
                self.respond(response, calls).await
            }
            Err(error) => self.unreachable(&error, &calls, &ids),
        }
    }

    fn new_calls(&self, headers: &HeaderMap) -> Arc<Calls> {
        let calls = Arc::default();
        self.proxy.watch(&calls);
        self.sessions.note(headers, &calls);
        calls
    }

    /// Reads a message up to the bound; what is longer passes unread. Returns the body and the ids of its requests.
    async fn read(
        &self,
        method: &Method,
        body: Body,
        calls: &Calls,
    ) -> Result<(reqwest::Body, Vec<String>), axum::Error> {
        let mut parts = body.into_data_stream();
        let mut read = Vec::new();
        while let Some(part) = parts.next().await.transpose()? {
            read.extend_from_slice(&part);
            if read.len() > MESSAGE_MAX {
                let first = stream::iter([Ok(Bytes::from(read))]);
                return Ok((reqwest::Body::wrap_stream(first.chain(parts)), Vec::new()));
            }
        }
        let mut ids = Vec::new();
        if method == Method::POST {
            self.proxy.client_said(calls, &read);
            ids = request_ids(std::str::from_utf8(&read).unwrap_or_default());
        }
        Ok((read.into(), ids))
    }

    fn origin(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.remote.url.origin().ascii_serialization()).ok()
    }

    /// The same path on the server. A query in the server's URL, such as a key, is kept unless the client sends its own.
    fn target(&self, uri: &axum::http::Uri) -> reqwest::Url {
        let mut target = self.remote.url.clone();
        if uri.path() != target.path() {
            target.set_path(uri.path());
            target.set_query(None);
        }
        if uri.query().is_some() {
            target.set_query(uri.query());
        }
        target
    }

    async fn respond(&self, response: reqwest::Response, calls: Arc<Calls>) -> Response {
        let mut headers = passed(response.headers());
        let (status, length) = (response.status(), response.headers().get(CONTENT_LENGTH).cloned());
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_readable = !headers.contains_key(CONTENT_ENCODING);
        let body = match kind.as_str() {
            "text/event-stream" if is_readable => Body::from_stream(events(response, self.proxy.clone(), calls)),
            "application/json" if is_readable => {
                let (body, length) = json(response, &self.proxy, &calls).await;
                headers.extend(length.map(|length| (CONTENT_LENGTH, length.into())));
                body
            }
            _ => {
                headers.extend(length.map(|length| (CONTENT_LENGTH, length)));
                Body::from_stream(chunks(response))
            }
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        answer
    }

    /// Each request of the message gets an error that names the server.
    fn unreachable(&self, error: &reqwest::Error, calls: &Calls, ids: &[String]) -> Response {
        let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
        let cause = causes.last().map(ToString::to_string).unwrap_or_default();
        let why = format!("the MCP server at {} cannot be reached: {cause}", self.proxy.server);
        let mut errors = self.proxy.abandon(calls, Some(ids), &why);
        let mut response = match errors.len() {
            1 => plain(StatusCode::BAD_GATEWAY, errors.remove(0)),
            _ => return plain(StatusCode::BAD_GATEWAY, format!("{why}\n")),
        };
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

fn passed(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    NOT_PASSED.iter().for_each(|name| drop(headers.remove(*name)));
    headers
}

type Chunk = Result<Bytes, reqwest::Error>;

/// A body as it comes.
fn chunks(response: reqwest::Response) -> impl Stream<Item = Chunk> + Send {
    stream::unfold(Some(response), |response| async move {
        let mut response = response?;
        match response.chunk().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(response))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// A JSON body with what is added to it, and its length. One that is too long to be read passes as it comes.
async fn json(mut response: reqwest::Response, proxy: &Arc<Proxy>, calls: &Calls) -> (Body, Option<usize>) {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            Ok(None) => break,
            Err(error) => return (Body::from_stream(stream::iter([Ok(Bytes::from(body)), Err(error)])), None),
        }
        if body.len() > MESSAGE_MAX {
            calls.forget_all();
            return (Body::from_stream(stream::iter([Ok(Bytes::from(body))]).chain(chunks(response))), None);
        }
    }
    let received = Instant::now();
    let insertions = proxy.insertions(proxy.server_said(calls, &body), received).await;
    insert(&mut body, &insertions.texts);
    let length = body.len();
    let parts = stream::unfold(Parts::of(body, insertions), |mut parts| async move {
        parts.next().map(|part| (Ok::<_, std::convert::Infallible>(part), parts))
    });
    (Body::from_stream(parts), Some(length))
}

/// A message with what was added to it, in two parts. When the second one is asked for, the connection has taken the first:
/// all but a byte that the client needs to understand it. After the second, nothing may be asked for any more.
#[derive(Default)]
struct Parts {
    first: Option<Bytes>,
    last: Option<(Bytes, Insertions)>,
}

impl Parts {
    fn of(mut message: Vec<u8>, insertions: Insertions) -> Self {
        if insertions.texts.is_empty() {
            return Self { first: Some(message.into()), last: None };
        }
        let last = message.split_off(message.len().saturating_sub(1));
        Self { first: Some(message.into()), last: Some((last.into(), insertions)) }
    }

    fn next(&mut self) -> Option<Bytes> {
        self.first.take().or_else(|| {
            let (last, insertions) = self.last.take()?;
            insertions.written();
            Some(last)
        })
    }
}

/// A stream of events, each as it came except for what is added to it.
fn events(response: reqwest::Response, proxy: Arc<Proxy>, calls: Arc<Calls>) -> impl Stream<Item = Chunk> + Send {
    let splitter = EventSplitter::default();
    let state = Events { response: Some(response), splitter, proxy, calls, parts: Parts::default() };
    stream::unfold(state, |mut state| async move { state.next().await.map(|chunk| (chunk, state)) })
}

struct Events {
    response: Option<reqwest::Response>,
    splitter: EventSplitter,
    proxy: Arc<Proxy>,
    calls: Arc<Calls>,
    /// Those of the event that is being sent.
    parts: Parts,
}

impl Events {
    async fn next(&mut self) -> Option<Chunk> {
        loop {
            if let Some(part) = self.parts.next() {
                return Some(Ok(part));
            }
            match self.splitter.next() {
                Some(Piece::Line(event)) => {
                    self.parts = self.with_news(event).await;
                    continue;
                }
                Some(Piece::Part(part)) => {
                    self.calls.forget_all();
                    return Some(Ok(part.into()));
                }
                None => {}
            }
            match self.response.as_mut()?.chunk().await {
                Ok(Some(bytes)) => self.splitter.push(&bytes),
                ended => {
                    self.response = None;
                    let rest = self.splitter.rest();
                    return ended.err().map(Err).or((!rest.is_empty()).then(|| Ok(rest.into())));
                }
            }
        }
    }

    async fn with_news(&self, mut raw: Vec<u8>) -> Parts {
        let received = Instant::now();
        let event = Event::read(&raw);
        let ended = self.proxy.server_said(&self.calls, event.data.as_bytes());
        let insertions = self.proxy.insertions(ended, received).await;
        let texts: Vec<_> = insertions.texts.iter().map(|(at, text)| (event.raw_offset(*at), text.clone())).collect();
        insert(&mut raw, &texts);
        Parts::of(raw, insertions)
    }
}
