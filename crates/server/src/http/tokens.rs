use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::event::RESERVED_NAMES;
use bellwire_core::person::visible_name;
use bellwire_store::Token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::field::{EnumText, ID_MAX, NOT_BLANK, PathId, Rfc3339Time, SingleLineText};
use super::idempotency::IdempotentBody;
use super::shape::{Created, List, NoContent};
use super::{ApiError, Hub};
use crate::auth::{Identity, Scope, new_secret, reserved_origin};
use crate::clock;

/// Origins reserved for tokens of scope `daemon`.
const DAEMONS: [&str; 2] = ["switchboard", "messenger"];

/// A token to create. An `agent` token has an origin and a person (or `*`); a `user` token has a person; `admin` and
/// `daemon` tokens are bound to no person.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "scope": "agent", "user_id": "ada", "origin": "butler", "name": "laptop" }]))]
#[schemars(extend("anyOf" = [
    {
        "properties": {
            "scope": { "enum": ["admin", "daemon"] }, "user_id": { "type": "null" },
            "conversation_id": { "type": "null" },
        },
    },
    { "properties": { "scope": { "const": "ingest" } } },
    {
        "properties": {
            "scope": { "const": "agent" }, "user_id": { "type": "string" },
            "origin": { "type": "string", "pattern": NOT_BLANK, "not": { "enum": RESERVED_NAMES } },
        },
        "required": ["origin", "user_id"],
    },
    {
        "properties": {
            "scope": { "const": "user" }, "user_id": { "type": "string", "not": { "const": "*" } },
            "conversation_id": { "type": "null" },
        },
        "required": ["user_id"],
    },
]))]
pub(super) struct NewToken {
    /// The scope.
    scope: EnumText<Scope>,
    /// A label for people.
    name: Option<SingleLineText<128>>,
    /// The person it is bound to; `*` = every person. Not for `admin` and `daemon`.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// The authenticated name that people see as the sender. `bellwire`, `operator`, `user`, `switchboard` and
    /// `messenger` are reserved in upper and lower case; the last two are for `daemon`. The events of an `ingest` token
    /// without an origin reach no person.
    origin: Option<SingleLineText<128>>,
    /// The conversation it is bound to. Only for `agent` and `ingest`.
    conversation_id: Option<SingleLineText<ID_MAX>>,
    /// When it expires, a time in the future. Default: never.
    expires_at: Option<Rfc3339Time>,
}

/// A token without its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Token")]
pub(super) struct TokenView {
    /// Its id.
    id: String,
    /// The scope.
    #[schemars(with = "EnumText<Scope>")]
    scope: String,
    /// A label for people.
    name: Option<String>,
    /// The person it is bound to; `*` = every person.
    user_id: Option<String>,
    /// The authenticated name that people see as the sender.
    origin: Option<String>,
    /// The conversation it is bound to.
    conversation_id: Option<String>,
    /// When it was created.
    created_at: Rfc3339Time,
    /// When it expires.
    expires_at: Option<Rfc3339Time>,
    /// When it was revoked.
    revoked_at: Option<Rfc3339Time>,
}

/// A token with its secret, which is shown only once.
#[derive(Serialize, JsonSchema)]
pub(super) struct CreatedToken {
    /// The secret.
    #[schemars(pattern(r"^bw_[0-9a-f]{64}$"))]
    token: String,
    #[serde(flatten)]
    view: TokenView,
}

/// The token of the request: what it may do, and what it is bound to.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OwnToken")]
pub(super) struct OwnToken {
    /// Its id.
    id: String,
    /// The scope.
    scope: EnumText<Scope>,
    /// The person it is bound to, or who is signed in; null if it is bound to no one person.
    user_id: Option<String>,
    /// The conversation it is bound to.
    conversation_id: Option<String>,
    /// The authenticated name that people see as the sender.
    origin: Option<String>,
    /// When it expires.
    expires_at: Option<Rfc3339Time>,
}

/// The caller's own token, so that a client learns whose it is.
pub(super) async fn current(Extension(identity): Extension<Arc<Identity>>) -> Result<Json<OwnToken>, ApiError> {
    Ok(Json(OwnToken {
        id: identity.token_id.clone(),
        scope: EnumText(identity.scope),
        user_id: identity.person().map(str::to_owned),
        conversation_id: identity.caller.conversation_id.clone(),
        origin: identity.origin.clone(),
        expires_at: identity.expires_at.map(Rfc3339Time),
    }))
}

