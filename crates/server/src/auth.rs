//! Authentication by token, and the scopes that the router's table checks on every route.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bellwire_core::Time;
use bellwire_core::event::{OPERATOR, PERSON, reserved_name};
use bellwire_core::person::visible_name;
use bellwire_store::{Caller, SIGN_IN_CODE_MS, Session, SignInCode, Store, StoreError, Token};
use icu_normalizer::ComposingNormalizerBorrowed;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::clock;
use crate::http::ApiError;
pub use crate::session_use::SessionUse;
use crate::session_use::SessionUses;
use crate::usage::{TokenLimits, TokenUsage, Usages};

/// In characters: the longest origin.
const ORIGIN_MAX: usize = 128;

/// What a token may do.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Admin,
    /// For agents: publish, inject, read the person's conversations.
    Agent,
    /// For a person's client: read, answer, change settings.
    User,
    /// Only publish.
    Ingest,
    /// For processes that deliver notifications.
    Daemon,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [Self::Admin, Self::Agent, Self::User, Self::Ingest, Self::Daemon];

    /// The name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::User => "user",
            Self::Ingest => "ingest",
            Self::Daemon => "daemon",
        }
    }

    /// Parses the name in JSON.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// The authenticated caller of a request.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The id of the token.
    pub token_id: String,
    /// The scope of the token.
    pub scope: Scope,
    /// The person and conversation it is bound to.
    pub caller: Caller,
    /// The origin that people see: the name of an agent or component, `operator` for an admin, `user` for a person.
    /// None = nothing it sends reaches a person.
    pub origin: Option<String>,
    /// When its token expires.
    pub expires_at: Option<Time>,
    /// The person who is signed in, if the token is that of a session.
    pub session: Option<Arc<SessionUse>>,
    /// The usage of the token's limits.
    pub(crate) usage: Arc<TokenUsage>,
    /// The hash of the token's secret.
    secret_hash: Vec<u8>,
}

impl Identity {
    fn of(token: &Token, usages: &Usages) -> Option<Self> {
        let scope = Scope::parse(&token.scope)?;
        let usage = usages.of(&token.id, scope == Scope::Admin, clock::now());
        let user_id = token.user_id.clone().filter(|user| user != "*" && scope != Scope::Admin);
        let token_owner = match &user_id {
            Some(user) => format!("user:{user}"),
            None => format!("token:{}", token.id),
        };
        let conversation_id = token.conversation_id.clone();
        let origin = match scope {
            Scope::Admin => Some(OPERATOR.to_owned()),
            Scope::User => Some(PERSON.to_owned()),
            Scope::Daemon => token.origin.as_deref().map(displayed_name),
            // A token of an older database may have an origin that is reserved now.
            Scope::Agent | Scope::Ingest => token.origin.as_deref().map(displayed_name).map(unreserved),
        };
        let caller = Caller { user_id, conversation_id, token_owner, origin: origin.clone() };
        let (expires_at, secret_hash) = (token.expires_at, token.secret_hash.clone());
        let (token_id, session) = (token.id.clone(), None);
        Some(Self { token_id, scope, caller, origin, expires_at, session, usage, secret_hash })
    }

    /// The identity of a session: that of a token with its scope and person. An admin's is bound to no person.
    fn of_session(session: &Session, usages: &Usages, uses: &SessionUses) -> Option<Self> {
        let token = Token {
            id: session.id.clone(),
            secret_hash: session.secret_hash.clone(),
            scope: session.scope.clone(),
            name: session.name.clone(),
            user_id: Some(session.user_id.clone()),
            origin: None,
            conversation_id: None,
            created_at: session.created_at,
            expires_at: Some(session.expires_at),
            revoked_at: None,
        };
        Some(Self { session: Some(uses.of(session)), ..Self::of(&token, usages)? })
    }

    /// The person it is bound to, or who is signed in.
    pub(crate) fn person(&self) -> Option<&str> {
        let signed_in = self.session.as_ref().map(|session| session.user_id.as_str());
        self.caller.user_id.as_deref().or(signed_in)
    }

    /// The identity with the origin that the header `Bellwire-Origin` names. An admin may speak as any agent; any other
    /// token only as itself.
    pub(crate) fn speaking_as(self: Arc<Self>, origin: &str) -> Result<Arc<Self>, ApiError> {
        let field = || Some("Bellwire-Origin".to_owned());
        let invalid = |message: String| ApiError { field: field(), ..ApiError::invalid("Bellwire-Origin", message) };
        if self.origin.as_deref() == Some(origin) {
            return Ok(self);
        }
        if self.scope != Scope::Admin {
            let own = self.origin.as_deref().unwrap_or_default();
            let message = format!("this token speaks as '{own}' and as no other origin; leave the header out");
            return Err(ApiError { field: field(), ..ApiError::forbidden(message) });
        }
        if !(1..=ORIGIN_MAX).contains(&origin.chars().count()) || displayed_name(origin) != origin {
            return Err(invalid(format!("must be 1 to {ORIGIN_MAX} visible characters, without spaces at either end")));
        }
        if let Some(reserved) = reserved_origin(origin) {
            return Err(invalid(format!("'{reserved}' is reserved; name the agent")));
        }
        let origin = Some(origin.to_owned());
        let caller = Caller { origin: origin.clone(), ..self.caller.clone() };
        Ok(Arc::new(Self { origin, caller, ..Self::clone(&self) }))
    }

