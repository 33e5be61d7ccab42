use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_store::{SessionOwner, UNREAD_COUNTED_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::field::{ID_MAX, PathId, Rfc3339Time, SingleLineText};
use super::query::{PageLimit, Query};
use super::shape::{List, NoContent};
use super::{ApiError, Hub};
use crate::auth::{Identity, Scope};

/// The query of `GET /v1/users`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UserPage {
    /// Only people whose ids begin so.
    prefix: Option<SingleLineText<ID_MAX>>,
    /// The page size. Default: 20.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    cursor: Option<SingleLineText<ID_MAX>>,
}

/// A person of whom the hub has something: a conversation, an inbox, settings, a token or a session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "User")]
pub(super) struct UserBody {
    /// The id.
    id: String,
    /// When a conversation of the person was last seen: an injection, a stream or a PUT.
    last_seen_at: Option<Rfc3339Time>,
    /// How many notifications are unread, counted up to 100.
    #[schemars(range(max = UNREAD_COUNTED_MAX))]
    unread: usize,
}

/// Lists people by id.
pub(super) async fn list(
    State(hub): State<Hub>,
    Query(page): Query<UserPage>,
) -> Result<Json<List<UserBody>>, ApiError> {
    let prefix = page.prefix.map(|prefix| prefix.0).unwrap_or_default();
    let after = page.cursor.map(|cursor| cursor.0);
    let (people, next_cursor) = hub.store.people(prefix, after, page.limit.unwrap_or_default().0).await?;
    let body = |person: bellwire_store::KnownPerson| UserBody {
        id: person.id,
        last_seen_at: person.last_seen_at.map(Rfc3339Time),
        unread: person.unread,
    };
    Ok(Json(List { items: people.into_iter().map(body).collect(), next_cursor }))
}

/// Erases all data of a user and responds when it is gone. If that takes longer than `erase_wait`, the response is 503
/// and the erasure continues; a repeated request waits for the same erasure.
pub(super) async fn erase(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<NoContent, ApiError> {
    identity.check_user(&id)?;
    if id == "*" {
        return Err(ApiError::invalid("id", "is not a user id; in an agent's token * means every user"));
    }
    let wait = hub.erase_wait;
    // A separate task, so that it continues after the client disconnects.
    let erasing = tokio::spawn(erase_user(hub, id));
    match tokio::time::timeout(wait, erasing).await {
        Ok(Ok(erased)) => erased.map(|()| NoContent),
        Ok(Err(_)) => Err(ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR)),
        Err(_) => {
            let message = "the erasure is under way and goes on; ask again to learn when it is done";
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "try_again", message);
            Err(ApiError { retry_after_seconds: Some(1), ..error })
        }
    }
}

async fn erase_user(hub: Hub, id: String) -> Result<(), ApiError> {
    let tokens = hub.store.tokens().await?;
    let tokens = tokens.into_iter().filter(|token| token.user_id.as_ref() == Some(&id)).map(|token| token.id);
    let mut ended: Vec<String> = tokens.collect();
    for scope in [Scope::User, Scope::Admin] {
        let owner = SessionOwner { user_id: Some(id.clone()), scope: scope.as_str().to_owned() };
        // Refused while an earlier erasure goes on, which ends the sessions itself.
        ended.extend(hub.store.sessions(owner).await.unwrap_or_default().into_iter().map(|session| session.id));
    }
    hub.store.erase_user(id.clone()).await?;
    hub.tokens.forget();
    // End the streams of the user's tokens and sessions. Sending fails only if no stream is open.
    for id in ended {
        let _ = hub.revoked.send(id);
    }
    tracing::info!("a person was erased");
    Ok(())
}
