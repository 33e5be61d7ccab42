use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::{Extension, Json};
use bellwire_core::{EventDraft, Ids, Time};
use bellwire_store::{Brought, Incoming, Publish, Receipt, Trace};
use serde_json::{Value, json};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::hash::Hasher as _;

use super::correlation::Correlation;
use super::idempotency::Keyed;
use super::{ApiError, Hub, cloudevents};
use crate::auth::{Identity, Scope};
use crate::clock;

/// The most events one call may bring.
const EVENTS_MAX: usize = 1000;
/// The longest name a sender may bring.
const BROUGHT_MAX: usize = 128;

/// One event, a JSON array of them, or NDJSON: all are taken in or none.
pub(super) async fn publish(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    correlation: Extension<Correlation>,
    headers: HeaderMap,
    Keyed { once, body }: Keyed,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let now = clock::now();
    let drafts = drafts(&headers, &body)?;
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
    let events: Vec<Value> = receipts.iter().zip(names).map(|(receipt, name)| receipt_json(receipt, name)).collect();
    Ok((StatusCode::ACCEPTED, Json(json!({ "events": events }))))
}

/// One event's life: every verdict and what became of its notifications, with times and reasons.
pub(super) async fn trace(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let trace = hub.store.trace(identity.caller, id).await?;
    Ok(Json(trace_json(&trace)))
}

/// One event on its way to being checked.
struct Draft {
    event: Value,
    /// A hash of what was sent.
    content: [u8; 16],
    /// The name it is remembered by, where that is not its own id.
    remembered_as: Option<String>,
}

fn drafts(headers: &HeaderMap, body: &Bytes) -> Result<Vec<Draft>, ApiError> {
    if let Some(events) = cloudevents::read(headers, body)? {
        check_count(events.len())?;
        let draft = |(at, event): (usize, Value)| {
            let content = fingerprint(&event);
            let (event, name) = cloudevents::into_draft(event).map_err(|error| error.within(at))?;
            Ok(Draft { event, content, remembered_as: Some(name) })
        };
        return events.into_iter().enumerate().map(draft).collect();
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let drafts: Vec<Value> = if kind.starts_with("application/x-ndjson") {
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines
            .map(|line| serde_json::from_slice(line).map_err(|error| ApiError::body(&error)))
            .collect::<Result<_, _>>()?
    } else {
        match serde_json::from_slice(body).map_err(|error| ApiError::body(&error))? {
            Value::Array(drafts) => drafts,
            one => vec![one],
        }
    };
    check_count(drafts.len())?;
    let draft = |event: Value| Draft { content: fingerprint(&event), event, remembered_as: None };
    Ok(drafts.into_iter().map(draft).collect())
}

fn check_count(count: usize) -> Result<(), ApiError> {
    match count {
        1..=EVENTS_MAX => Ok(()),
        _ => {
            Err(ApiError::invalid("events", format!("{count} events came; 1 to {EVENTS_MAX} are allowed in one call")))
        }
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
    let Draft { event, content, remembered_as } = draft;
    let mut draft: EventDraft = serde_json::from_value(event).map_err(|error| named(ApiError::body(&error)))?;
    let name = draft.id.take();
    if let Some(name) = &name
        && !(1..=BROUGHT_MAX).contains(&name.chars().count())
    {
        return Err(named(ApiError::invalid("id", format!("must have 1 to {BROUGHT_MAX} characters"))));
    }
    if draft.conversation_id.is_none() && draft.user_id.is_none() {
        draft.conversation_id = identity.caller.conversation_id.clone();
    }
    if draft.conversation_id.is_none() && draft.user_id.is_none() {
        let message = "is missing; an event needs conversation_id or user_id";
        return Err(named(ApiError::invalid("conversation_id", message)));
    }
    let event = draft.admit(now, &mut Ids::seeded(0)).map_err(|invalid| named(invalid.into()))?;
    let brought = name.clone().or(remembered_as).map(|id| Brought { id, content });
    Ok((name, Incoming { event: event.correlated(&correlation.id), brought }))
}

/// A hash of an event as it came; key order does not matter. It only compares what one sender sent twice.
fn fingerprint(draft: &Value) -> [u8; 16] {
    let mut hasher = SipHasher13::new();
    hasher.write(bellwire_core::event::canonical_json(draft).as_bytes());
    hasher.finish128().as_u128().to_le_bytes()
}

fn receipt_json(receipt: &Receipt, name: Option<String>) -> Value {
    let id = name.unwrap_or_else(|| receipt.event_id.to_string());
    json!({ "id": id, "filtered": receipt.filtered, "verdicts": receipt.verdicts })
}

fn trace_json(trace: &Trace) -> Value {
    let event = &trace.event;
    let payload: Value = serde_json::from_str(&event.payload).unwrap_or(Value::Null);
    let notifications: Vec<Value> = trace
        .notifications
        .iter()
        .map(|one| {
            json!({
                "id": one.id.0, "subscriber": one.subscriber_id, "conversation_id": one.conversation_id,
                "agent": one.agent, "priority": one.priority, "inject_at": one.inject_at, "state": one.state,
                "reason": one.reason, "content": one.content, "call_id": one.call_id,
                "created_at": one.created_at.to_string(), "ended_at": one.ended_at.map(|at| at.to_string()),
            })
        })
        .collect();
    json!({
        "id": event.id.0, "type": event.kind, "source": event.source, "severity": event.severity,
        "timestamp": event.timestamp.to_string(), "payload": payload, "dedupe_key": event.dedupe_key,
        "conversation_id": event.conversation_id, "agent": event.agent, "user_id": event.user_id,
        "correlation_id": event.correlation_id, "accepted_at": trace.accepted_at.to_string(),
        "filtered": trace.filtered, "verdicts": trace.verdicts, "notifications": notifications,
    })
}
