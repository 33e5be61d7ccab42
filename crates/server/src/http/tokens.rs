use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::Time;
use bellwire_store::Token;
use serde::Deserialize;
use serde_json::{Value, json};

use super::conversations::check_length;
use super::idempotency::Keyed;
use super::{ApiError, Hub};
use crate::auth::{Identity, Scope, new_secret};
use crate::clock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    scope: String,
    name: Option<String>,
    user_id: Option<String>,
    origin: Option<String>,
    conversation_id: Option<String>,
    expires_at: Option<String>,
}

/// Makes a token. Its secret is shown now and never again.
pub(super) async fn create(
    State(hub): State<Hub>,
    Keyed { once, body }: Keyed,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let create: Create = serde_json::from_slice(&body).map_err(|error| ApiError::body(&error))?;
    let (secret, secret_hash) = new_secret();
    let token = create.into_token(secret_hash)?;
    match once {
        Some(once) => hub.store.put_token_once(token.clone(), once).await?,
        None => hub.store.put_token(token.clone()).await?,
    }
    tracing::info!(token = token.id, scope = token.scope, "a token was made");
    let mut answer = token_json(&token);
    answer["token"] = secret.into();
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Every token, without secrets.
pub(super) async fn list(State(hub): State<Hub>) -> Result<Json<Value>, ApiError> {
    let items: Vec<Value> = hub.store.tokens().await?.iter().map(token_json).collect();
    Ok(Json(json!({ "items": items, "next_cursor": null })))
}

/// Revokes a token at once; its streams end.
pub(super) async fn revoke(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let tokens = hub.store.tokens().await?;
    let token = tokens.into_iter().find(|token| token.id == id).ok_or_else(|| ApiError::not_found("token"))?;
    if token.id == identity.token_id {
        let message = "a token cannot revoke itself; use another";
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    }
    hub.store.put_token(Token { revoked_at: Some(token.revoked_at.unwrap_or_else(clock::now)), ..token }).await?;
    hub.tokens.forget();
    // Nobody listening is fine: then no stream is open.
    let _ = hub.revoked.send(id);
    Ok(StatusCode::NO_CONTENT)
}

impl Create {
    fn into_token(self, secret_hash: Vec<u8>) -> Result<Token, ApiError> {
        let scope = Scope::parse(&self.scope)
            .ok_or_else(|| ApiError::invalid("scope", "must be one of: admin, agent, user, ingest, daemon"))?;
        for (field, value) in [
            ("name", &self.name),
            ("user_id", &self.user_id),
            ("origin", &self.origin),
            ("conversation_id", &self.conversation_id),
        ] {
            value.as_deref().map_or(Ok(()), |text| check_length(field, text, 128))?;
        }
        match (scope, self.user_id.as_deref(), &self.origin) {
            (Scope::Agent, _, None) => return Err(ApiError::invalid("origin", "is missing; an agent has a name")),
            (Scope::Agent, None, _) => {
                return Err(ApiError::invalid(
                    "user_id",
                    "is missing; bind the agent to a person, or to \"*\" for all",
                ));
            }
            (Scope::User, None | Some("*"), _) => {
                return Err(ApiError::invalid("user_id", "is missing; a person's token is bound to that person"));
            }
            _ => {}
        }
        let parse =
            |text: String| text.parse::<Time>().map_err(|error| ApiError::invalid("expires_at", error.to_string()));
        Ok(Token {
            id: uuid::Builder::from_random_bytes(clock::random()).into_uuid().to_string(),
            secret_hash,
            scope: self.scope,
            name: self.name,
            user_id: self.user_id,
            origin: self.origin,
            conversation_id: self.conversation_id,
            created_at: clock::now(),
            expires_at: self.expires_at.map(parse).transpose()?,
            revoked_at: None,
        })
    }
}

fn token_json(token: &Token) -> Value {
    json!({
        "id": token.id, "scope": token.scope, "name": token.name, "user_id": token.user_id, "origin": token.origin,
        "conversation_id": token.conversation_id, "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|at| at.to_string()),
        "revoked_at": token.revoked_at.map(|at| at.to_string()),
    })
}
