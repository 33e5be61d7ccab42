//! The header `Idempotency-Key`: a request repeated after a lost response is carried out once.
//!
//! A key is scoped to one token, method and URL. The store writes it in the same transaction as the request's effect, so
//! that a crash cannot separate the two.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::{HeaderMap, HeaderName};
use bellwire_store::IdempotencyKey;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::ApiError;
use super::body::{self, Body};
use super::intake;
use super::query::Query;
use super::shape::HandlerArgument;
use crate::auth::Identity;

static HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const KEY_MAX: usize = 255;

/// A JSON body with the request's idempotency key.
pub(super) struct IdempotentBody<T> {
    pub(super) idempotency_key: Option<IdempotencyKey>,
    pub(super) body: T,
}

/// A query with the request's idempotency key.
pub(super) struct IdempotentQuery<T> {
    pub(super) idempotency_key: Option<IdempotencyKey>,
    pub(super) query: T,
}

/// The idempotency key of a request without a JSON body.
pub(super) struct IdempotencyHeader(pub(super) Option<IdempotencyKey>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for IdempotentBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let key = idempotency_key_of(&request)?;
        body::check_json(request.headers())?;
        let (_, bytes) = intake::whole(request).await?;
        Ok(Self { idempotency_key: key.map(|key| key.of(&bytes)), body: body::read_object(&bytes)? })
    }
}

impl<S: Send + Sync> FromRequest<S> for IdempotencyHeader {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let key = idempotency_key_of(&request)?;
        let (_, bytes) = intake::whole(request).await?;
        Ok(Self(key.map(|key| key.of(&bytes))))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequest<S> for IdempotentQuery<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let Query(query) = Query::from_request_parts(&mut parts, state).await?;
        let key = IdempotencyHeader::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self { idempotency_key: key.0, query })
    }
}

impl<T: JsonSchema> HandlerArgument for IdempotentQuery<T> {
    type Request = Query<T>;
}
impl<T: JsonSchema> HandlerArgument for IdempotentBody<T> {
    type Request = Body<T>;
}
impl HandlerArgument for IdempotencyHeader {
    type Request = ();
}

/// An idempotency key before the body is read and hashed.
pub(super) struct UnhashedKey {
    token_id: String,
    route: String,
    key: String,
}

impl UnhashedKey {
    pub(super) fn of(self, body: &[u8]) -> IdempotencyKey {
        let content = Sha256::digest(body).into();
        IdempotencyKey { token_id: self.token_id, route: self.route, key: self.key, content }
    }
}

/// The request's idempotency key, if it has one.
pub(super) fn idempotency_key_of(request: &Request) -> Result<Option<UnhashedKey>, ApiError> {
    let Some(key) = key_of(request.headers())? else { return Ok(None) };
    let identity = request.extensions().get::<Arc<Identity>>();
    let route = || format!("{} {}", request.method(), request.uri());
    Ok(identity.map(|identity| UnhashedKey { token_id: identity.token_id.clone(), route: route(), key }))
}

/// The header's value, for requests that are compared by something else than their body.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(&HEADER).iter();
    let key = values.next().map(|value| parse(value.as_bytes())).transpose()?;
    match values.next() {
        None => Ok(key),
        Some(_) => Err(ApiError::invalid("Idempotency-Key", "is there twice; send it once")),
    }
}

fn parse(value: &[u8]) -> Result<String, ApiError> {
    let text = std::str::from_utf8(value).ok();
    text.filter(|text| (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()))
        .map(str::to_owned)
        .ok_or_else(|| ApiError::invalid("Idempotency-Key", format!("must be 1 to {KEY_MAX} visible ASCII characters")))
}
