//! `POST /v1/ingest/{source}`: webhooks of other systems become events.
//!
//! A call is authenticated by its source's secret, read in the format of its kind, and mapped to events of types that
//! subscribers listen for. Mapping reads nothing but the call, so that `bellwire ingest test` can show it without a hub.

mod activity;
mod alertmanager;
mod github;
mod rule;
mod signature;
mod source;

pub(crate) use activity::{Activity, CallOutcome};
pub(crate) use github::EVENTS as GITHUB_EVENTS;
pub use rule::Rule;
pub use signature::Refusal;
pub use source::{Source, Sources};

use axum::http::HeaderMap;
use bellwire_core::{Event, Severity, ValidationError};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::config::{IngestKind, IngestSource};
use crate::http::read_webhook_json;

/// What a call becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapped {
    /// Events to publish; at least one.
    Events(Vec<WebhookEvent>),
    /// Nothing, and why.
    Skipped(String),
}

/// An event of a call, not addressed yet.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookEvent {
    /// By which a repeated call is recognized.
    pub id: Option<String>,
    /// What must be the same under this id; none = anything counts as a repeat.
    pub(crate) content: Option<[u8; 16]>,
    /// The type.
    pub kind: String,
    /// The severity.
    pub severity: Severity,
    /// The conversation that the call itself names.
    pub conversation: Option<String>,
    /// The payload.
    pub payload: Value,
}

/// What is wrong with the body of an authentic call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyProblem {
    /// The field or header.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// In characters: the longest part of a body that becomes the message of an unknown webhook.
const MESSAGE_MAX: usize = 280;
const EVENT_HEADER: &str = "X-GitHub-Event";
const DELIVERY_HEADER: &str = "X-GitHub-Delivery";
/// In characters: the longest delivery id of GitHub, and the longest id that is stored as it is.
const ID_MAX: usize = 100;

impl Mapped {
    fn one(event: WebhookEvent) -> Self {
        Self::Events(vec![event])
    }
}

impl WebhookEvent {
    /// An event of a kind that Bellwire knows. Fields that the body left empty are left out.
    fn new(kind: &str, severity: Severity, mut payload: Value) -> Self {
        if let Value::Object(fields) = &mut payload {
            fields.retain(|_, value| value != "");
        }
        Self { id: None, content: None, kind: kind.to_owned(), severity, conversation: None, payload }
    }

    /// The event of this source, not addressed yet. The core checks its values.
    pub fn to_event(&self, source: &str) -> Result<Event, ValidationError> {
        Event::new(&self.kind, source, self.severity, self.payload.clone())
    }
}

impl BodyProblem {
    pub(crate) fn new(field: &str, message: impl Into<String>) -> Self {
        Self { field: field.to_owned(), message: message.into() }
    }
}

impl std::fmt::Display for BodyProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// What a call becomes. The call is not authenticated here.
pub fn map(source: &IngestSource, headers: &HeaderMap, body: &[u8]) -> Result<Mapped, BodyProblem> {
    let json = read_webhook_json(headers, body)?;
    match source.kind {
        IngestKind::Github => {
            let missing = || BodyProblem::new(EVENT_HEADER, "is missing: GitHub says with it what happened");
            let event = signature::single(headers, EVENT_HEADER).ok_or_else(missing)?;
            let mapped = github::map(event, &json, &source.events);
            let delivery = signature::single(headers, DELIVERY_HEADER).map(|id| clip(id, ID_MAX));
            Ok(mapped.under(delivery, Some(digest(body))))
        }
        IngestKind::Alertmanager => alertmanager::map(&json),
        IngestKind::StandardWebhooks => {
            // The signature covers the id.
            let id = signature::single(headers, "webhook-id").map(|id| short_id(id.to_owned()));
            let mapped = if source.rules.is_empty() { received(&json) } else { by_rules(&source.rules, &json)? };
            Ok(mapped.under(id, Some(digest(body))))
        }
        IngestKind::Json => by_rules(&source.rules, &json),
    }
}

/// The GitHub event of a stored body, for trying it out without its headers.
pub fn guess_github_event(body: &[u8]) -> Option<&'static str> {
    github::guess_event(&read_webhook_json(&HeaderMap::new(), body).ok()?)
}

impl Mapped {
    /// The same under the id of the call, unless an event has its own.
    fn under(self, id: Option<String>, content: Option<[u8; 16]>) -> Self {
        let named = |event: WebhookEvent| match event.id {
            Some(_) => event,
            None => WebhookEvent { content: id.as_ref().and(content), id: id.clone(), ..event },
        };
        match self {
            Self::Events(events) => Self::Events(events.into_iter().map(named).collect()),
            skipped => skipped,
        }
    }
}

fn by_rules(rules: &[Rule], body: &Value) -> Result<Mapped, BodyProblem> {
    match rules.iter().find(|rule| rule.matches(body)) {
        Some(rule) => {
            let event = rule.event(body)?;
            Ok(Mapped::one(WebhookEvent { id: event.id.map(short_id), ..event }))
        }
        None => Ok(Mapped::Skipped("no rule matches the body ([[ingest.NAME.event]])".into())),
    }
}

/// A call of Standard Webhooks without rules: its type, and its data as text.
fn received(body: &Value) -> Mapped {
    let name = match text_at(body, "/type", 100) {
        name if name.is_empty() => "webhook".to_owned(),
        name => name,
    };
    let data = body.get("data").unwrap_or(body).to_string();
    let payload = json!({ "name": name, "message": clip(&data, MESSAGE_MAX) });
    Mapped::one(WebhookEvent::new("task.background.received", Severity::Info, payload))
}

/// The text or number at a JSON Pointer, cut to this many characters; empty if there is none.
fn text_at(body: &Value, pointer: &str, max: usize) -> String {
    match body.pointer(pointer) {
        Some(Value::String(text)) => clip(text, max),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The first characters of a text.
fn clip(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An id of bounded length: a long one is replaced by its hash.
fn short_id(id: String) -> String {
    match id.chars().count() > ID_MAX || id.contains(char::is_control) {
        true => digest(id.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect(),
        false => id,
    }
}

fn digest(bytes: &[u8]) -> [u8; 16] {
    let whole = Sha256::digest(bytes);
    <[u8; 16]>::try_from(&whole[..16]).expect("a SHA-256 has 32 bytes")
}
