//! Priming events, for the clients that know them.
//!
//! Since 2025-11-25 a stream may begin with an event of empty `data`, whose id a client can resume from. Clients of
//! older revisions read the `data` of every event as JSON and fail. The library sends it to all of them, so it is taken
//! out here. A client names its revision in every request but the first; the answer to that one says what was
//! negotiated.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

const VERSION_HEADER: &str = "mcp-protocol-version";
/// The first revision with priming events. Revisions are dates, so they compare as texts.
const PRIMED_SINCE: &str = "2025-11-25";
const END_OF_EVENT: &[u8] = b"\n\n";

/// What to do with the priming events of an answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Priming {
    /// The client knows them.
    Keep,
    /// The client would fail on them.
    Drop,
    /// The answer itself says which revision was negotiated.
    AsNegotiated,
}

impl Priming {
    /// Decides by the headers of a request. One without a revision negotiates it, or is older than the header.
    pub(super) fn of(request: &HeaderMap) -> Self {
        match request.get(VERSION_HEADER).map(HeaderValue::as_bytes) {
            Some(version) if version >= PRIMED_SINCE.as_bytes() => Self::Keep,
            Some(_) => Self::Drop,
            None => Self::AsNegotiated,
        }
    }

    /// The answer as this client can read it.
    pub(super) fn apply(self, response: Response) -> Response {
        let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if self == Self::Keep || !kind.starts_with(b"text/event-stream") {
            return response;
        }
        response.map(|body| {
            let events = Events { priming: self, held: Vec::new(), unfinished: Vec::new() };
            let chunks = stream::unfold((body.into_data_stream(), events), |(mut body, mut events)| async move {
                let chunk = body.next().await?;
                Some((chunk.map(|chunk| events.read(&chunk)), (body, events)))
            });
            Body::from_stream(chunks.filter(|chunk| {
                let empty = chunk.as_ref().is_ok_and(Bytes::is_empty);
                std::future::ready(!empty)
            }))
        })
    }
}

/// The events of one answer, while it is read.
struct Events {
    priming: Priming,
    /// Priming events that wait for the negotiated revision.
    held: Vec<u8>,
    /// The beginning of an event whose end has not come yet.
    unfinished: Vec<u8>,
}

impl Events {
    /// What of this chunk goes to the client.
    fn read(&mut self, chunk: &[u8]) -> Bytes {
        self.unfinished.extend_from_slice(chunk);
        let mut out = Vec::new();
        while let Some(at) = find(&self.unfinished, END_OF_EVENT) {
            let rest = self.unfinished.split_off(at + END_OF_EVENT.len());
            let event = std::mem::replace(&mut self.unfinished, rest);
            self.pass(&event, &mut out);
        }
        out.into()
    }

    fn pass(&mut self, event: &[u8], out: &mut Vec<u8>) {
        let data = data_of(event);
        if data.as_ref().is_some_and(Vec::is_empty) {
            match self.priming {
                Priming::Keep => out.extend_from_slice(event),
                Priming::Drop => {}
                Priming::AsNegotiated => self.held.extend_from_slice(event),
            }
            return;
        }
        if let (Priming::AsNegotiated, Some(data)) = (self.priming, data) {
            self.priming = negotiated(&data);
            let held = std::mem::take(&mut self.held);
            out.extend_from_slice(if self.priming == Priming::Keep { &held } else { &[] });
        }
        out.extend_from_slice(event);
    }
}

/// What an answer to `initialize` says about the client.
fn negotiated(data: &[u8]) -> Priming {
    let answer: Value = serde_json::from_slice(data).unwrap_or_default();
    match answer["result"]["protocolVersion"].as_str() {
        Some(version) if version >= PRIMED_SINCE => Priming::Keep,
        _ => Priming::Drop,
    }
}

/// The data of an event; none where it has no such field, as a comment that keeps the connection open.
fn data_of(event: &[u8]) -> Option<Vec<u8>> {
    let values = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let mut lines = values.map(|value| value.strip_prefix(b" ").unwrap_or(value)).peekable();
    lines.peek().is_some().then(|| lines.collect::<Vec<_>>().join(&b'\n'))
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMING: &str = "id: 0\nretry: 3000\ndata: \n\n";

    fn events(priming: Priming) -> Events {
        Events { priming, held: Vec::new(), unfinished: Vec::new() }
    }

    fn hello(version: &str) -> String {
        format!("data: {{\"result\":{{\"protocolVersion\":\"{version}\"}}}}\n\n")
    }

    #[test]
    fn only_priming_events_are_dropped_however_the_answer_is_cut() {
        let sent = format!("{PRIMING}: keep alive\n\nid: 1\ndata: {{}}\n\n{PRIMING}data: last\n\n");
        let expected = ": keep alive\n\nid: 1\ndata: {}\n\ndata: last\n\n";
        for size in 1..sent.len() {
            let mut events = events(Priming::Drop);
            let read: Vec<u8> = sent.as_bytes().chunks(size).flat_map(|chunk| events.read(chunk)).collect();
            assert_eq!(String::from_utf8_lossy(&read), expected, "in chunks of {size}");
        }
    }

    #[test]
    fn the_answer_to_initialize_decides_for_itself() {
        let read =
            |version: &str| events(Priming::AsNegotiated).read(format!("{PRIMING}{}", hello(version)).as_bytes());
        assert_eq!(read("2025-11-25"), format!("{PRIMING}{}", hello("2025-11-25")));
        for older in ["2024-11-05", "2025-03-26", "2025-06-18"] {
            assert_eq!(read(older), hello(older));
        }
    }
}
