use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use bellwire_core::{Ids, Time};
use bellwire_store::{Brought, Incoming, Once, Publish, Receipt, Told};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::hash::Hasher as _;
use std::sync::Arc;

use super::body::{self, Object};
use super::correlation::Correlation;
use super::field::Id;
use super::idempotency::once_of;
use super::new_event::{AddressedEvent, CloudEvent, NewEvent, example};
use super::openapi::Operation;
use super::shape::{self, Accepted};
use super::trace::{Trace, Verdict};
use super::{ApiError, Hub, cloudevents};
use crate::auth::{Identity, Scope};
use crate::clock;

/// What became of the events, in the order they came.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "events": [{
        "id": "0198c0de-5bbd-7d47-b5fb-4c6c85fb6ae0", "filtered": 14,
        "verdicts": [{
            "subscriber": "tool_failure", "conversation_id": "chat", "agent": "main", "verdict": "held",
            "reason": "held in a batch until 2026-01-03T15:30:02Z at the latest",
            "notification_id": "0198c0de-5bbe-7a11-8c2f-3f1d2c4b5a69",
        }],
    }],
}]))]
pub(super) struct Published {
    events: Vec<PublishedEvent>,
}

/// What one event came to.
#[derive(Serialize, JsonSchema)]
pub(super) struct PublishedEvent {
    /// Its name: the sender's own, or ours.
    id: String,
    /// How many subscribers do not listen for its type.
    filtered: u32,
    /// What it came to, per conversation and listening subscriber.
    verdicts: Vec<Verdict>,
}

/// The body of a publish: JSON, NDJSON or CloudEvents.
pub(super) struct Events {
    once: Option<Once>,
    headers: HeaderMap,
    body: Bytes,
}

/// The most events one call may bring.
const EVENTS_MAX: usize = 1000;

/// One event, a JSON array of them, or NDJSON: all are taken in or none.
pub(super) async fn publish(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    correlation: Extension<Correlation>,
    Events { once, headers, body }: Events,
) -> Result<Accepted<Published>, ApiError> {
    let now = clock::now();
    let drafts = drafts(&headers, &body, hub.batch_max)?;
    let incoming = drafts.into_iter().enumerate();
    let incoming: Vec<(Option<String>, Incoming)> =
        incoming.map(|(at, draft)| admit(draft, at, now, &identity, &correlation)).collect::<Result<_, _>>()?;
    if identity.scope != Scope::Admin {
        hub.limit.pass(&identity.token_id, incoming.len(), now).map_err(|seconds| ApiError {
            retry_after_seconds: Some(seconds),
            ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "this token publishes too fast")
        })?;
    }
    let (names, events): (Vec<_>, Vec<_>) = incoming.into_iter().unzip();
    let receipts = hub.store.publish(Publish { caller: identity.caller, events, once }).await?;
    let events = receipts.into_iter().zip(names).map(|(receipt, name)| PublishedEvent::of(receipt, name)).collect();
    Ok(Accepted(Published { events }))
}

/// One event's life: every verdict and what became of its notifications, with times and reasons.
pub(super) async fn trace(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Id(id): Id,
) -> Result<Json<Trace>, ApiError> {
    let mut trace = hub.store.trace(identity.caller, id).await?;
    if identity.scope == Scope::Agent {
        // An agent is not its person: where mail goes and what was read is theirs.
        trace.told.iter_mut().for_each(Told::hide_the_persons_own);
    }
    Ok(Json(trace.into()))
}

/// One event on its way to being checked.
struct Draft {
    event: Value,
    /// The name it is remembered by, where that is not its own id, and a hash of what was sent under it.
    remembered: Option<Brought>,
}

fn drafts(headers: &HeaderMap, body: &Bytes, max: usize) -> Result<Vec<Draft>, ApiError> {
    let kind = body::media_type(headers);
    if let Some(events) = cloudevents::read(headers, &kind, body)? {
        check_count(events.len(), max)?;
        let draft = |(at, event): (usize, Value)| {
            let content = fingerprint(&event);
            let (event, id) = cloudevents::into_draft(event).map_err(|error| error.within(at))?;
            Ok(Draft { event, remembered: Some(Brought { id, content }) })
        };
        return events.into_iter().enumerate().map(draft).collect();
    }
    let drafts: Vec<Value> = match kind.as_str() {
        "application/x-ndjson" => {
            let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
            lines.map(body::read).collect::<Result<_, _>>()?
        }
        kind if body::is_json(kind) => match body::read(body)? {
            Value::Array(drafts) => drafts,
            one => vec![one],
        },
        kind => return Err(body::unsupported(kind, "application/json or application/x-ndjson")),
    };
    check_count(drafts.len(), max)?;
    Ok(drafts.into_iter().map(|event| Draft { event, remembered: None }).collect())
}

