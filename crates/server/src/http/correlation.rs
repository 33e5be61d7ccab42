//! One thread of work, one name: in the request, in every log line about it, in the events it brings, in the answer.
//!
//! `X-Correlation-PathId` names it for people, `traceparent` for tracing systems. What is missing or malformed is made up;
//! nobody is refused for a header that only helps.

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

/// What a request belongs to. Both its names are kept as the answer carries them.
#[derive(Clone, Debug)]
pub(crate) struct Correlation {
    id: HeaderValue,
    /// The trace, and our own part of it: `00-<trace>-<part>-<flags>`.
    trace: HeaderValue,
}

/// Makes up names for traces and for our parts of them: hashes of a number under a key. So the operating system is asked
/// for random bits once and not for every request, and yet nobody learns from a name how many there were or will be.
pub(crate) struct TraceIds {
    key: [u8; 16],
    made: AtomicU64,
}

impl Correlation {
    pub(super) fn of(headers: &HeaderMap, names: &TraceIds) -> Self {
        let trace = headers.get(&TRACE_HEADER).and_then(|value| parse_trace(value.to_str().ok()?));
        let trace = Bytes::copy_from_slice(&names.traceparent(trace));
        let legal =
            |value: Bytes| HeaderValue::from_maybe_shared(value).expect("hexadecimal digits are a header's value");
        let client_event_id = headers.get(&CORRELATION_HEADER).filter(|id| is_id(id.as_bytes()));
        let id = client_event_id.cloned().unwrap_or_else(|| legal(trace.slice(TRACE)));
        Self { id, trace: legal(trace) }
    }

    /// The caller's name for it, or the trace's.
    pub(crate) fn id(&self) -> &str {
        self.id.to_str().expect("only visible ASCII passed the check")
    }

    /// What log lines about the request say of it. The path itself may hold ids and signed links; its shape says enough.
    pub(super) fn span(&self, request: &Request) -> Span {
        tracing::info_span!(
            "request",
            correlation_id = self.id(),
            trace_id = self.trace.to_str().map_or("", |trace| &trace[TRACE]),
            method = request.method().as_str(),
            route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str)
        )
    }

    /// Names the thread of work in the answer.
    pub(super) fn put(self, headers: &mut HeaderMap) {
        headers.insert(&CORRELATION_HEADER, self.id);
        headers.insert(&TRACE_HEADER, self.trace);
    }
}

/// Where the trace's own name is in its header, and where our part of it is.
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

    /// The header of the trace a request continues, or of a new one that nobody records.
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

/// The trace's name and whether it is recorded, from `00-<trace>-<parent>-<flags>`; later versions may add more.
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
    fn a_trace_keeps_its_name_and_gets_a_part_of_ours() {
        let names = TraceIds::under([1; 16]);
        let value = HeaderValue::from_str(&format!("00-{NAME}-00f067aa0ba902b7-01")).expect("it is ASCII");
        let headers = HeaderMap::from_iter([(TRACE_HEADER.clone(), value)]);
        let [first, second] = [(); 2].map(|()| Correlation::of(&headers, &names));
        assert_eq!((first.id(), second.id()), (NAME, NAME));
        for correlation in [&first, &second] {
            let trace = correlation.trace.to_str().expect("it is ASCII");
            assert_eq!(parse_trace(trace), Some((NAME, true)), "{trace}");
        }
        assert_ne!(first.trace, second.trace);
    }

    #[test]
    fn a_request_without_ids_gets_new_ones() {
        let names = TraceIds::under([1; 16]);
        let [first, second] = [(); 2].map(|()| Correlation::of(&HeaderMap::new(), &names));
        let trace = first.trace.to_str().expect("it is ASCII");
        assert_eq!(parse_trace(trace), Some((first.id(), false)), "{trace}");
        assert_ne!(first.id(), second.id());
    }
}
