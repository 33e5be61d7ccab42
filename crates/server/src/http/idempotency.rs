//! A call that is sent again because its answer was lost must not happen again: `Idempotency-IdempotencyHeader`.
//!
//! The key belongs to one token and one path. The store remembers it in the commit that carries the call out, so a crash
//! between the two is impossible.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderName};
use bellwire_store::IdempotencyKey;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::ApiError;
use super::body::{self, Body};
use super::intake;
use super::shape::HandlerArgument;
use crate::auth::Identity;

static HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const KEY_MAX: usize = 255;

/// A JSON body, and the caller's name for sending it.
pub(super) struct IdempotentBody<T> {
    pub(super) once: Option<IdempotencyKey>,
    pub(super) body: T,
}

/// A caller's name for a call without a body.
pub(super) struct IdempotencyHeader(pub(super) Option<IdempotencyKey>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for IdempotentBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let once = idempotency_key_of(&request)?;
        body::check_json(request.headers())?;
        let (_, bytes) = intake::whole(request).await?;
        Ok(Self { once: once.map(|once| once.of(&bytes)), body: body::read_object(&bytes)? })
    }
}

impl<S: Send + Sync> FromRequest<S> for IdempotencyHeader {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let once = idempotency_key_of(&request)?;
        let (_, bytes) = intake::whole(request).await?;
        Ok(Self(once.map(|once| once.of(&bytes))))
    }
}

impl<T: JsonSchema> HandlerArgument for IdempotentBody<T> {
    type Request = Body<T>;
}
impl HandlerArgument for IdempotencyHeader {
    type Request = ();
}

/// A call's name before its body was read.
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

/// The name a caller gave its call, if it gave one.
pub(super) fn idempotency_key_of(request: &Request) -> Result<Option<UnhashedKey>, ApiError> {
    let Some(key) = key_of(request.headers())? else { return Ok(None) };
    let identity = request.extensions().get::<Arc<Identity>>();
    let route = || format!("{} {}", request.method(), request.uri());
    Ok(identity.map(|identity| UnhashedKey { token_id: identity.token_id.clone(), route: route(), key }))
}

/// The key itself, where a call is remembered by something else than its body.
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