    /// Checks that the caller may access this person's data. The error is *not found*, as for missing data.
    pub(crate) fn check_user(&self, user_id: &str) -> Result<(), ApiError> {
        match self.caller.user_id.as_deref().is_none_or(|own| own == user_id) {
            true => Ok(()),
            false => Err(ApiError::not_found("user")),
        }
    }

    /// Checks that the caller may act for this person. An admin's session reads the data of others but acts only for the
    /// person who is signed in; an admin token acts for everyone.
    pub(crate) fn check_acts_for(&self, user_id: &str) -> Result<(), ApiError> {
        self.check_session_acts_for(user_id)?;
        self.check_user(user_id)
    }

    /// Restricts an admin's session to the person who is signed in, before a call that acts. Fails if the caller was already
    /// restricted to another person. Other identities stay as they are.
    pub(crate) fn act_as_own_person(&mut self) -> Result<(), ApiError> {
        if let Some(own) = self.signed_in_admin().map(str::to_owned) {
            self.caller.user_id.as_deref().map_or(Ok(()), |user| self.check_session_acts_for(user))?;
            self.caller.user_id = Some(own);
        }
        Ok(())
    }

    /// As [`act_as_own_person`](Self::act_as_own_person), for a shared identity, which is copied only if it changes.
    pub(crate) fn acting_as_own_person(mut self: Arc<Self>) -> Result<Arc<Self>, ApiError> {
        if self.signed_in_admin().is_some() {
            Arc::make_mut(&mut self).act_as_own_person()?;
        }
        Ok(self)
    }

    /// Checks that this is no admin's session of another person.
    pub(crate) fn check_session_acts_for(&self, user_id: &str) -> Result<(), ApiError> {
        match self.signed_in_admin().filter(|own| *own != user_id) {
            None => Ok(()),
            Some(own) => {
                let message =
                    format!("this session is that of '{own}': it can read the data of others and not act for them");
                let hint = "sign in as that person (bellwire token link USER), or use an admin token".to_owned();
                Err(ApiError { hint: Some(hint), ..ApiError::forbidden(message) })
            }
        }
    }

    /// The person of an admin's session.
    pub(crate) fn signed_in_admin(&self) -> Option<&str> {
        self.session.as_ref().filter(|_| self.scope == Scope::Admin).map(|session| session.user_id.as_str())
    }
}

/// Creates a sign-in code for a person and stores its hash. Returns the code, which is shown once, and when it expires.
pub async fn create_sign_in_code(store: &dyn Store, scope: Scope, user_id: &str) -> Result<(String, Time), StoreError> {
    let code = new_code();
    let expires_at = store.now().plus(SIGN_IN_CODE_MS);
    let (scope, user_id) = (scope.as_str().to_owned(), user_id.to_owned());
    store.put_sign_in_code(SignInCode { code: hash(&code), scope, user_id, expires_at }).await?;
    Ok((code, expires_at))
}

/// The path of the page that exchanges a sign-in code, with the code in the fragment, which browsers send nowhere.
pub fn sign_in_path(code: &str) -> String {
    format!("/sign-in#code={code}")
}

/// A new secret and its hash. The secret is shown once; only the hash is stored.
pub fn new_secret() -> (String, Vec<u8>) {
    let bytes: [u8; 32] = clock::random();
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = format!("bw_{text}");
    let hash = hash(&secret);
    (secret, hash)
}

/// A code or token of 128 random bits: 22 characters that fit into links and buttons.
pub(crate) fn new_code() -> String {
    URL_SAFE_NO_PAD.encode(clock::random::<16>())
}

/// The hash of a secret. A random secret of 256 bits needs no slow hash, because it cannot be guessed.
pub fn hash(secret: &str) -> Vec<u8> {
    digest(secret).to_vec()
}