/// Creates a token. Only this response contains its secret.
pub(super) async fn create(
    State(hub): State<Hub>,
    IdempotentBody { idempotency_key, body: new }: IdempotentBody<NewToken>,
) -> Result<Created<CreatedToken>, ApiError> {
    let (secret, secret_hash) = new_secret();
    let token = new.into_token(secret_hash)?;
    match idempotency_key {
        Some(idempotency_key) => hub.store.put_token_once(token.clone(), idempotency_key).await?,
        None => hub.store.put_token(token.clone()).await?,
    }
    tracing::info!(token = token.id, scope = token.scope, "a token was made");
    Ok(Created(CreatedToken { token: secret, view: token.into() }))
}

/// Lists all tokens, without secrets.
pub(super) async fn list(State(hub): State<Hub>) -> Result<Json<List<TokenView>>, ApiError> {
    Ok(Json(List::whole(hub.store.tokens().await?.into_iter().map(TokenView::from).collect())))
}

/// Revokes a token and ends its open streams.
pub(super) async fn revoke(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<NoContent, ApiError> {
    let tokens = hub.store.tokens().await?;
    let token = tokens.into_iter().find(|token| token.id == id).ok_or_else(|| ApiError::not_found("token"))?;
    if token.id == identity.token_id {
        let message = "a token cannot revoke itself; use another";
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    }
    hub.store.put_token(Token { revoked_at: Some(token.revoked_at.unwrap_or_else(clock::now)), ..token }).await?;
    hub.tokens.forget();
    // Sending fails only if no stream is open.
    let _ = hub.revoked.send(id);
    Ok(NoContent)
}

impl NewToken {
    fn into_token(self, secret_hash: Vec<u8>) -> Result<Token, ApiError> {
        self.check_binding()?;
        if self.expires_at.is_some_and(|end| end.0 <= clock::now()) {
            return Err(ApiError::invalid("expires_at", "has passed; name a moment to come, or leave it out"));
        }
        Ok(Token {
            id: uuid::Builder::from_random_bytes(clock::random()).into_uuid().to_string(),
            secret_hash,
            scope: self.scope.0.as_str().to_owned(),
            name: self.name.map(|line| line.0),
            user_id: self.user_id.map(|line| line.0),
            origin: self.origin.map(|line| line.0),
            conversation_id: self.conversation_id.map(|line| line.0),
            created_at: clock::now(),
            expires_at: self.expires_at.map(|moment| moment.0),
            revoked_at: None,
        })
    }

    /// Checks that the fields the scope needs are there, and refuses fields that the scope would ignore: a token that looks
    /// bound to a user or conversation must be.
    fn check_binding(&self) -> Result<(), ApiError> {
        let scope = self.scope.0;
        let user = self.user_id.as_ref().map(|user| user.0.as_str());
        let not_binding = |field: &str| {
            ApiError::invalid(field, format!("does not bind a token of scope {}; leave it out", scope.as_str()))
        };
        match (scope, user, &self.origin) {
            (Scope::Agent, _, None) => return Err(ApiError::invalid("origin", "is missing; an agent has a name")),
            (Scope::Agent, None, _) => {
                let message = "is missing; bind the agent to a person, or to \"*\" for all";
                return Err(ApiError::invalid("user_id", message));
            }
            (_, _, Some(origin)) => check_origin(&origin.0, scope)?,
            (Scope::User, None | Some("*"), _) => {
                return Err(ApiError::invalid("user_id", "is missing; a person's token is bound to that person"));
            }
            (Scope::Admin | Scope::Daemon, Some(_), _) => return Err(not_binding("user_id")),
            _ => {}
        }
        match self.conversation_id.is_some() && !matches!(scope, Scope::Agent | Scope::Ingest) {
            true => Err(not_binding("conversation_id")),
            false => Ok(()),
        }
    }
}

/// Refuses reserved origins, compared as people see them; see `reserved_origin`.
fn check_origin(origin: &str, scope: Scope) -> Result<(), ApiError> {
    let seen = visible_name(origin);
    if seen.is_empty() {
        return Err(ApiError::invalid("origin", "is blank; name who it is"));
    }
    match reserved_origin(origin) {
        Some(name) if !(scope == Scope::Daemon && DAEMONS.contains(&name)) => {
            Err(ApiError::invalid("origin", format!("is '{seen}', which is reserved; choose another name")))
        }
        _ => Ok(()),
    }
}

impl From<Token> for TokenView {
    fn from(token: Token) -> Self {
        Self {
            id: token.id,
            scope: token.scope,
            name: token.name,
            user_id: token.user_id,
            origin: token.origin,
            conversation_id: token.conversation_id,
            created_at: Rfc3339Time(token.created_at),
            expires_at: token.expires_at.map(Rfc3339Time),
            revoked_at: token.revoked_at.map(Rfc3339Time),
        }
    }
}
