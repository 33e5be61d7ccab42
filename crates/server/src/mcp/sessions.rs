//! Which session belongs to which token, and when it ends.
//!
//! Sessions exist for clients older than 2026-07-28. The library ends one that is silent for five minutes even while its
//! stream is open, so it is told to end none, and they are ended here: when nobody has used one for a while and no answer
//! of it is being read, when its token is revoked or ends, when there are too many, when the hub stops. A client whose session is
//! gone is told 404 and begins a new one, as the protocol has it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellwire_core::Time;

/// How many sessions there may be. Beyond it the one that has been idle longest makes room.
const SESSIONS_MAX: usize = 10_000;

/// Every session there is.
#[derive(Default)]
pub(super) struct McpSessions(Mutex<HashMap<String, McpSession>>);

struct McpSession {
    token_id: String,
    /// When its token ends.
    expires_at: Option<Time>,
    used: Instant,
    /// How many answers are being read.
    open: usize,
}

/// For as long as it lives an answer of the session is being read.
pub(super) struct SessionGuard {
    sessions: Arc<McpSessions>,
    id: String,
}

impl McpSessions {
    /// A new session of this token. Gives those that must end to make room.
    pub(super) fn begin(&self, id: &str, token_id: &str, expires_at: Option<Time>, now: Instant) -> Vec<String> {
        let mut sessions = self.lock();
        sessions.insert(id.to_owned(), McpSession { token_id: token_id.to_owned(), expires_at, used: now, open: 0 });
        let idle = sessions.iter().filter(|(other, session)| session.open == 0 && *other != id);
        let oldest = idle.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone());
        let surplus: Vec<String> = oldest.filter(|_| sessions.len() > SESSIONS_MAX).into_iter().collect();
        sessions.retain(|id, _| !surplus.contains(id));
        surplus
    }

    /// How many sessions a token has.
    pub(super) fn count_of(&self, token_id: &str) -> usize {
        self.lock().values().filter(|session| session.token_id == token_id).count()
    }

    /// Whether a session may be used with this token. One that is not known here is for the library to refuse.
    pub(super) fn admits(&self, id: &str, token_id: &str) -> bool {
        self.lock().get(id).is_none_or(|session| session.token_id == token_id)
    }

    /// Notes that a session is used, until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, id: &str, now: Instant) -> Option<SessionGuard> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(id)?;
        session.used = now;
        session.open += 1;
        Some(SessionGuard { sessions: self.clone(), id: id.to_owned() })
    }

    /// Forgets a session that its client ended.
    pub(super) fn end(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Takes out what nobody has used for so long.
    pub(super) fn idle(&self, longer_than: Duration, now: Instant) -> Vec<String> {
        self.take(|session| session.open == 0 && now.saturating_duration_since(session.used) > longer_than)
    }

    /// Takes out what belongs to tokens that have ended by themselves.
    pub(super) fn expired(&self, now: Time) -> Vec<String> {
        self.take(|session| session.expires_at.is_some_and(|end| end <= now))
    }

    /// Takes out what belongs to a token; none = everything.
    pub(super) fn of_token(&self, token_id: Option<&str>) -> Vec<String> {
        self.take(|session| token_id.is_none_or(|token_id| session.token_id == token_id))
    }

    fn take(&self, ends: impl Fn(&McpSession) -> bool) -> Vec<String> {
        self.lock().extract_if(|_, session| ends(session)).map(|(id, _)| id).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, McpSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.lock().get_mut(&self.id) {
            session.open = session.open.saturating_sub(1);
            session.used = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_session_under_an_open_stream_is_never_idle() {
        let sessions = Arc::new(McpSessions::default());
        let start = Instant::now();
        sessions.begin("read", "a", None, start);
        sessions.begin("silent", "a", None, start);
        let reading = sessions.enter("read", start).expect("it is there");
        assert_eq!(sessions.idle(MINUTE, start + MINUTE * 600), ["silent"]);
        drop(reading);
        assert_eq!(sessions.idle(MINUTE, start + MINUTE * 1200), ["read"]);
    }

    #[test]
    fn a_session_serves_only_the_token_that_began_it_and_ends_with_it() {
        let sessions = McpSessions::default();
        sessions.begin("one", "a", None, Instant::now());
        sessions.begin("two", "b", Some(Time::from_millis(5)), Instant::now());
        assert!(sessions.expired(Time::from_millis(4)).is_empty());
        assert!(sessions.admits("one", "a") && !sessions.admits("one", "b"));
        assert_eq!(sessions.of_token(Some("a")), ["one"]);
        assert_eq!(sessions.expired(Time::from_millis(5)), ["two"]);
        assert!(sessions.of_token(None).is_empty());
    }

    #[test]
    fn too_many_sessions_end_the_one_that_was_idle_longest() {
        let sessions = Arc::new(McpSessions::default());
        let start = Instant::now();
        for at in 0..SESSIONS_MAX {
            let ended = sessions.begin(&at.to_string(), "a", None, start + Duration::from_millis(at as u64));
            assert!(ended.is_empty());
        }
        let _reading = sessions.enter("0", start).expect("it is there");
        assert_eq!(sessions.begin("one more", "a", None, start + MINUTE), ["1"]);
    }
}
