//! A call that is sent again because its answer was lost must not happen again: `Idempotency-Key`.
//!
//! The key belongs to one token and one path. The store remembers it in the commit that carries the call out, so a crash
//! between the two is impossible.

use axum::extract::{FromRequest, Request};
use bellwire_store::Once;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::ApiError;
use super::body::{self, Body};
use super::shape::Argument;
use crate::auth::Identity;

const HEADER: &str = "idempotency-key";
const KEY_MAX: usize = 255;

/// A JSON body, and the caller's name for sending it.
pub(super) struct Keyed<T> {
    pub(super) once: Option<Once>,
    pub(super) body: T,
}

/// A caller's name for a call without a body.
pub(super) struct Key(pub(super) Option<Once>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Keyed<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let once = once_of(&request)?;
        body::check_json(request.headers())?;
        let bytes = body::bytes(request, state).await?;
        Ok(Self { once: once.map(|once| once.of(&bytes)), body: body::read_object(&bytes)? })
    }
}

impl<S: Send + Sync> FromRequest<S> for Key {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let once = once_of(&request)?;
        let bytes = body::bytes(request, state).await?;
        Ok(Self(once.map(|once| once.of(&bytes))))
    }
}

impl<T: JsonSchema> Argument for Keyed<T> {
    type Request = Body<T>;
}
impl Argument for Key {
    type Request = ();
}

/// A call's name before its body was read.
pub(super) struct Unread {
    token_id: String,
    route: String,
    key: String,
}

impl Unread {
    pub(super) fn of(self, body: &[u8]) -> Once {
        let content = Sha256::digest(body).into();
        Once { token_id: self.token_id, route: self.route, key: self.key, content }
    }
}

/// The name a caller gave its call, if it gave one.
pub(super) fn once_of(request: &Request) -> Result<Option<Unread>, ApiError> {
    let key = request.headers().get(HEADER).map(|value| parse(value.as_bytes())).transpose()?;
    let token_id = request.extensions().get::<Identity>().map(|identity| identity.token_id.clone());
    let route = || format!("{} {}", request.method(), request.uri().path());
    Ok(key.zip(token_id).map(|(key, token_id)| Unread { token_id, route: route(), key }))
}

fn parse(value: &[u8]) -> Result<String, ApiError> {
    let text = std::str::from_utf8(value).ok();
    text.filter(|text| (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()))
        .map(str::to_owned)
        .ok_or_else(|| ApiError::invalid("Idempotency-Key", format!("must be 1 to {KEY_MAX} visible ASCII characters")))
}
