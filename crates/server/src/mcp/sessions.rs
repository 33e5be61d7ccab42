//! The MCP sessions: which token owns each, and when it ends.
//!
//! Only clients of revisions before 2026-07-28 have sessions. rmcp's idle timeout would end a session after five minutes
//! even while its stream is open, so it is disabled, and this module decides. A session ends when it is idle and none of
//! its responses is being read, when its token is revoked or expires, when there are too many, and when the hub stops. The
//! client of an ended session gets 404 and starts a new one, as the protocol says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellwire_core::Time;

/// The maximum number of sessions. Beyond it, the session that has been idle longest ends.
const SESSIONS_MAX: usize = 10_000;

/// All sessions by id.
#[derive(Default)]
pub(super) struct McpSessions(Mutex<HashMap<String, McpSession>>);

pub(super) struct McpSession {
    token_id: String,
    /// When the token expires.
    expires_at: Option<Time>,
    used: Instant,
    /// The number of responses that are being read.
    open: usize,
}

/// Marks the session as in use until it is dropped: one of its responses is being read.
pub(super) struct SessionGuard {
    sessions: Arc<McpSessions>,
    id: String,
}

impl McpSession {
    pub(super) fn new(token_id: &str, expires_at: Option<Time>, now: Instant) -> Self {
        Self { token_id: token_id.to_owned(), expires_at, used: now, open: 0 }
    }
}

impl McpSessions {
    /// Adds a session, unless its token has `per_token_max` already (0 = any number): then it returns `None`. Otherwise it
    /// returns the ids of sessions that the caller must end because there are too many of all tokens.
    pub(super) fn begin(&self, id: &str, session: McpSession, per_token_max: usize) -> Option<Vec<String>> {
        // One lock for the count and the new session, so that sessions that begin at once cannot exceed the limit.
        let mut sessions = self.lock();
        let of_token = || sessions.values().filter(|other| other.token_id == session.token_id).count();
        if per_token_max > 0 && of_token() >= per_token_max {
            return None;
        }
        sessions.insert(id.to_owned(), session);
        if sessions.len() <= SESSIONS_MAX {
            return Some(Vec::new());
        }
        let idle = sessions.iter().filter(|(other, session)| session.open == 0 && *other != id);
        let surplus: Vec<String> =
            idle.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone()).into_iter().collect();
        sessions.retain(|id, _| !surplus.contains(id));
        Some(surplus)
    }

    /// Whether the token owns the session. True for an unknown session, which rmcp refuses.
    pub(super) fn admits(&self, id: &str, token_id: &str) -> bool {
        self.lock().get(id).is_none_or(|session| session.token_id == token_id)
    }

    /// Marks a session as in use until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, id: &str, now: Instant) -> Option<SessionGuard> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(id)?;
        session.used = now;
        session.open += 1;
        Some(SessionGuard { sessions: self.clone(), id: id.to_owned() })
    }

    /// Removes a session that its client ended.
    pub(super) fn end(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Removes and returns the sessions that have been idle for longer than this.
    pub(super) fn idle(&self, longer_than: Duration, now: Instant) -> Vec<String> {
        self.take(|session| session.open == 0 && now.saturating_duration_since(session.used) > longer_than)
    }

    /// Removes and returns the sessions whose tokens have expired.
    pub(super) fn expired(&self, now: Time) -> Vec<String> {
        self.take(|session| session.expires_at.is_some_and(|end| end <= now))
    }

    /// Removes and returns the sessions of a token; `None` means all sessions.
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
    fn a_session_with_an_open_stream_is_never_idle() {
        let sessions = Arc::new(McpSessions::default());
        let start = Instant::now();
        sessions.begin("read", McpSession::new("a", None, start), 0).expect("there is no limit");
        sessions.begin("silent", McpSession::new("a", None, start), 0).expect("there is no limit");
        let reading = sessions.enter("read", start).expect("the session exists");
        assert_eq!(sessions.idle(MINUTE, start + MINUTE * 600), ["silent"]);
        drop(reading);
        assert_eq!(sessions.idle(MINUTE, start + MINUTE * 1200), ["read"]);
    }

    #[test]
    fn a_session_serves_only_the_token_that_began_it_and_ends_with_it() {
        let sessions = McpSessions::default();
        let (now, end) = (Instant::now(), Some(Time::from_millis(5)));
        sessions.begin("one", McpSession::new("a", None, now), 0).expect("there is no limit");
        sessions.begin("two", McpSession::new("b", end, now), 0).expect("there is no limit");
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
            let session = McpSession::new("a", None, start + Duration::from_millis(at as u64));
            assert_eq!(sessions.begin(&at.to_string(), session, 0), Some(Vec::new()));
        }
        let _reading = sessions.enter("0", start).expect("the session exists");
        let one_more = McpSession::new("a", None, start + MINUTE);
        assert_eq!(sessions.begin("one more", one_more, 0), Some(vec!["1".to_owned()]));
    }

    #[test]
    fn sessions_that_begin_at_once_cannot_exceed_the_limit_of_their_token() {
        let sessions = McpSessions::default();
        let begin = |thread: usize| {
            let begun = (0..50).filter(|at| {
                let session = McpSession::new("a", None, Instant::now());
                sessions.begin(&format!("{thread} {at}"), session, 3).is_some()
            });
            begun.count()
        };
        let begun: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || begin(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
        });
        assert_eq!((begun, sessions.of_token(Some("a")).len()), (3, 3));
        assert!(sessions.begin("later", McpSession::new("a", None, Instant::now()), 3).is_some());
    }
}
