//! `GET /v1/conversations`: the conversations that the caller may see.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bellwire_core::Time;
use bellwire_store::{ConversationPosition, ConversationQuery, ListedConversation};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::conversations::ConversationBody;
use super::field::{ID_MAX, QueryTime, Rfc3339Time, SingleLineText};
use super::query::{PageLimit, Query};
use super::shape::List;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// The query of `GET /v1/conversations`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationPage {
    /// Only conversations of this person.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// Only conversations with this id: one for each person who has one. Not together with `since`.
    conversation_id: Option<SingleLineText<ID_MAX>>,
    /// Only conversations that were used at this time or later.
    since: Option<QueryTime>,
    /// The page size. Default: 20.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    #[schemars(pattern(r"^[A-Za-z0-9_-]+$"))]
    cursor: Option<String>,
    /// A filter of `GET /v1/events` that is refused here by name.
    #[serde(rename = "type")]
    #[schemars(skip)]
    types: Option<IgnoredAny>,
    /// The same.
    #[schemars(skip)]
    verdict: Option<IgnoredAny>,
}

/// A conversation, with the times of its use.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListedConversation")]
pub(super) struct ListedConversationBody {
    #[serde(flatten)]
    conversation: ConversationBody,
    /// When it was created.
    created_at: Rfc3339Time,
    /// When an injection, a stream or a PUT last used it, to the minute; `created_at` if none did.
    last_used_at: Rfc3339Time,
}

/// Lists conversations, the most recently used first: those of the token's user, or all for a token that may act for
/// every user.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(page): Query<ConversationPage>,
) -> Result<Json<List<ListedConversationBody>>, ApiError> {
    page.check_filters()?;
    let user_id = page.user_id.map(|user| user.0);
    user_id.as_deref().map_or(Ok(()), |user| identity.check_user(user))?;
    let query = ConversationQuery {
        user_id,
        conversation_id: page.conversation_id.map(|id| id.0),
        since: page.since.map(|since| since.0),
        after: page.cursor.as_deref().map(position).transpose()?,
        limit: page.limit.unwrap_or_default().0,
    };
    let (conversations, next) = hub.store.conversations(identity.caller.clone(), query).await?;
    let items = conversations.into_iter().map(ListedConversationBody::from).collect();
    Ok(Json(List { items, next_cursor: next.as_ref().map(cursor) }))
}

impl ConversationPage {
    fn check_filters(&self) -> Result<(), ApiError> {
        let (field, message) = match self {
            Self { types: Some(_), .. } => ("type", "conversations have no type; GET /v1/events lists events by type"),
            Self { verdict: Some(_), .. } => {
                ("verdict", "conversations have no verdict; GET /v1/events lists events by verdict")
            }
            Self { since: Some(_), conversation_id: Some(_), .. } => {
                ("since", "cannot be combined with conversation_id; leave one of them out")
            }
            _ => return Ok(()),
        };
        Err(ApiError { status: StatusCode::UNPROCESSABLE_ENTITY, ..ApiError::invalid(field, message) })
    }
}

/// A position as an opaque text.
fn cursor(position: &ConversationPosition) -> String {
    let parts = (position.last_used_at.as_millis(), &position.user_id, &position.id);
    BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&parts).expect("a tuple of texts serializes to JSON"))
}

fn position(cursor: &str) -> Result<ConversationPosition, ApiError> {
    let parse = || {
        let json = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (millis, user_id, id) = serde_json::from_slice::<(i64, String, String)>(&json).ok()?;
        Some(ConversationPosition { last_used_at: Time::from_millis(millis), user_id, id })
    };
    parse().ok_or_else(|| ApiError::invalid("cursor", "is not a next_cursor of this list; send one unchanged"))
}

impl From<ListedConversation> for ListedConversationBody {
    fn from(listed: ListedConversation) -> Self {
        Self {
            conversation: listed.view.into(),
            created_at: Rfc3339Time(listed.created_at),
            last_used_at: Rfc3339Time(listed.last_used_at),
        }
    }
}
