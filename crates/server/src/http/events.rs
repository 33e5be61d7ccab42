use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderMap;
use axum::{Extension, Json};
use bellwire_core::Time;
use bellwire_store::{IdempotencyKey, IncomingEvent, PersonTrace, Publish, Receipt, Verdicts};
use schemars::{JsonSchema, json_schema};
use serde::Serialize;
use uuid::Uuid;

use super::correlation::Correlation;
use super::cost::Cost;
use super::drafts::{ReceivedEvent, drafts};
use super::event_lookup::trace_by_any_id;
use super::field::PathId;
use super::idempotency::idempotency_key_of;
use super::new_event::{AddressedEvent, CloudEvent, example};
use super::openapi::Operation;
use super::router::Route;
use super::shape::{self, Accepted};
use super::trace::{TraceBody, VerdictBody};
use super::type_suggestions::TypeSuggestions;
use super::{ApiError, Hub, intake};
use crate::auth::{Identity, Scope};
use crate::clock;

pub(super) use super::event_list::list;

/// The results of publishing, in the order of the events.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "events": [{
        "id": "build-17", "event_id": "0198c0de-5bbd-7d47-b5fb-4c6c85fb6ae0", "filtered": 14,
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

/// The result of publishing one event.
#[derive(Serialize, JsonSchema)]
pub(super) struct PublishedEvent {
    /// The event's id: the client's own if it sent one, otherwise the hub's.
    id: String,
    /// The hub's id of the event, which is unique.
    event_id: Uuid,
    /// How many subscribers do not listen for its type.
    filtered: u32,
    /// The verdicts, one per conversation and listening subscriber.
    #[schemars(with = "Vec<VerdictBody>")]
    verdicts: Arc<Verdicts>,
}

/// The body of a publish: JSON, NDJSON or CloudEvents.
pub(super) struct EventsBody {
    idempotency_key: Option<IdempotencyKey>,
    headers: HeaderMap,
    body: Bytes,
}

/// All events of a larger body are validated before any of them is kept in memory.
const CHECKED_FIRST: usize = 1024 * 1024;
/// The maximum number of events per call.
const EVENTS_MAX: usize = 1000;

/// Publishes one event, a JSON array or NDJSON: all events or none.
pub(super) async fn publish(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    correlation: Extension<Correlation>,
    EventsBody { idempotency_key, headers, body }: EventsBody,
) -> Result<Accepted<PublishResponse>, ApiError> {
    let now = clock::now();
    let identity = identity.acting_as_own_person()?;
    let drafts = drafts(&headers, &body, hub.batch_max)?;
    let mut cost = Cost::of(&identity, drafts.len())?;
    let read = |(at, draft): (usize, &ReceivedEvent<'_>)| {
        admit(draft, now, &identity, &correlation).map_err(|error| draft.locate(error, at))
    };
    let is_large = body.len() > CHECKED_FIRST;
    if is_large {
        // A parsed event takes many times the memory of its text. So each event is validated and counted before any is
        // kept.
        drafts.iter().enumerate().try_for_each(|draft| read(draft).map(|(_, incoming)| cost.note(&incoming)))?;
        cost.take_rest(&hub, &identity, now).await?;
    }
    let mut suggestions = TypeSuggestions::new(hub.subscribers(), identity.scope);
    let (mut client_ids, mut events) = (Vec::with_capacity(drafts.len()), Vec::with_capacity(drafts.len()));
    for draft in drafts.iter().enumerate() {
        let (client_id, incoming) = read(draft)?;
        if !is_large {
            cost.note(&incoming);
        }
        client_ids.push(client_id);
        let hint = suggestions.hint(incoming.kind());
        events.push(incoming.with_hint(hint));
    }
    drop(drafts);
    drop(body);
    if !is_large {
        cost.take_rest(&hub, &identity, now).await?;
    }
    cost.keep();
    let receipts = hub.store.publish(Publish { caller: identity.caller.clone(), events, idempotency_key }).await?;
    let events = receipts
        .into_iter()
        .zip(client_ids)
        .map(|(receipt, client_id)| PublishedEvent::of(receipt, client_id))
        .collect();
    Ok(Accepted(PublishResponse { events }))
}

/// The trace of an event: its verdicts and notifications, with times and reasons.
pub(super) async fn trace(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<Json<TraceBody>, ApiError> {
    let mut trace = match identity.scope {
        Scope::Admin => trace_by_any_id(&hub, &identity.caller, id).await?,
        _ => hub.store.trace(identity.caller.clone(), id).await?,
    };
    if identity.scope == Scope::Agent {
        // An agent must not see the person's addresses or what the person has read.
        trace.person_traces.iter_mut().for_each(PersonTrace::redact_for_agents);
    }
    Ok(Json(trace.into()))
}

/// Validates one event. Returns it with its client event id; the store will assign the event's own id.
fn admit(
    draft: &ReceivedEvent<'_>,
    now: Time,
    identity: &Identity,
    correlation: &Correlation,
) -> Result<(Option<String>, IncomingEvent), ApiError> {
    let (mut event, client_event_id) = draft.read()?;
    if !event.is_addressed() {
        let bound = identity.caller.conversation_id.clone();
        event.address(bound.ok_or_else(|| {
            ApiError::invalid("conversation_id", "is missing; an event needs conversation_id or user_id")
        })?);
    }
    if let Some(user_id) = event.user_id() {
        let named = |error| ApiError { field: Some("user_id".to_owned()), ..error };
        identity.check_session_acts_for(user_id).map_err(named)?;
    }
    let client_id = event.take_client_id();
    if let Some(id) = client_id.as_deref().filter(|id| Route::hides_event(id)) {
        let message = format!("is '{id}', and GET /v1/events/{id} is another call; choose another id");
        return Err(ApiError::invalid("id", message));
    }
    let event = event.into_event(now)?.correlated(correlation.id());
    Ok((client_id, IncomingEvent::new(event, client_event_id)))
}

impl PublishedEvent {
    pub(super) fn of(receipt: Receipt, client_id: Option<String>) -> Self {
        Self {
            id: client_id.unwrap_or_else(|| receipt.event_id.to_string()),
            event_id: receipt.event_id.0,
            filtered: receipt.filtered,
            verdicts: receipt.verdicts,
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for EventsBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let key = idempotency_key_of(&request)?;
        let (parts, body) = intake::whole(request).await?;
        Ok(Self { idempotency_key: key.map(|key| key.of(&body)), headers: parts.headers, body })
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
        // OpenAPI 3.1 cannot describe NDJSON, so the schema describes the list of its lines.
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
