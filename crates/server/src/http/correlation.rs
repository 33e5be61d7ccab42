//! Correlation ids: the same id in the request, its log lines, its events and its response.
//!
//! `X-Correlation-Id` is the id for people, `traceparent` the one for tracing systems. A missing or malformed header is
//! replaced with a generated one; it never refuses the request.

use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use tracing::Span;

static CORRELATION_HEADER: HeaderName = HeaderName::from_static("x-correlation-id");
static TRACE_HEADER: HeaderName = HeaderName::from_static("traceparent");
const ID_MAX: usize = 128;

/// The ids of one request, stored as the header values of its response.
#[derive(Clone, Debug)]
pub(crate) struct Correlation {
    id: HeaderValue,
    /// The trace id and the hub's own span id: `00-<trace>-<span>-<flags>`.
    trace: HeaderValue,
}

/// Generates trace and span ids as keyed hashes of a counter. The key is random and read from the operating system once,
/// not per request; without the key, an id does not reveal the counter.
pub(crate) struct TraceIds {
    key: [u8; 16],
    made: AtomicU64,
}

impl Correlation {
    pub(super) fn of(headers: &HeaderMap, names: &TraceIds) -> Self {
        let trace = headers.get(&TRACE_HEADER).and_then(|value| parse_trace(value.to_str().ok()?));
        let trace = Bytes::copy_from_slice(&names.traceparent(trace));
        let legal = |value: Bytes| {
            HeaderValue::from_maybe_shared(value).expect("hexadecimal digits are valid in a header value")
        };
        let client_event_id = headers.get(&CORRELATION_HEADER).filter(|id| is_id(id.as_bytes()));
        let id = client_event_id.cloned().unwrap_or_else(|| legal(trace.slice(TRACE)));
        Self { id, trace: legal(trace) }
    }

    /// The client's correlation id, or the trace id if the client sent none.
    pub(crate) fn id(&self) -> &str {
        self.id.to_str().expect("the id was checked to be visible ASCII")
    }

    /// The span of the request's log lines. It has the route's pattern, not the path, which may contain ids or signed links.
    pub(super) fn span(&self, request: &Request) -> Span {
        tracing::info_span!(
            "request",
            correlation_id = self.id(),
            trace_id = self.trace.to_str().map_or("", |trace| &trace[TRACE]),
            method = request.method().as_str(),
            route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str)
        )
    }

    /// Sets the response headers.
    pub(super) fn put(self, headers: &mut HeaderMap) {
        headers.insert(&CORRELATION_HEADER, self.id);
        headers.insert(&TRACE_HEADER, self.trace);
    }
}

/// The byte ranges of the trace id and the span id in a `traceparent` header.
const TRACE: Range<usize> = 3..35;
const PART: Range<usize> = 36..52;

impl TraceIds {
    pub(crate) fn under(key: [u8; 16]) -> Self {
        Self { key, made: AtomicU64::new(0) }
    }

    fn bits(&self) -> u128 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write_u64(self.made.fetch_add(1, Ordering::Relaxed));
        hasher.finish128().as_u128()
    }

    /// The `traceparent` that continues the request's trace, or starts a new one that is not sampled.
    fn traceparent(&self, continued: Option<(&str, bool)>) -> [u8; 55] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        match continued {
            Some((trace, _)) => text[TRACE].copy_from_slice(trace.as_bytes()),
            None => write_hex(&self.bits().to_be_bytes(), &mut text[TRACE]),
        }
        write_hex(&self.bits().to_be_bytes()[..8], &mut text[PART]);
        text[54] += u8::from(continued.is_some_and(|(_, sampled)| sampled));
        text
    }
}

fn is_id(text: &[u8]) -> bool {
    (1..=ID_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}

/// The trace id and the sampled flag of `00-<trace>-<parent>-<flags>`; later versions may append fields.
fn parse_trace(text: &str) -> Option<(&str, bool)> {
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
    legal.then(|| (trace, u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)))
}

fn write_hex(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(text.chunks_exact_mut(2)) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_trace_is_continued_only_when_it_is_well_formed() {
        let header = parse_trace;
        assert_eq!(header(&format!("00-{NAME}-00f067aa0ba902b7-01")), Some((NAME, true)));
        assert_eq!(header(&format!("00-{NAME}-00f067aa0ba902b7-00")), Some((NAME, false)));
        assert_eq!(header(&format!("01-{NAME}-00f067aa0ba902b7-00-more")), Some((NAME, false)));
        for wrong in [
            "",
            "00",
            &format!("ff-{NAME}-00f067aa0ba902b7-01"),
            &format!("00-{NAME}-00f067aa0ba902b7-01-more"),
            &format!("00-{NAME}-0000000000000000-01"),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{}-00f067aa0ba902b7-01", NAME.to_uppercase()),
        ] {
            assert_eq!(header(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_continued_trace_keeps_its_id_and_gets_a_new_span_id() {
        let names = TraceIds::under([1; 16]);
        let value = HeaderValue::from_str(&format!("00-{NAME}-00f067aa0ba902b7-01")).expect("the header is ASCII");
        let headers = HeaderMap::from_iter([(TRACE_HEADER.clone(), value)]);
        let [first, second] = [(); 2].map(|()| Correlation::of(&headers, &names));
        assert_eq!((first.id(), second.id()), (NAME, NAME));
        for correlation in [&first, &second] {
            let trace = correlation.trace.to_str().expect("the header is ASCII");
            assert_eq!(parse_trace(trace), Some((NAME, true)), "{trace}");
        }
        assert_ne!(first.trace, second.trace);
    }

    #[test]
    fn a_request_without_ids_gets_new_ones() {
        let names = TraceIds::under([1; 16]);
        let [first, second] = [(); 2].map(|()| Correlation::of(&HeaderMap::new(), &names));
        let trace = first.trace.to_str().expect("the header is ASCII");
        assert_eq!(parse_trace(trace), Some((first.id(), false)), "{trace}");
        assert_ne!(first.id(), second.id());
    }
}
