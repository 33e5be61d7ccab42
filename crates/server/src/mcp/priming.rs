//! Removes priming events from responses to clients that do not support them.
//!
//! Since revision 2025-11-25 a stream may begin with an event of empty `data`, from whose id a client can resume. Clients
//! of older revisions parse the `data` of every event as JSON and fail. rmcp sends priming events to all clients, so this
//! module filters them. Every request but the first has the client's revision in a header; the response to the first,
//! `initialize`, contains the negotiated one.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

const VERSION_HEADER: &str = "mcp-protocol-version";
/// The first revision with priming events. Revisions are ISO dates, so they compare as strings.
const PRIMED_SINCE: &str = "2025-11-25";
const END_OF_EVENT: &[u8] = b"\n\n";

/// What to do with the priming events of a response.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Priming {
    /// The client supports them.
    Keep,
    /// The client would fail on them.
    Drop,
    /// The response itself contains the negotiated revision, which decides.
    AsNegotiated,
}

impl Priming {
    /// Decides by the request's headers. A request without the revision is `initialize`, or from a client older than the
    /// header.
    pub(super) fn of(request: &HeaderMap) -> Self {
        match request.get(VERSION_HEADER).map(HeaderValue::as_bytes) {
            Some(version) if version >= PRIMED_SINCE.as_bytes() => Self::Keep,
            Some(_) => Self::Drop,
            None => Self::AsNegotiated,
        }
    }

    /// Filters the response's body, if it is an event stream.
    pub(super) fn apply(self, response: Response) -> Response {
        let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if self == Self::Keep || !kind.starts_with(b"text/event-stream") {
            return response;
        }
        response.map(|body| {
            let filter = PrimingFilter { priming: self, held: Vec::new(), unfinished: Vec::new() };
            let chunks = stream::unfold((body.into_data_stream(), filter), |(mut body, mut filter)| async move {
                let chunk = body.next().await?;
                Some((chunk.map(|chunk| filter.read(&chunk)), (body, filter)))
            });
            Body::from_stream(chunks.filter(|chunk| {
                let empty = chunk.as_ref().is_ok_and(Bytes::is_empty);
                std::future::ready(!empty)
            }))
        })
    }
}

/// The filter's state for one response.
struct PrimingFilter {
    priming: Priming,
    /// Priming events held until the negotiated revision is known.
    held: Vec<u8>,
    /// The received part of an incomplete event.
    unfinished: Vec<u8>,
}

impl PrimingFilter {
    /// Takes a chunk of the response and returns the bytes for the client.
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

/// Decides by the response to `initialize`.
fn negotiated(data: &[u8]) -> Priming {
    let answer: Value = serde_json::from_slice(data).unwrap_or_default();
    match answer["result"]["protocolVersion"].as_str() {
        Some(version) if version >= PRIMED_SINCE => Priming::Keep,
        _ => Priming::Drop,
    }
}

/// The `data` of an event; `None` if it has no such field, as in a keep-alive comment.
fn data_of(event: &[u8]) -> Option<Vec<u8>> {
    let values = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let mut lines = values.map(|value| value.strip_prefix(b" ").unwrap_or(value)).peekable();
    lines.peek().is_some().then(|| lines.collect::<Vec<_>>().join(&b'\n'))
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMING: &str = "id: 0\nretry: 3000\ndata: \n\n";

    fn filter(priming: Priming) -> PrimingFilter {
        PrimingFilter { priming, held: Vec::new(), unfinished: Vec::new() }
    }

    fn hello(version: &str) -> String {
        format!("data: {{\"result\":{{\"protocolVersion\":\"{version}\"}}}}\n\n")
    }

    #[test]
    fn only_priming_events_are_dropped_for_every_chunk_size() {
        let sent = format!("{PRIMING}: keep alive\n\nid: 1\ndata: {{}}\n\n{PRIMING}data: last\n\n");
        let expected = ": keep alive\n\nid: 1\ndata: {}\n\ndata: last\n\n";
        for size in 1..sent.len() {
            let mut filter = filter(Priming::Drop);
            let read: Vec<u8> = sent.as_bytes().chunks(size).flat_map(|chunk| filter.read(chunk)).collect();
            assert_eq!(String::from_utf8_lossy(&read), expected, "in chunks of {size}");
        }
    }

    #[test]
    fn the_negotiated_revision_decides_for_the_response_to_initialize() {
        let read =
            |version: &str| filter(Priming::AsNegotiated).read(format!("{PRIMING}{}", hello(version)).as_bytes());
        assert_eq!(read("2025-11-25"), format!("{PRIMING}{}", hello("2025-11-25")));
        for older in ["2024-11-05", "2025-03-26", "2025-06-18"] {
            assert_eq!(read(older), hello(older));
        }
    }
}