fn digest(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Finds tokens by their secrets, with a cache.
pub struct Authenticator {
    store: Arc<dyn Store>,
    known: RwLock<TokenCache>,
    usages: Usages,
    session_uses: SessionUses,
}

/// The cached identities, and how often the cache was cleared: an identity that was read before that must not be cached
/// after it.
#[derive(Default)]
struct TokenCache {
    bearers: HashMap<Hash, Arc<Identity>>,
    forgotten: u64,
}

type Hash = [u8; 32];

/// When the cache reaches this size, it is cleared.
const KNOWN_MAX: usize = 10_000;

impl Authenticator {
    pub(crate) fn new(store: Arc<dyn Store>, limits: TokenLimits) -> Self {
        let (usages, session_uses) = (Usages::new(limits), SessionUses::default());
        Self { store, known: RwLock::default(), usages, session_uses }
    }

    /// The identity of the token with this secret, unless the token is unknown, revoked or expired.
    pub(crate) async fn identify(&self, secret: &str) -> Result<Arc<Identity>, ApiError> {
        let hash = digest(secret);
        let (known, forgotten) = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            (known.bearers.get(&hash).cloned(), known.forgotten)
        };
        let identity = match known {
            Some(identity) => identity,
            None => self.look_up(hash, forgotten).await?,
        };
        if !bool::from(identity.secret_hash.ct_eq(&hash)) {
            return Err(unknown_token());
        }
        if let Some(at) = identity.expires_at.filter(|at| *at <= clock::now()) {
            return Err(ApiError::unauthorized(format!("this token expired at {at}")));
        }
        if let Some(session) = &identity.session {
            self.use_session(session)?;
        }
        Ok(identity)
    }

    /// Checks that a session is not idle, and stores its use in the background.
    pub(crate) fn use_session(&self, session: &SessionUse) -> Result<(), ApiError> {
        let now = self.store.now();
        if session.is_idle(now) {
            return Err(ApiError::unauthorized("this session was not used for seven days; sign in again"));
        }
        if session.is_to_be_stored(now) {
            let (store, id) = (self.store.clone(), session.id().to_owned());
            tokio::spawn(async move {
                if let Err(error) = store.note_session_use(id).await {
                    tracing::warn!(%error, "the use of a session could not be stored");
                }
            });
        }
        Ok(())
    }

    async fn look_up(&self, hash: Hash, forgotten: u64) -> Result<Arc<Identity>, ApiError> {
        let identity = match self.store.token_by_secret(hash.to_vec()).await? {
            Some(Token { revoked_at: Some(at), .. }) => {
                return Err(ApiError::unauthorized(format!("this token was revoked at {at}")));
            }
            Some(token) => Identity::of(&token, &self.usages),
            None => {
                let session = self.store.session_by_secret(hash.to_vec()).await?;
                session.and_then(|session| Identity::of_session(&session, &self.usages, &self.session_uses))
            }
        };
        let identity = Arc::new(identity.ok_or_else(unknown_token)?);
        self.remember(hash, identity.clone(), forgotten);
        Ok(identity)
    }

    /// Whether the token of an authenticated caller is still valid.
    pub(crate) async fn is_still_valid(&self, identity: &Identity) -> Result<bool, ApiError> {
        let hash = identity.secret_hash.clone();
        match &identity.session {
            Some(_) => Ok(self.store.session_by_secret(hash).await?.is_some()),
            None => Ok(self.store.token_by_secret(hash).await?.is_some_and(|token| is_valid(&token))),
        }
    }

    /// Clears the cache, because a token was revoked.
    pub(crate) fn forget(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.bearers.clear();
        known.forgotten += 1;
    }

    /// Caches an identity, unless the cache was cleared after it was read: its token may be the revoked one.
    fn remember(&self, hash: Hash, identity: Arc<Identity>, forgotten: u64) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.forgotten != forgotten {
            return;
        }
        if known.bearers.len() >= KNOWN_MAX {
            known.bearers.clear();
        }
        known.bearers.insert(hash, identity);
    }
}

fn is_valid(token: &Token) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|at| at > clock::now())
}

fn unknown_token() -> ApiError {
    ApiError::unauthorized("this hub does not know this token; was it made on another hub, or cut off?")
}

/// A name for display, without invisible characters and without characters that change the text direction.
fn displayed_name(name: &str) -> String {
    Some(bellwire_core::person::one_line(name)).filter(|name| !name.is_empty()).unwrap_or_else(|| UNNAMED.to_owned())
}

fn unreserved(name: String) -> String {
    if reserved_origin(&name).is_some() { UNNAMED.to_owned() } else { name }
}

/// The reserved name that an origin looks like: compared without invisible characters, ignoring case, and with
/// compatibility variants of letters replaced (NFKC).
pub(crate) fn reserved_origin(origin: &str) -> Option<&'static str> {
    let plain = ComposingNormalizerBorrowed::new_nfkc().normalize(&visible_name(origin)).into_owned();
    reserved_name(&visible_name(&plain))
}

/// Shown instead of a name without visible characters or a reserved name.
const UNNAMED: &str = "unnamed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_token_cannot_keep_a_reserved_name_in_whatever_letters_it_is_written() {
        for name in ["bellwire", "Operator", "\u{ff4f}perator", "user\u{200d}", "\u{1d42e}ser", "switchboard"] {
            assert_eq!(unreserved(displayed_name(name)), UNNAMED, "{name}");
        }
        assert_eq!(unreserved(displayed_name("butler")), "butler");
    }
}
