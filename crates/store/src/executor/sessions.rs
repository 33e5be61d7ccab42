//! Opens and ends sessions.

use std::future::Future;

use super::{Executor, RowSource};
use crate::error::StoreError;
use crate::sessions::{NewSession, SESSION_MS, SESSIONS_MAX, Session, SessionOwner, SignInCode, SignedIn};

/// Loads the rows of sessions. Part of [`super::RowSource`].
pub(crate) trait SessionRowSource {
    fn sign_in_code(&mut self, code: &[u8]) -> impl Future<Output = Result<Option<SignInCode>, StoreError>> + Send;
    fn session(&mut self, id: &str) -> impl Future<Output = Result<Option<Session>, StoreError>> + Send;
    /// The person's sessions of this scope, the one unused for the longest time first, at most `limit`.
    fn sessions_of(
        &mut self,
        user_id: &str,
        scope: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Session>, StoreError>> + Send;
}

impl Executor {
    pub(crate) async fn put_sign_in_code(
        &mut self,
        code: SignInCode,
        _: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        self.erasing.check(&code.user_id)?;
        self.changes.sessions.codes.insert(code.code.clone(), Some(code));
        Ok(())
    }

    /// Uses a code up. The writer decides one command after the other, so that a code opens one session.
    pub(crate) async fn sign_in(
        &mut self,
        code: Vec<u8>,
        new: NewSession,
        source: &mut impl RowSource,
    ) -> Result<Option<SignedIn>, StoreError> {
        let known = match self.changes.sessions.codes.get(&code) {
            Some(staged) => staged.clone(),
            None => source.sign_in_code(&code).await?,
        };
        let now = self.context.now;
        let Some(known) = known.filter(|known| known.expires_at > now) else { return Ok(None) };
        self.erasing.check(&known.user_id)?;
        let ended = self.surplus_sessions(&known, source).await?;
        let NewSession { id, secret_hash, name } = new;
        let SignInCode { scope, user_id, .. } = known;
        let expires_at = now.plus(SESSION_MS);
        let session = Session { id, secret_hash, scope, user_id, name, created_at: now, expires_at, used_at: now };
        self.changes.sessions.codes.insert(code, None);
        self.changes.sessions.sessions.extend(ended.iter().map(|id| (id.clone(), None)));
        self.changes.sessions.sessions.insert(session.id.clone(), Some(session.clone()));
        Ok(Some(SignedIn { session, ended }))
    }

    /// The sessions that end so that one more has a place.
    async fn surplus_sessions(
        &mut self,
        code: &SignInCode,
        source: &mut impl RowSource,
    ) -> Result<Vec<String>, StoreError> {
        let staged = &self.changes.sessions.sessions;
        let stored = source.sessions_of(&code.user_id, &code.scope, SESSIONS_MAX + staged.len()).await?;
        let stored = stored.into_iter().filter(|session| !staged.contains_key(&session.id));
        let fresh = staged.values().flatten().filter(|one| one.user_id == code.user_id && one.scope == code.scope);
        let mut all: Vec<Session> = stored.chain(fresh.cloned()).collect();
        all.sort_by_key(|session| session.used_at);
        let surplus = (all.len() + 1).saturating_sub(SESSIONS_MAX);
        Ok(all.into_iter().take(surplus).map(|session| session.id).collect())
    }

    pub(crate) async fn note_session_use(&mut self, id: String, source: &mut impl RowSource) -> Result<(), StoreError> {
        if let Some(session) = self.session(&id, source).await? {
            self.erasing.check(&session.user_id)?;
            let used = Session { used_at: self.context.now, ..session };
            self.changes.sessions.sessions.insert(id, Some(used));
        }
        Ok(())
    }

    pub(crate) async fn end_session(
        &mut self,
        owner: SessionOwner,
        id: String,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let is_theirs = self.session(&id, source).await?.is_some_and(|session| owner.owns(&session));
        if is_theirs {
            self.changes.sessions.sessions.insert(id, None);
        }
        Ok(is_theirs)
    }

    /// A session with the changes of the current commit.
    async fn session(&mut self, id: &str, source: &mut impl RowSource) -> Result<Option<Session>, StoreError> {
        match self.changes.sessions.sessions.get(id) {
            Some(staged) => Ok(staged.clone()),
            None => source.session(id).await,
        }
    }
}
