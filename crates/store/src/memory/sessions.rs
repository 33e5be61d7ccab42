use std::collections::BTreeMap;

use bellwire_core::Time;

use super::Memory;
use crate::error::StoreError;
use crate::executor::SessionRowSource;
use crate::sessions::{Session, SessionChanges, SessionOwner, SessionReader, SignInCode};

/// The tables of sessions.
#[derive(Default)]
pub(super) struct SessionTables {
    codes: BTreeMap<Vec<u8>, SignInCode>,
    sessions: BTreeMap<String, Session>,
}

impl SessionTables {
    pub(super) fn commit(&mut self, changes: &SessionChanges) {
        for (code, row) in &changes.codes {
            match row {
                Some(row) => drop(self.codes.insert(code.clone(), row.clone())),
                None => drop(self.codes.remove(code)),
            }
        }
        for (id, row) in &changes.sessions {
            match row {
                Some(row) => drop(self.sessions.insert(id.clone(), row.clone())),
                None => drop(self.sessions.remove(id)),
            }
        }
    }

    pub(super) fn people(&self) -> impl Iterator<Item = String> {
        self.sessions.values().map(|session| session.user_id.clone())
    }

    pub(super) fn rows(&self) -> usize {
        self.codes.len() + self.sessions.len()
    }

    /// Deletes the person's rows and returns the ids of the sessions.
    pub(super) fn erase(&mut self, user: &str) -> Vec<String> {
        self.codes.retain(|_, code| code.user_id != user);
        let ended = self.sessions.values().filter(|one| one.user_id == user).map(|one| one.id.clone()).collect();
        self.sessions.retain(|_, session| session.user_id != user);
        ended
    }

    /// Deletes what ended before this time.
    pub(super) fn prune(&mut self, now: Time) -> usize {
        let before = self.rows();
        self.codes.retain(|_, code| code.expires_at >= now);
        self.sessions.retain(|_, session| session.ends_at() >= now);
        before - self.rows()
    }
}

impl SessionRowSource for Memory {
    async fn sign_in_code(&mut self, code: &[u8]) -> Result<Option<SignInCode>, StoreError> {
        Ok(self.lock().sessions.codes.get(code).cloned())
    }

    async fn session(&mut self, id: &str) -> Result<Option<Session>, StoreError> {
        Ok(self.lock().sessions.sessions.get(id).cloned())
    }

    async fn sessions_of(&mut self, user_id: &str, scope: &str, limit: usize) -> Result<Vec<Session>, StoreError> {
        let tables = self.lock();
        let theirs = tables.sessions.sessions.values().filter(|one| one.user_id == user_id && one.scope == scope);
        let mut theirs: Vec<Session> = theirs.cloned().collect();
        theirs.sort_by_key(|session| session.used_at);
        theirs.truncate(limit);
        Ok(theirs)
    }
}

impl SessionReader for Memory {
    async fn has_sign_in_code(&self, code: &[u8]) -> Result<bool, StoreError> {
        Ok(self.lock().sessions.codes.contains_key(code))
    }

    async fn session_by_secret(&self, hash: &[u8]) -> Result<Option<Session>, StoreError> {
        Ok(self.lock().sessions.sessions.values().find(|session| session.secret_hash == hash).cloned())
    }

    async fn sessions(&self, owner: &SessionOwner, now: Time, limit: usize) -> Result<Vec<Session>, StoreError> {
        let tables = self.lock();
        let live = tables.sessions.sessions.values().filter(|one| owner.owns(one) && one.ends_at() > now);
        let mut live: Vec<Session> = live.cloned().collect();
        live.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        live.truncate(limit);
        Ok(live)
    }
}
