//! Errors of requests to a hub, with messages that say what to do.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// The hub refused a request. Callers use the status to decide what to do, such as to reconnect.
#[derive(Debug)]
pub(crate) struct HubRefused {
    pub(crate) status: u16,
    /// The `Retry-After` of the response.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) message: String,
    /// The path of the invalid field, and what the hub says of it.
    pub(crate) field: Option<String>,
    pub(crate) reason: String,
}

impl fmt::Display for HubRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for HubRefused {}

impl HubRefused {
    pub(crate) fn new(status: StatusCode, headers: &HeaderMap, body: &Value) -> Self {
        let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let text = |key: &str| body["error"][key].as_str().map(crate::output::printable);
        Self {
            status: status.as_u16(),
            retry_after: seconds.map(Duration::from_secs),
            message: refusal(body, status),
            field: text("field"),
            reason: text("message").unwrap_or_default(),
        }
    }

    /// Whether trying again cannot help. A 429 is over after a while.
    pub(crate) fn is_final(&self) -> bool {
        self.status < 500 && self.status != StatusCode::TOO_MANY_REQUESTS.as_u16()
    }
}

/// The message of an error response, with its field and hint.
fn refusal(body: &Value, status: StatusCode) -> String {
    let error = &body["error"];
    let message = error["message"].as_str().unwrap_or("the hub gave no reason");
    let field = error["field"].as_str().map(|field| format!("{field}: ")).unwrap_or_default();
    let hint = error["hint"].as_str().map(|hint| format!("; try: {hint}")).unwrap_or_default();
    let candidates = error["candidates"].as_array().into_iter().flatten().map(candidate).collect::<String>();
    crate::output::printable(&format!("{field}{message} ({status}){hint}{candidates}"))
}

/// A line about one of the events that have the id that was asked for.
fn candidate(event: &Value) -> String {
    let text = |key: &str| event[key].as_str().unwrap_or("-").to_owned();
    let place = format!("user {}, conversation {}", text("user_id"), text("conversation_id"));
    format!("\n  {}  {}  {place}, {}", text("event_id"), text("accepted_at"), text("type"))
}

/// The message for a request that failed below HTTP: DNS, TLS, connection, timeout.
pub(crate) fn describe(error: &reqwest::Error, url: &str) -> anyhow::Error {
    let causes = chain(error);
    let io_kind = causes.iter().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let tls = causes.iter().find_map(|cause| tls_error(*cause));
    let last = causes.last().map(ToString::to_string).unwrap_or_default();
    let message = match io_kind {
        _ if error.is_timeout() => format!("the hub at {url} does not answer in time"),
        _ if tls.is_some() => format!("no secure connection to {url}: {}", tls.unwrap_or_default()),
        Some(io::ErrorKind::ConnectionRefused) => format!("no hub answers at {url} (start one: bellwire start)"),
        _ if error.is_connect() => format!("the hub at {url} cannot be reached: {last}"),
        _ if error.is_decode() => format!("{url} answers, but not like a Bellwire: is the address right?"),
        _ => format!("the connection to {url} broke off: {last}"),
    };
    anyhow::Error::msg(message)
}

/// An error and its causes, the root cause last.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source()).collect()
}

/// The TLS error inside a cause. It is wrapped in one or more I/O errors.
fn tls_error(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(match error {
            rustls::Error::InvalidMessage(_) => "it does not speak TLS; is it http instead of https?".to_owned(),
            error => format!("it cannot be trusted: {error}"),
        });
    }
    let inner = cause.downcast_ref::<io::Error>()?.get_ref()?;
    tls_error(inner)
}
