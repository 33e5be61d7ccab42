//! Who is asking, and what they may do. Checked on every path, from one table.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bellwire_core::Time;
use bellwire_core::event::{OPERATOR, PERSON, reserved_name};
use bellwire_core::person::visible_name;
use bellwire_store::{Caller, Store, Token};
use icu_normalizer::ComposingNormalizerBorrowed;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::clock;
use crate::http::ApiError;
use crate::usage::{TokenLimits, TokenUsage, Usages};

/// What a token may do.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Admin,
    /// What an agent does: publish, take its mail, read its person's conversations.
    Agent,
    /// What a person does: read, answer, change settings.
    User,
    /// Publish, and nothing else.
    Ingest,
    /// Deliver between processes.
    Daemon,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [Self::Admin, Self::Agent, Self::User, Self::Ingest, Self::Daemon];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::User => "user",
            Self::Ingest => "ingest",
            Self::Daemon => "daemon",
        }
    }

    /// Reads the word on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// The caller of a request, authenticated.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The token's name.
    pub token_id: String,
    /// What it may do.
    pub scope: Scope,
    /// On whose behalf it asks.
    pub caller: Caller,
    /// The name under which it speaks to people: an agent's or a component's own, `operator` for an admin, `user` for a
    /// person. None = nothing it sends reaches a person.
    pub origin: Option<String>,
    /// When its token ends by itself.
    pub expires_at: Option<Time>,
    /// What the token uses of its limits.
    pub(crate) usage: Arc<TokenUsage>,
    /// What is kept of its secret.
    secret_hash: Vec<u8>,
}

impl Identity {
    fn of(token: &Token, usages: &Usages) -> Option<Self> {
        let scope = Scope::parse(&token.scope)?;
        let usage = usages.of(&token.id, scope == Scope::Admin);
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
            // Tokens of older databases may have a name that is reserved by now.
            Scope::Agent | Scope::Ingest => token.origin.as_deref().map(displayed_name).map(unreserved),
        };
        let caller = Caller { user_id, conversation_id, token_owner, origin: origin.clone() };
        let (expires_at, secret_hash) = (token.expires_at, token.secret_hash.clone());
        Some(Self { token_id: token.id.clone(), scope, caller, origin, expires_at, usage, secret_hash })
    }

    /// Whether this person's things are the caller's business. What is not theirs looks like what is not there.
    pub(crate) fn check_user(&self, user_id: &str) -> Result<(), ApiError> {
        match self.caller.user_id.as_deref().is_none_or(|own| own == user_id) {
            true => Ok(()),
            false => Err(ApiError::not_found("user")),
        }
    }
}

/// A new secret: the text to hand out once, and what is kept of it.
pub fn new_secret() -> (String, Vec<u8>) {
    let bytes: [u8; 32] = clock::random();
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = format!("bw_{text}");
    let hash = hash(&secret);
    (secret, hash)
}

/// What is kept of a secret. A random 256-bit secret needs no slow hash: nobody can guess through it.
pub fn hash(secret: &str) -> Vec<u8> {
    digest(secret).to_vec()
}

fn digest(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Finds tokens by their secrets, and remembers those it found.
pub struct Authenticator {
    store: Arc<dyn Store>,
    known: RwLock<TokenCache>,
    usages: Usages,
}

/// Whose tokens were found, and how often all of them were forgotten: what was read before that must not come back.
#[derive(Default)]
struct TokenCache {
    bearers: HashMap<Hash, Arc<Identity>>,
    forgotten: u64,
}

type Hash = [u8; 32];

/// More than this and the memory is started anew.
const KNOWN_MAX: usize = 10_000;

impl Authenticator {
    pub(crate) fn new(store: Arc<dyn Store>, limits: TokenLimits) -> Self {
        Self { store, known: RwLock::default(), usages: Usages::new(limits) }
    }

    /// Who brings this secret, if it is still worth something.
    pub(crate) async fn identify(&self, secret: &str) -> Result<Option<Arc<Identity>>, ApiError> {
        let hash = digest(secret);
        let (known, forgotten) = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            (known.bearers.get(&hash).cloned(), known.forgotten)
        };
        let identity = match known {
            Some(identity) => Some(identity),
            None => self.look_up(hash, forgotten).await?,
        };
        Ok(identity.filter(|identity| bool::from(identity.secret_hash.ct_eq(&hash)) && !has_ended(identity.expires_at)))
    }

    async fn look_up(&self, hash: Hash, forgotten: u64) -> Result<Option<Arc<Identity>>, ApiError> {
        let token = self.store.token_by_secret(hash.to_vec()).await?.filter(is_valid);
        let identity = token.as_ref().and_then(|token| Identity::of(token, &self.usages)).map(Arc::new);
        if let Some(identity) = &identity {
            self.remember(hash, identity.clone(), forgotten);
        }
        Ok(identity)
    }

    /// Whether a caller who was let in would be let in again.
    pub(crate) async fn is_still_valid(&self, identity: &Identity) -> Result<bool, ApiError> {
        let token = self.store.token_by_secret(identity.secret_hash.clone()).await?;
        Ok(token.is_some_and(|token| is_valid(&token)))
    }

    /// Forgets what it knows, because a token was revoked.
    pub(crate) fn forget(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.bearers.clear();
        known.forgotten += 1;
    }

    /// Remembers a bearer, unless everything was forgotten since it was read: it may be the one that was revoked.
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
    token.revoked_at.is_none() && !has_ended(token.expires_at)
}

fn has_ended(expires_at: Option<Time>) -> bool {
    expires_at.is_some_and(|end| end <= clock::now())
}

/// A name as people see it: nothing in it that is not seen, or that turns its letters around.
fn displayed_name(name: &str) -> String {
    Some(bellwire_core::person::one_line(name)).filter(|name| !name.is_empty()).unwrap_or_else(|| UNNAMED.to_owned())
}

fn unreserved(name: String) -> String {
    if reserved_origin(&name).is_some() { UNNAMED.to_owned() } else { name }
}

/// The reserved name that people would take this origin for: without what is not seen, in one case, and with letters that
/// only look other than ordinary ones (NFKC) as those.
pub(crate) fn reserved_origin(origin: &str) -> Option<&'static str> {
    let plain = ComposingNormalizerBorrowed::new_nfkc().normalize(&visible_name(origin)).into_owned();
    reserved_name(&visible_name(&plain))
}

/// Who has no name that people could see.
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
