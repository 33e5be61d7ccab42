//! `GET /v1/events`: the events that the caller may see, by filters.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellwire_core::event::TypePattern;
use bellwire_core::verdict::VerdictKind;
use bellwire_core::{EventId, Severity};
use bellwire_store::{EventFilter, EventQuery, ListedEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::field::{EnumText, ID_MAX, QueryTime, Rfc3339Time, SingleLineText};
use super::inbox::cursor;
use super::query::{PageLimit, Query};
use super::shape::List;
use super::trace::VerdictBody;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// The query of `GET /v1/events`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventPage {
    /// Only events of this person.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// Only events that were sent to this conversation, or reached it through its person.
    conversation_id: Option<SingleLineText<ID_MAX>>,
    /// Only this type. `tool.*` is every type below `tool`; any other `*` stands for one part.
    #[serde(rename = "type")]
    types: Option<SingleLineText<ID_MAX>>,
    /// Only events that the hub accepted at this time or later.
    since: Option<QueryTime>,
    /// Only events on which a subscriber decided so.
    verdict: Option<EnumText<VerdictKind>>,
    /// The page size. Default: 20. A page with a `next_cursor` can have fewer events, or none: a page
    /// reads at most 5,000 stored events and returns at most 1 MiB.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
}

/// A stored event with its verdicts. `GET /v1/events/{id}` also has what became of its notifications.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListedEvent")]
pub(super) struct ListedEventBody {
    /// The hub's id of the event.
    id: Uuid,
    /// What happened.
    #[serde(rename = "type")]
    kind: String,
    /// The component it came from.
    source: String,
    /// How severe it is.
    severity: EnumText<Severity>,
    /// When it happened, as its sender says.
    timestamp: Rfc3339Time,
    /// Its data.
    #[schemars(with = "serde_json::Map<String, Value>")]
    payload: Value,
    /// Events with the same key are duplicates.
    dedupe_key: Option<String>,
    /// The conversation it was sent to; null if it was sent to a person.
    conversation_id: Option<String>,
    /// The agent it was sent to.
    agent: String,
    /// The person it belongs to.
    user_id: String,
    /// The correlation id of the request that published it.
    correlation_id: Option<String>,
    /// When the hub accepted it.
    accepted_at: Rfc3339Time,
    /// How many subscribers do not listen for its type.
    filtered: u32,
    /// The decision of each listening subscriber. With `conversation_id` only those of that conversation and of its person.
    verdicts: Vec<VerdictBody>,
}

/// Lists events, newest first: those of the token's user, or all for a token that may act for every user.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(page): Query<EventPage>,
) -> Result<Json<List<ListedEventBody>>, ApiError> {
    let user_id = page.user_id.map(|user| user.0);
    user_id.as_deref().map_or(Ok(()), |user| identity.check_user(user))?;
    let types = page.types.map(|text| TypePattern::parse(&text.0)).transpose();
    let filter = EventFilter {
        conversation_id: page.conversation_id.map(|id| id.0),
        types: types.map_err(|invalid| ApiError::invalid("type", invalid.message))?,
        since: page.since.map(|since| since.0),
        verdict: page.verdict.map(|verdict| verdict.0),
    };
    let before = page.cursor.as_deref().map(cursor).transpose()?.map(EventId);
    let query = EventQuery { user_id, filter, before, limit: page.limit.unwrap_or_default().0 };
    let (events, next) = hub.store.events(identity.caller.clone(), query).await?;
    let items = events.into_iter().map(ListedEventBody::from).collect();
    Ok(Json(List { items, next_cursor: next.map(|next| next.to_string()) }))
}

impl From<ListedEvent> for ListedEventBody {
    fn from(listed: ListedEvent) -> Self {
        let event = listed.event;
        Self {
            id: event.id.0,
            kind: event.kind,
            source: event.source,
            severity: EnumText(event.severity),
            timestamp: Rfc3339Time(event.timestamp),
            payload: serde_json::from_str(&event.payload).unwrap_or(Value::Null),
            dedupe_key: event.dedupe_key,
            conversation_id: event.conversation_id,
            agent: event.agent,
            user_id: listed.owner,
            correlation_id: event.correlation_id,
            accepted_at: Rfc3339Time(listed.accepted_at),
            filtered: listed.filtered,
            verdicts: listed.verdicts.into_iter().map(VerdictBody::from).collect(),
        }
    }
}
