//! Finds an event for an admin, who may name it by the id of any sender.

use axum::http::StatusCode;
use bellwire_store::{Caller, ErrorKind, NamedEvent, Trace};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::error::Conflict;
use super::field::Rfc3339Time;
use super::{ApiError, Hub};

/// The maximum number of events that an error lists.
const CANDIDATES_MAX: usize = 20;

/// An event that a sender published under the id that was asked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct EventCandidate {
    /// The hub's id of the event, which is unique.
    event_id: Uuid,
    /// The person it belongs to.
    user_id: String,
    /// The conversation it was for.
    conversation_id: Option<String>,
    /// The type.
    #[serde(rename = "type")]
    kind: String,
    /// When it was accepted.
    accepted_at: Rfc3339Time,
}

/// The trace of the event with this id: the hub's, or that of any sender. The hub's comes first: a sender must not be able
/// to hide another event by using its id. Several senders may have used one id; the error then lists their events.
pub(super) async fn trace_by_any_id(hub: &Hub, caller: &Caller, id: String) -> Result<Trace, ApiError> {
    // No sender has an empty name, so this finds events by the hub's id only.
    let caller = Caller { token_owner: String::new(), ..caller.clone() };
    let missing = match hub.store.trace(caller.clone(), id.clone()).await {
        Err(error) if error.kind == ErrorKind::NotFound => error,
        found => return Ok(found?),
    };
    let mut named = hub.store.events_named(id, CANDIDATES_MAX + 1).await?;
    match named.pop() {
        None => Err(missing.into()),
        Some(only) if named.is_empty() => Ok(hub.store.trace(caller, only.event_id.to_string()).await?),
        Some(last) => {
            named.push(last);
            Err(ambiguous(named))
        }
    }
}

fn ambiguous(mut named: Vec<NamedEvent>) -> ApiError {
    let more = if named.len() > CANDIDATES_MAX { "more than " } else { "" };
    named.truncate(CANDIDATES_MAX);
    let message = format!("{more}{} events have this id; ask with the event_id of the one you mean", named.len());
    let candidates = named.into_iter().map(EventCandidate::from).collect();
    let conflict = Some(Box::new(Conflict::Ambiguous(candidates)));
    ApiError { conflict, ..ApiError::new(StatusCode::CONFLICT, "conflict", message) }
}

impl From<NamedEvent> for EventCandidate {
    fn from(event: NamedEvent) -> Self {
        Self {
            event_id: event.event_id.0,
            user_id: event.owner,
            conversation_id: event.conversation_id,
            kind: event.kind,
            accepted_at: Rfc3339Time(event.accepted_at),
        }
    }
}