fn check_count(count: usize, max: usize) -> Result<(), ApiError> {
    match (1..=max).contains(&count) {
        true => Ok(()),
        false => Err(ApiError::invalid("events", format!("{count} events came; 1 to {max} are allowed in one call"))),
    }
}

/// Checks one event. The name a sender brings stays a name of theirs; the store gives it one of its own.
fn admit(
    draft: Draft,
    at: usize,
    now: Time,
    identity: &Identity,
    correlation: &Correlation,
) -> Result<(Option<String>, Incoming), ApiError> {
    let named = |error: ApiError| error.within(at);
    let Draft { event: sent, remembered } = draft;
    // Where a value is wrong is known only of a text, so the text is made when it is needed.
    let event = Object::<NewEvent>::deserialize(&sent).or_else(|_| body::read(sent.to_string().as_bytes()));
    let Object(event) = event.map_err(named)?;
    let (name, mut draft) = event.into_draft();
    if draft.conversation_id.is_none() && draft.user_id.is_none() {
        draft.conversation_id = identity.caller.conversation_id.clone();
    }
    if draft.conversation_id.is_none() && draft.user_id.is_none() {
        let message = "is missing; an event needs conversation_id or user_id";
        return Err(named(ApiError::invalid("conversation_id", message)));
    }
    let event = draft.admit(now, &mut Ids::seeded(0)).map_err(|invalid| named(invalid.into()))?;
    let brought = match &name {
        // Only what has a name can come again.
        Some(id) => Some(Brought { id: id.clone(), content: fingerprint(&sent) }),
        None => remembered,
    };
    Ok((name, Incoming { event: event.correlated(&correlation.id), brought }))
}

/// A hash of an event as it came; key order does not matter. It only compares what one sender sent twice.
fn fingerprint(draft: &Value) -> [u8; 16] {
    let mut hasher = SipHasher13::new();
    hasher.write(bellwire_core::event::canonical_json(draft).as_bytes());
    hasher.finish128().as_u128().to_le_bytes()
}

impl PublishedEvent {
    pub(super) fn of(receipt: Receipt, name: Option<String>) -> Self {
        Self {
            id: name.unwrap_or_else(|| receipt.event_id.to_string()),
            filtered: receipt.filtered,
            verdicts: Arc::unwrap_or_clone(receipt.verdicts).into_iter().map(Verdict::from).collect(),
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for Events {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let once = once_of(&request)?;
        let headers = request.headers().clone();
        let body = body::bytes(request).await?;
        Ok(Self { once: once.map(|once| once.of(&body)), headers, body })
    }
}

impl shape::Argument for Events {
    type Request = Self;
}

impl shape::Request for Events {
    fn describe(operation: &mut Operation<'_>) {
        let event = operation.requests.subschema_for::<AddressedEvent>();
        let events = json_schema!({ "type": "array", "minItems": 1, "maxItems": EVENTS_MAX, "items": event });
        let json = json_schema!({ "anyOf": [event, events], "examples": [example()] });
        operation.body("application/json", json.to_value());
        // OpenAPI 3.1 has no words for a list that is written a line each; the list is what can be checked.
        let lines = json_schema!({
            "type": "array", "minItems": 1, "maxItems": EVENTS_MAX, "items": event,
            "description": "One event a line.", "examples": [[example(), example()]],
        });
        operation.body("application/x-ndjson", lines.to_value());
        let cloud = operation.requests.subschema_for::<CloudEvent>();
        let clouds = json_schema!({ "type": "array", "minItems": 1, "maxItems": EVENTS_MAX, "items": cloud });
        operation.body("application/cloudevents+json", cloud.to_value());
        operation.body("application/cloudevents-batch+json", clouds.to_value());
    }
}
