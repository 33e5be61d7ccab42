//! `GET /v1/events`: the events that the caller may see, by filters.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellwire_core::EventId;
use bellwire_core::event::TypePattern;
use bellwire_core::verdict::VerdictKind;
use bellwire_store::{EventFilter, EventQuery, ListedEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::field::{EnumText, ID_MAX, QueryTime, SingleLineText};
use super::inbox::cursor;
use super::query::{PageLimit, Query};
use super::shape::List;
use super::stored_event::StoredEventBody;
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
    #[serde(flatten)]
    event: StoredEventBody,
    /// The person it belongs to.
    user_id: String,
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
        Self {
            event: StoredEventBody::new(listed.event, listed.accepted_at, listed.filtered),
            user_id: listed.owner,
            verdicts: listed.verdicts.into_iter().map(VerdictBody::from).collect(),
        }
    }
}
