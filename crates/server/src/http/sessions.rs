//! Signing in: sign-in codes, sessions, and what a person sees of them.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bellwire_store::{NewSession, Session, SessionOwner};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::field::{EnumText, ID_MAX, PathId, Rfc3339Time, SingleLineText};
use super::shape::{Created, List, NoContent};
use super::{ApiError, Hub};
use crate::auth::{self, Identity, Scope, new_secret};
use crate::clock;
use crate::wrong_codes::Peer;

/// A sign-in code to create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "user_id": "ada" }]))]
pub(super) struct NewSignInCode {
    /// The person who signs in with it.
    user_id: SingleLineText<ID_MAX>,
    /// The scope of the session: `user` (the default) or `admin`.
    #[schemars(extend("enum" = ["user", "admin", null]))]
    scope: Option<EnumText<Scope>>,
}

/// A sign-in code, which is shown only once. It works once, for ten minutes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SignInCode")]
pub(super) struct SignInCodeBody {
    /// The code.
    #[schemars(pattern(r"^[A-Za-z0-9_-]{22}$"))]
    code: String,
    /// The scope of the session.
    scope: EnumText<Scope>,
    /// The person.
    user_id: String,
    /// When it expires.
    expires_at: Rfc3339Time,
    /// The address to open in a browser. Null without `server.public_url`: append `/sign-in#code=CODE` to the hub's address.
    link: Option<String>,
}

/// A code to exchange for a session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "code": "kZ3rF0m0Qd2vS5xW8yB1aA", "name": "Firefox on Linux" }]))]
pub(super) struct SignIn {
    /// The code of a sign-in link.
    code: SingleLineText<64>,
    /// A label by which the person recognizes the session in the list.
    name: Option<SingleLineText<128>>,
}

/// A new session with its token, which is shown only once.
#[derive(Serialize, JsonSchema)]
pub(super) struct OpenedSession {
    /// The token, for `Authorization: Bearer`.
    #[schemars(pattern(r"^bw_[0-9a-f]{64}$"))]
    token: String,
    /// The id of the session.
    id: String,
    /// The scope of the token.
    #[schemars(with = "EnumText<Scope>")]
    scope: String,
    /// The person who is signed in.
    user_id: String,
    /// When it expires. Seven days without a request or an open stream end it earlier.
    expires_at: Rfc3339Time,
}

/// A session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(super) struct SessionBody {
    /// Its id.
    id: String,
    /// The label.
    name: Option<String>,
    /// The scope of its token.
    #[schemars(with = "EnumText<Scope>")]
    scope: String,
    /// The person who is signed in.
    user_id: String,
    /// When the person signed in.
    created_at: Rfc3339Time,
    /// When it was used, to the hour.
    used_at: Rfc3339Time,
    /// When it expires. Seven days without a request or an open stream end it earlier.
    expires_at: Rfc3339Time,
    /// Whether it is the session of this request.
    current: bool,
}

/// Creates a sign-in code.
pub(super) async fn create_code(
    State(hub): State<Hub>,
    Body(new): Body<NewSignInCode>,
) -> Result<Created<SignInCodeBody>, ApiError> {
    let scope = new.scope.map_or(Scope::User, |scope| scope.0);
    if !matches!(scope, Scope::User | Scope::Admin) {
        return Err(ApiError::invalid("scope", format!("is {}; user or admin can sign in", scope.as_str())));
    }
    let user_id = new.user_id.0;
    if user_id == "*" {
        return Err(ApiError::invalid("user_id", "is '*'; a session is that of one person"));
    }
    let (code, expires_at) = auth::create_sign_in_code(&*hub.store, scope, &user_id).await?;
    tracing::info!(user = user_id, scope = scope.as_str(), "a sign-in code was made");
    let link = hub.public_url.as_ref().map(|url| format!("{url}{}", auth::sign_in_path(&code)));
    Ok(Created(SignInCodeBody { code, scope: EnumText(scope), user_id, expires_at: Rfc3339Time(expires_at), link }))
}

/// Exchanges a sign-in code for a session. The code is used up.
pub(super) async fn create(
    State(hub): State<Hub>,
    Extension(peer): Extension<Peer>,
    Body(SignIn { code, name }): Body<SignIn>,
) -> Result<Created<OpenedSession>, ApiError> {
    let (token, secret_hash) = new_secret();
    let id = uuid::Builder::from_random_bytes(clock::random()).into_uuid().to_string();
    let new = NewSession { id, secret_hash, name: name.map(|name| name.0) };
    let Some(signed_in) = hub.store.sign_in(auth::hash(&code.0), new).await? else {
        return Err(wrong_code(&hub, peer));
    };
    for ended in signed_in.ended {
        end(&hub, ended);
    }
    let Session { id, scope, user_id, expires_at, .. } = signed_in.session;
    tracing::info!(session = id, user = user_id, scope, "a person signed in");
    Ok(Created(OpenedSession { token, id, scope, user_id, expires_at: Rfc3339Time(expires_at) }))
}

fn wrong_code(hub: &Hub, peer: Peer) -> ApiError {
    match hub.wrong_codes.count(peer, Instant::now()) {
        Ok(()) => {
            let message = "this sign-in code is unknown, was used, or is older than ten minutes; ask for a new link";
            let hint = "bellwire token link USER makes one".to_owned();
            ApiError { hint: Some(hint), ..ApiError::unauthorized(message) }
        }
        Err(seconds) => {
            let message = "too many wrong sign-in codes from this address; wait a minute";
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
            ApiError { retry_after_seconds: Some(seconds), ..error }
        }
    }
}

/// Lists the caller's own sessions, the newest first.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
) -> Result<Json<List<SessionBody>>, ApiError> {
    let sessions = hub.store.sessions(owner(&identity)).await?;
    let body = |session: Session| SessionBody {
        current: session.id == identity.token_id,
        id: session.id,
        name: session.name,
        scope: session.scope,
        user_id: session.user_id,
        created_at: Rfc3339Time(session.created_at),
        used_at: Rfc3339Time(session.used_at),
        expires_at: Rfc3339Time(session.expires_at),
    };
    Ok(Json(List::whole(sessions.into_iter().map(body).collect())))
}

/// Ends one of the caller's own sessions, with its streams.
pub(super) async fn revoke(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
) -> Result<NoContent, ApiError> {
    match hub.store.end_session(owner(&identity), id.clone()).await? {
        true => end(&hub, id),
        false => return Err(ApiError::not_found("session")),
    }
    Ok(NoContent)
}

/// Makes the end of a session known in this process.
fn end(hub: &Hub, id: String) {
    hub.tokens.forget();
    // Sending fails only if no stream is open.
    let _ = hub.revoked.send(id);
}

/// A person's own sessions are those of the same scope; a token of an admin that is no session owns all of admins.
fn owner(identity: &Identity) -> SessionOwner {
    SessionOwner { user_id: identity.person().map(str::to_owned), scope: identity.scope.as_str().to_owned() }
}
