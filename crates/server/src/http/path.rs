//! Paths with more than one name in them.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use bellwire_core::NotificationId;
use uuid::Uuid;

use super::ApiError;
use super::field::{ID_MAX, Line};
use super::shape::Argument;

/// A notification of a person: `/v1/users/{id}/notifications/{nid}`.
pub(super) struct ItemPath {
    pub(super) user_id: String,
    pub(super) id: NotificationId,
}

/// A button of a notification of a person.
pub(super) struct ButtonPath {
    pub(super) item: ItemPath,
    pub(super) index: usize,
}

/// Something that only the hub names.
pub(super) struct Name(pub(super) Uuid);

/// The signed part of a link. It has the length it has.
pub(super) struct Signed(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Signed {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(signed)| Self(signed)).map_err(|_| ApiError::not_found("link"))
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

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| not_utf8())?;
        // What is no name of ours names nothing.
        Uuid::try_parse(&name).map(Self).map_err(|_| ApiError::not_found("id"))
    }
}

impl ItemPath {
    fn of(user_id: String, id: &str) -> Result<Self, ApiError> {
        let user = Line::<ID_MAX>::check(user_id).map_err(|message| ApiError::invalid("id", message))?;
        let id = Uuid::try_parse(id).map_err(|_| ApiError::not_found("notification"))?;
        Ok(Self { user_id: user.0, id: NotificationId(id) })
    }
}

fn not_utf8() -> ApiError {
    ApiError::invalid("id", "is not UTF-8; percent-encode the id as it was given")
}

impl Argument for ItemPath {
    type Request = ();
}
impl Argument for ButtonPath {
    type Request = ();
}
impl Argument for Signed {
    type Request = ();
}
impl Argument for Name {
    type Request = ();
}
