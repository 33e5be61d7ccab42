use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderMap;
use axum::{Extension, Json};
use bellwire_core::Time;
use bellwire_store::{IdempotencyKey, Incoming, PersonTrace, Publish, Receipt, Verdicts};
use schemars::{JsonSchema, json_schema};
use serde::Serialize;

use super::correlation::Correlation;
use super::cost::Cost;
use super::drafts::{ReceivedEvent, drafts};
use super::field::PathId;
use super::idempotency::idempotency_key_of;
use super::new_event::{AddressedEvent, CloudEvent, example};
use super::openapi::Operation;
use super::shape::{self, Accepted};
use super::trace::{TraceBody, VerdictBody};
use super::{ApiError, Hub, intake};
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
#[schemars(rename = "Published")]
pub(super) struct PublishResponse {
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
    #[schemars(with = "Vec<VerdictBody>")]
    verdicts: Arc<Verdicts>,
}

/// The body of a publish: JSON, NDJSON or CloudEvents.
pub(super) struct EventsBody {
    once: Option<IdempotencyKey>,
    headers: HeaderMap,
    body: Bytes,
}

/// A larger body is checked to its end before any event of it is kept.
const CHECKED_FIRST: usize = 1024 * 1024;
/// The most events one call may bring.
const EVENTS_MAX: usize = 1000;

/// One event, a JSON array of them, or NDJSON: all are taken in or none.
pub(super) async fn publish(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    correlation: Extension<Correlation>,
    EventsBody { once, headers, body }: EventsBody,
) -> Result<Accepted<PublishResponse>, ApiError> {
    let now = clock::now();
    let drafts = drafts(&headers, &body, hub.batch_max)?;
    let mut cost = Cost::of(&identity, drafts.len())?;
    let read = |(at, draft): (usize, &ReceivedEvent<'_>)| {
        admit(draft, now, &identity, &correlation).map_err(|error| error.within(at))
    };
    let is_large = body.len() > CHECKED_FIRST;
    if is_large {
        // Events take many times the memory of their text, so all are checked one by one and paid for before any is kept.
        drafts.iter().enumerate().try_for_each(|draft| read(draft).map(|(_, incoming)| cost.note(&incoming)))?;
        cost.take_rest(&hub, &identity, now).await?;
    }
    let (mut names, mut events) = (Vec::with_capacity(drafts.len()), Vec::with_capacity(drafts.len()));
    for draft in drafts.iter().enumerate() {
        let (name, incoming) = read(draft)?;
        if !is_large {
            cost.note(&incoming);
        }
        names.push(name);
        events.push(incoming);
    }
    drop(drafts);
    drop(body);
    if !is_large {
        cost.take_rest(&hub, &identity, now).await?;
    }
    cost.keep();
    let receipts = hub.store.publish(Publish { caller: identity.caller.clone(), events, once }).await?;
    let events = receipts.into_iter().zip(names).map(|(receipt, name)| PublishedEvent::of(receipt, name)).collect();
    Ok(Accepted(PublishResponse { events }))
}

/// One event's life: every verdict and what became of its notifications, with times and reasons.
pub(super) async fn trace(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<Json<TraceBody>, ApiError> {
    let mut trace = hub.store.trace(identity.caller.clone(), id).await?;
    if identity.scope == Scope::Agent {
        // An agent is not its person: where mail goes and what was read is theirs.
        trace.told.iter_mut().for_each(PersonTrace::hide_the_persons_own);
    }
    Ok(Json(trace.into()))
}

/// Checks one event. The name a sender brings stays a name of theirs; the store gives it one of its own.
fn admit(
    draft: &ReceivedEvent<'_>,
    now: Time,
    identity: &Identity,
    correlation: &Correlation,
) -> Result<(Option<String>, Incoming), ApiError> {
    let (mut event, client_event_id) = draft.read()?;
    if !event.is_addressed() {
        let bound = identity.caller.conversation_id.clone();
        event.address(bound.ok_or_else(|| {
            ApiError::invalid("conversation_id", "is missing; an event needs conversation_id or user_id")
        })?);
    }
    let name = event.take_client_id();
    let event = event.into_event(now)?.correlated(correlation.id());
    Ok((name, Incoming::new(event, client_event_id)))
}

impl PublishedEvent {
    pub(super) fn of(receipt: Receipt, name: Option<String>) -> Self {
        Self {
            id: name.unwrap_or_else(|| receipt.event_id.to_string()),
            filtered: receipt.filtered,
            verdicts: receipt.verdicts,
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for EventsBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let once = idempotency_key_of(&request)?;
        let (parts, body) = intake::whole(request).await?;
        Ok(Self { once: once.map(|once| once.of(&body)), headers: parts.headers, body })
    }
}

impl shape::HandlerArgument for EventsBody {
    type Request = Self;
}

impl shape::RequestShape for EventsBody {
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
