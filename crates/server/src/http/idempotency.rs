//! A call that is sent again because its answer was lost must not happen again: `Idempotency-Key`.
//!
//! The key belongs to one token and one path. The store remembers it in the commit that carries the call out, so a crash
//! between the two is impossible.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use bellwire_store::Once;
use sha2::{Digest as _, Sha256};

use super::ApiError;
use crate::auth::Identity;

const HEADER: &str = "idempotency-key";
const KEY_MAX: usize = 255;

/// A body, and the caller's name for sending it.
pub(super) struct Keyed {
    pub(super) once: Option<Once>,
    pub(super) body: Bytes,
}

impl<S: Send + Sync> FromRequest<S> for Keyed {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let key = request.headers().get(HEADER).map(|value| parse(value.as_bytes())).transpose()?;
        let token_id = request.extensions().get::<Identity>().map(|identity| identity.token_id.clone());
        let route = format!("{} {}", request.method(), request.uri().path());
        let body = Bytes::from_request(request, state).await.map_err(|rejection| ApiError::unreadable(&rejection))?;
        let once = key.zip(token_id).map(|(key, token_id)| {
            let content = Sha256::digest(&body).into();
            Once { token_id, route, key, content }
        });
        Ok(Self { once, body })
    }
}

fn parse(value: &[u8]) -> Result<String, ApiError> {
    let text = std::str::from_utf8(value).ok();
    text.filter(|text| (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()))
        .map(str::to_owned)
        .ok_or_else(|| ApiError::invalid("Idempotency-Key", format!("must be 1 to {KEY_MAX} visible ASCII characters")))
}
