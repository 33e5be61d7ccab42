//! Refuses requests that a web page of another site makes with the help of a browser (DNS rebinding).

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

/// Whether a request was made to this machine, and by no page of another one.
pub(super) fn is_local_request(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).is_none_or(is_local);
    let origin = text(ORIGIN).is_none_or(|origin| {
        is_local(origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or("?"))
    });
    host && origin
}

/// Whether a request was made by a page of the address that it was sent to.
pub(super) fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    text(ORIGIN).and_then(|origin| origin.strip_prefix("http://")).is_some_and(|origin| text(HOST) == Some(origin))
}

pub(super) const REFUSED: &str = "bellwire wrap answers only programs on this machine: Host, and Origin if there is one, must name \
    localhost, 127.0.0.1 or [::1]\n";

/// A response of our own.
pub(super) fn plain(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, axum::http::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Whether a host, with or without a port, is this machine.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(host),
    };
    ["localhost", "127.0.0.1", "::1"].contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_may_ask() {
        let asked = |pairs: &[(&'static str, &str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
            is_local_request(&pairs.collect::<HeaderMap>())
        };
        assert!(asked(&[("host", "127.0.0.1:7")]) && asked(&[("host", "LocalHost")]) && asked(&[("host", "[::1]:7")]));
        assert!(asked(&[("host", "localhost"), ("origin", "http://localhost:6274")]));
        let headers = |host: &str| {
            HeaderMap::from_iter([
                (HOST, host.parse().expect("a value")),
                (ORIGIN, "http://localhost:7".parse().expect("a value")),
            ])
        };
        assert!(is_same_origin(&headers("localhost:7")) && !is_same_origin(&headers("localhost:8")));
        for (host, origin) in [
            ("evil.example", "http://localhost"),
            ("localhost", "http://evil.example"),
            ("localhost", "null"),
            ("localhost.evil.example", "http://localhost"),
            ("localhost", "http://localhost.evil.example"),
        ] {
            assert!(!asked(&[("host", host), ("origin", origin)]), "{host} {origin}");
        }
    }
}
