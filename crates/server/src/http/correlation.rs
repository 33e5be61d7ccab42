//! One thread of work, one name: in the request, in every log line about it, in the events it brings, in the answer.
//!
//! `X-Correlation-Id` names it for people, `traceparent` for tracing systems. What is missing or malformed is made up;
//! nobody is refused for a header that only helps.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use tracing::Instrument as _;

use crate::clock;

const CORRELATION_HEADER: &str = "x-correlation-id";
const TRACE_HEADER: &str = "traceparent";
const ID_MAX: usize = 128;

/// What a request belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Correlation {
    /// The caller's name for it, or the trace's.
    pub(crate) id: String,
    trace_id: String,
    /// Our own part of the trace.
    span_id: String,
    sampled: bool,
}

impl Correlation {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bits: [u8; 24] = clock::random();
        let (trace_id, sampled) = text(TRACE_HEADER).and_then(parse_trace).unwrap_or_else(|| (hex(&bits[..16]), false));
        let id = text(CORRELATION_HEADER).filter(|id| is_id(id)).map_or_else(|| trace_id.clone(), str::to_owned);
        Self { id, trace_id, span_id: hex(&bits[16..]), sampled }
    }

    fn put(&self, headers: &mut HeaderMap) {
        let trace = format!("00-{}-{}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled));
        for (name, value) in [(CORRELATION_HEADER, &self.id), (TRACE_HEADER, &trace)] {
            let value = HeaderValue::from_str(value).expect("only visible ASCII passed the check");
            headers.insert(name, value);
        }
    }
}

/// Names the request's thread of work, and says at the end what came of it.
pub(super) async fn correlate(mut request: Request, answer: impl AsyncFnOnce(Request) -> Response) -> Response {
    let correlation = Correlation::of(request.headers());
    // The path itself may hold ids and signed links; its shape says enough.
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!(
        "request",
        correlation_id = correlation.id,
        trace_id = correlation.trace_id,
        method = request.method().as_str(),
        route
    );
    request.extensions_mut().insert(correlation.clone());
    let answered = async {
        let started = std::time::Instant::now();
        let response = answer(request).await;
        let (status, elapsed_us) = (response.status().as_u16(), started.elapsed().as_micros() as u64);
        tracing::debug!(status, elapsed_us, "answered");
        response
    };
    let mut response = answered.instrument(span).await;
    correlation.put(response.headers_mut());
    response
}

fn is_id(text: &str) -> bool {
    (1..=ID_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The trace's name and whether it is recorded, from `00-<trace>-<parent>-<flags>`; later versions may add more.
fn parse_trace(text: &str) -> Option<(String, bool)> {
    let mut parts = text.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let lower_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let not_zero = |text: &str| text.bytes().any(|byte| byte != b'0');
    let legal = lower_hex(version, 2)
        && version != "ff"
        && (version != "00" || parts.next().is_none())
        && lower_hex(trace, 32)
        && not_zero(trace)
        && lower_hex(parent, 16)
        && not_zero(parent)
        && lower_hex(flags, 2);
    legal.then(|| (trace.to_owned(), u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)))
}

/// Every request has two of these, so it is written without asking for memory byte by byte.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_trace_is_continued_only_when_it_is_well_formed() {
        let header = |text: &str| parse_trace(text);
        assert_eq!(header(&format!("00-{TRACE}-00f067aa0ba902b7-01")), Some((TRACE.to_owned(), true)));
        assert_eq!(header(&format!("00-{TRACE}-00f067aa0ba902b7-00")), Some((TRACE.to_owned(), false)));
        assert_eq!(header(&format!("01-{TRACE}-00f067aa0ba902b7-00-more")), Some((TRACE.to_owned(), false)));
        for wrong in [
            "",
            "00",
            &format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            &format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            &format!("00-{TRACE}-0000000000000000-01"),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
        ] {
            assert_eq!(header(wrong), None, "{wrong}");
        }
    }
}
