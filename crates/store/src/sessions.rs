//! Signing in: a code of a link is exchanged once for a session, which a browser keeps.

use std::collections::BTreeMap;
use std::future::Future;

use bellwire_core::Time;

use crate::StoreFuture;
use crate::error::StoreError;

/// How long a sign-in code can be used.
pub const SIGN_IN_CODE_MS: u64 = 10 * 60 * 1000;
/// How long a session lasts.
pub const SESSION_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// A session that is not used for this long ends.
pub const SESSION_IDLE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The maximum number of sessions of a person in one scope. A new one ends the one that was unused for the longest time.
pub const SESSIONS_MAX: usize = 50;

/// What a sign-in code is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInCode {
    /// A hash of the code.
    pub code: Vec<u8>,
    /// The scope of the session: user or admin.
    pub scope: String,
    /// The person.
    pub user_id: String,
    /// When it expires.
    pub expires_at: Time,
}

/// A session to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id; not the secret.
    pub id: String,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// A label for people.
    pub name: Option<String>,
}

/// A session: a token for the pages of the hub, which a person lists and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id; not the secret.
    pub id: String,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// user or admin.
    pub scope: String,
    /// The person.
    pub user_id: String,
    /// A label for people.
    pub name: Option<String>,
    /// When the person signed in.
    pub created_at: Time,
    /// When it expires.
    pub expires_at: Time,
    /// When it was used, to the hour.
    pub used_at: Time,
}

impl Session {
    /// When it ends if it is not used any more.
    pub fn ends_at(&self) -> Time {
        self.expires_at.min(self.used_at.plus(SESSION_IDLE_MS))
    }
}

/// A session that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The session.
    pub session: Session,
    /// The ids of sessions that ended for it, because the person had too many.
    pub ended: Vec<String>,
}

/// Whose sessions are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOwner {
    /// The person; none = every person.
    pub user_id: Option<String>,
    /// The scope of the sessions.
    pub scope: String,
}

impl SessionOwner {
    pub(crate) fn owns(&self, session: &Session) -> bool {
        self.scope == session.scope && self.user_id.as_ref().is_none_or(|user_id| *user_id == session.user_id)
    }
}

/// The operations on sessions, with the same duties as [`crate::Store`].
pub trait Sessions: Send + Sync {
    /// Stores a sign-in code.
    fn put_sign_in_code(&self, code: SignInCode) -> StoreFuture<'_, ()>;
    /// Uses a code up and opens a session; none = the code, given as its hash, is unknown, used or expired.
    fn sign_in(&self, code: Vec<u8>, session: NewSession) -> StoreFuture<'_, Option<SignedIn>>;
    /// The session whose secret has this hash, also if it has ended.
    fn session_by_secret(&self, secret_hash: Vec<u8>) -> StoreFuture<'_, Option<Session>>;
    /// The sessions of an owner that have not ended, the newest first, at most [`SESSIONS_MAX`].
    fn sessions(&self, owner: SessionOwner) -> StoreFuture<'_, Vec<Session>>;
    /// Notes that a session is used now.
    fn note_session_use(&self, id: String) -> StoreFuture<'_, ()>;
    /// Ends a session; false = the owner has none with this id.
    fn end_session(&self, owner: SessionOwner, id: String) -> StoreFuture<'_, bool>;
}

/// Queries about sessions that do not need the writer.
pub trait SessionReader {
    /// Whether there is a code with this hash.
    fn has_sign_in_code(&self, code: &[u8]) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// The session whose secret has this hash.
    fn session_by_secret(&self, hash: &[u8]) -> impl Future<Output = Result<Option<Session>, StoreError>> + Send;
    /// The sessions of an owner that end after `now`, the newest first.
    fn sessions(
        &self,
        owner: &SessionOwner,
        now: Time,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Session>, StoreError>> + Send;
}

/// The changed rows of one commit; none = the row is deleted.
#[derive(Debug, Default)]
pub(crate) struct SessionChanges {
    /// By the hash of the code.
    pub(crate) codes: BTreeMap<Vec<u8>, Option<SignInCode>>,
    /// By id.
    pub(crate) sessions: BTreeMap<String, Option<Session>>,
}

impl SessionChanges {
    pub(crate) fn rows(&self) -> usize {
        self.codes.len() + self.sessions.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows() == 0
    }
}
