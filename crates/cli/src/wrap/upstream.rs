//! A client on standard input and output, in front of a server that is reached over streamable HTTP.
//!
//! Each message of the client is one POST. Requests run at once; notifications and responses, and `initialize`, are sent
//! before what follows them. Messages of the server come in the responses, and on a stream that is opened after the handshake.

mod headers;
mod responses;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use reqwest::header::HeaderMap;
use tokio::io::BufReader;
use tokio::sync::{Semaphore, mpsc};

use super::calls::Calls;
use super::client_output::ClientOutput;
use super::ending::Signals;
use super::lines::{Lines, Piece};
use super::message::{fields, messages, request_ids, string};
use super::proxy::Proxy;
use super::remote::Remote;
use crate::output::warn;

/// At most so many requests run at once; then the client is not read any further.
const REQUESTS_MAX: u32 = 4096;
/// How long open requests may take after the client has closed its output.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// How long the end of the session may take.
const DELETE_MAX: Duration = Duration::from_secs(2);
/// How long the client may take to read the last messages.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(super) struct Upstream {
    remote: Remote,
    proxy: Arc<Proxy>,
    calls: Arc<Calls>,
    output: ClientOutput,
    /// The headers that the handshake has settled: the session and the revision of the protocol.
    settled: Mutex<HeaderMap>,
    has_stream: AtomicBool,
    requests: Arc<Semaphore>,
}

/// Runs until the client is gone; returns the exit code.
pub(super) async fn run(remote: Remote, proxy: &Arc<Proxy>) -> Result<i32> {
    let (output, writer) = ClientOutput::new();
    let calls = Arc::new(Calls::default());
    proxy.watch(&calls);
    let upstream = Arc::new(Upstream {
        remote,
        proxy: proxy.clone(),
        calls,
        output,
        settled: Mutex::default(),
        has_stream: AtomicBool::new(false),
        requests: Arc::new(Semaphore::new(REQUESTS_MAX as usize)),
    });
    let mut writing = tokio::spawn(writer.run(tokio::io::stdout()));
    let mut signals = Signals::new()?;
    let code = tokio::select! {
        () = upstream.clone().serve() => 0,
        _ = &mut writing => 0,
        signal = signals.next() => signal.exit_code(),
    };
    upstream.end_session().await;
    proxy.news.finish().await;
    Ok(code)
}

impl Upstream {
    /// Reads the client until it closes its output, and waits for what is still running.
    async fn serve(self: Arc<Self>) {
        let mut lines = Lines::new(BufReader::new(tokio::io::stdin()));
        while let Ok(Some(piece)) = lines.next().await {
            match piece {
                Piece::Line(line) => self.clone().message(line).await,
                Piece::Part(part) => self.clone().long_message(part, &mut lines).await,
            }
        }
        let _ = tokio::time::timeout(CLOSE_GRACE, self.requests.acquire_many(REQUESTS_MAX)).await;
        let _ = tokio::time::timeout(LAST_WORDS, self.output.drained()).await;
    }

    async fn message(self: Arc<Self>, line: Vec<u8>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.proxy.client_said(&self.calls, &line);
        let outgoing = Outgoing::read(line);
        let kind = outgoing.kind;
        let Ok(permit) = self.requests.clone().acquire_owned().await else { return };
        let this = self.clone();
        let post = async move {
            this.post(outgoing).await;
            drop(permit);
        };
        match kind {
            Kind::Request => drop(tokio::spawn(post)),
            Kind::Initialize | Kind::Initialized | Kind::Other => post.await,
        }
        if kind == Kind::Initialized && !self.has_stream.swap(true, Ordering::Relaxed) {
            tokio::spawn(self.listen());
        }
    }

    /// A message that is too long to be read is passed on while it comes.
    async fn long_message<R>(self: Arc<Self>, first: Vec<u8>, lines: &mut Lines<R>)
    where
        R: tokio::io::AsyncBufRead + Unpin,
    {
        let (sender, receiver) = mpsc::channel::<Vec<u8>>(2);
        let parts = futures_util::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|part| (Ok::<_, std::io::Error>(part), receiver))
        });
        let Ok(permit) = self.requests.clone().acquire_owned().await else { return };
        tokio::spawn(async move {
            self.post(Outgoing::unread(reqwest::Body::wrap_stream(parts))).await;
            drop(permit);
        });
        let mut part = first;
        loop {
            let is_last = part.ends_with(b"\n");
            if sender.send(part).await.is_err() || is_last {
                return;
            }
            match lines.next().await {
                Ok(Some(Piece::Part(next) | Piece::Line(next))) => part = next,
                _ => return,
            }
        }
    }

    /// Tells the server that the session is over, if there is one.
    async fn end_session(&self) {
        let headers = self.settled().clone();
        if headers.contains_key(headers::SESSION) {
            let delete = self.remote.http.delete(self.remote.url.clone()).headers(self.remote.headers.clone());
            let _ = tokio::time::timeout(DELETE_MAX, delete.headers(headers).send()).await;
        }
    }

    fn settled(&self) -> std::sync::MutexGuard<'_, HeaderMap> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says on standard error what no response can say.
    fn tell(&self, problem: &str) {
        let problem = problem.to_owned();
        std::thread::spawn(move || warn(&problem));
    }
}

/// A message of the client, and what its answer depends on.
struct Outgoing {
    body: reqwest::Body,
    kind: Kind,
    /// The ids of its requests.
    ids: Vec<String>,
    headers: HeaderMap,
}

impl Outgoing {
    fn read(line: Vec<u8>) -> Self {
        let text = std::str::from_utf8(&line).unwrap_or_default();
        let (kind, ids, headers) = (Kind::of(text), request_ids(text), headers::of_request(text));
        Self { kind, ids, headers, body: line.into() }
    }

    fn unread(body: reqwest::Body) -> Self {
        Self { body, kind: Kind::Other, ids: Vec::new(), headers: HeaderMap::new() }
    }
}

/// What a message of the client is, as far as its order matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    Initialize,
    Initialized,
    Request,
    Other,
}

impl Kind {
    fn of(text: &str) -> Self {
        let kind = |message: &str| {
            let [id, method] = fields(message, ["id", "method"])?;
            Some(match (id, string(method)?.as_str()) {
                (Some(_), "initialize") => Self::Initialize,
                (Some(_), _) => Self::Request,
                (None, "notifications/initialized") => Self::Initialized,
                (None, _) => Self::Other,
            })
        };
        let kinds: Vec<Self> = messages(text).into_iter().filter_map(kind).collect();
        let known = [Self::Initialize, Self::Initialized, Self::Request];
        known.into_iter().find(|kind| kinds.contains(kind)).unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_message_decides_on_its_order() {
        for (text, kind) in [
            (r#"{"id":1,"method":"initialize"}"#, Kind::Initialize),
            (r#"{"method":"notifications/initialized"}"#, Kind::Initialized),
            (r#"{"id":1,"method":"tools\/call"}"#, Kind::Request),
            (r#"{"id":1,"result":{}}"#, Kind::Other),
            (r#"[{"method":"notifications/x"},{"id":1,"method":"ping"}]"#, Kind::Request),
            ("nonsense", Kind::Other),
        ] {
            assert_eq!(Kind::of(text), kind, "{text}");
        }
    }
}
