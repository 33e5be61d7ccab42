//! Extractors for path parameters.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use bellwire_core::NotificationId;
use uuid::Uuid;

use super::ApiError;
use super::field::{ID_MAX, PathId, SingleLineText};
use super::query::Query;
use super::shape::HandlerArgument;
use crate::auth::Identity;

/// A notification of a person: `/v1/users/{id}/notifications/{nid}`.
pub(super) struct ItemPath {
    pub(super) user_id: String,
    pub(super) id: NotificationId,
}

/// A button of a notification: `/v1/users/{id}/notifications/{nid}/actions/{index}`.
pub(super) struct ButtonPath {
    pub(super) item: ItemPath,
    pub(super) index: usize,
}

/// A channel of a person: `/v1/users/{id}/{channel}/…`.
pub(super) struct ChannelPath {
    pub(super) user_id: String,
    pub(super) channel: String,
}

/// A channel of the hub: `/v1/{channel}/…`.
pub(super) struct PathChannel(pub(super) String);

/// A conversation: `/v1/conversations/{id}`, with its owner in `?user_id=`. A token that may act for every user needs the
/// parameter if several users have a conversation of the same id. `identity` is then restricted to that owner.
pub(super) struct ConversationPath {
    pub(super) identity: Identity,
    pub(super) id: String,
}

/// The query parameter with the conversation's owner.
pub(super) const OWNER: &str = "user_id";

/// An id that the hub generates: of a reminder or a delivery.
pub(super) struct PathUuid(pub(super) Uuid);

/// The signed part of an unsubscribe link. It may be longer than an id.
pub(super) struct SignedPath(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for SignedPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(signed)| Self(signed)).map_err(|_| ApiError::not_found("link"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ConversationPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathId(id) = PathId::from_request_parts(parts, state).await?;
        let identity = parts
            .extensions
            .get::<Arc<Identity>>()
            .ok_or_else(|| ApiError::unauthorized("send a token: Authorization: Bearer bw_…"))?;
        let mut identity = Identity::clone(identity);
        let Query(query) = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await?;
        if let Some((_, owner)) = query.into_iter().find(|(name, _)| name == OWNER) {
            let owner = SingleLineText::<ID_MAX>::check(owner).map_err(|message| ApiError::invalid(OWNER, message))?.0;
            if identity.caller.user_id.as_ref().is_some_and(|own| *own != owner) {
                return Err(ApiError::not_found("conversation"));
            }
            identity.caller.user_id = Some(owner);
        }
        Ok(Self { identity, id })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ItemPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((user_id, id)) = path.map_err(|_| not_utf8())?;
        Self::of(user_id, &id)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ButtonPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<(String, String, String)>::from_request_parts(parts, state).await;
        let Path((user_id, id, index)) = path.map_err(|_| not_utf8())?;
        let index = index.parse().map_err(|_| ApiError::not_found("action"))?;
        Ok(Self { item: ItemPath::of(user_id, &id)?, index })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ChannelPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((user_id, channel)) = path.map_err(|_| not_utf8())?;
        let user = SingleLineText::<ID_MAX>::check(user_id).map_err(|message| ApiError::invalid("id", message))?;
        Ok(Self { user_id: user.0, channel })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathChannel {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(channel)| Self(channel)).map_err(|_| ApiError::not_found("channel"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathUuid {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(id) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| not_utf8())?;
        // An id that is not a UUID cannot exist, so the error is 404. Only these two routes use this extractor.
        let is_reminder = parts.uri.path().starts_with("/v1/reminders/");
        let what = if is_reminder { "reminder" } else { "delivery" };
        Uuid::try_parse(&id).map(Self).map_err(|_| ApiError::not_found(what))
    }
}

impl ItemPath {
    fn of(user_id: String, id: &str) -> Result<Self, ApiError> {
        let user = SingleLineText::<ID_MAX>::check(user_id).map_err(|message| ApiError::invalid("id", message))?;
        let id = Uuid::try_parse(id).map_err(|_| ApiError::not_found("notification"))?;
        Ok(Self { user_id: user.0, id: NotificationId(id) })
    }
}

fn not_utf8() -> ApiError {
    ApiError::invalid("id", "is not UTF-8; percent-encode the id as it was given")
}

impl HandlerArgument for ConversationPath {
    type Request = ();
}
impl HandlerArgument for ChannelPath {
    type Request = ();
}
impl HandlerArgument for PathChannel {
    type Request = ();
}
impl HandlerArgument for ItemPath {
    type Request = ();
}
impl HandlerArgument for ButtonPath {
    type Request = ();
}
impl HandlerArgument for SignedPath {
    type Request = ();
}
impl HandlerArgument for PathUuid {
    type Request = ();
}
