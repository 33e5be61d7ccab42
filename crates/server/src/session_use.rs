//! When sessions are used. A request is a use, and so is an open stream; at most one use an hour is stored.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bellwire_core::Time;
use bellwire_store::{SESSION_IDLE_MS, Session};

/// How often the use of a session is stored, and how often an open stream is a use.
pub(crate) const STORE_USE_MS: u64 = 60 * 60 * 1000;
/// With fewer sessions than this, none is dropped.
const DROP_MIN: usize = 1_000;

/// The person of a session, and its last stored use. All requests and streams of a session share it.
#[derive(Debug)]
pub struct SessionUse {
    /// The person. An admin's session reads the data of others and acts only for this person.
    pub user_id: String,
    id: String,
    /// In milliseconds.
    used_at: AtomicI64,
}

impl SessionUse {
    /// The id of the session.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether it was unused for too long.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        Time::from_millis(self.used_at.load(Ordering::Relaxed)).plus(SESSION_IDLE_MS) <= now
    }

    /// Whether the caller has to store this use. True for one caller an hour.
    pub(crate) fn is_to_be_stored(&self, now: Time) -> bool {
        let stored = self.used_at.load(Ordering::Relaxed);
        let is_old = Time::from_millis(stored).plus(STORE_USE_MS) <= now;
        is_old && self.used_at.compare_exchange(stored, now.as_millis(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The sessions that a cached token or an open stream refers to, by id.
///
/// The cache of tokens is cleared when any token is revoked. A stream from before that and a request after it still share
/// one [`SessionUse`]; otherwise the request would not know of the stream's use.
#[derive(Default)]
pub(crate) struct SessionUses(Mutex<KnownUses>);

#[derive(Default)]
struct KnownUses {
    by_id: HashMap<String, Weak<SessionUse>>,
    /// The number of entries at which those without a reference are dropped.
    drop_at: usize,
}

impl SessionUses {
    /// The use of a session that was read from the store.
    pub(crate) fn of(&self, session: &Session) -> Arc<SessionUse> {
        let stored = session.used_at.as_millis();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.by_id.get(&session.id).and_then(Weak::upgrade) {
            shared.used_at.fetch_max(stored, Ordering::Relaxed);
            return shared;
        }
        if known.by_id.len() >= known.drop_at.max(DROP_MIN) {
            known.by_id.retain(|_, shared| shared.strong_count() > 0);
            known.drop_at = known.by_id.len() * 2;
        }
        let (user_id, id) = (session.user_id.clone(), session.id.clone());
        let new = Arc::new(SessionUse { user_id, id, used_at: AtomicI64::new(stored) });
        known.by_id.insert(session.id.clone(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, used_at: Time) -> Session {
        let (scope, user_id) = ("user".to_owned(), "ada".to_owned());
        let (created_at, expires_at) = (Time::ZERO, Time::from_millis(i64::MAX));
        Session { id: id.into(), secret_hash: vec![], scope, user_id, name: None, created_at, expires_at, used_at }
    }

    #[test]
    fn one_of_all_uses_in_an_hour_is_stored() {
        let uses = SessionUses::default();
        let (stream, request) = (uses.of(&session("a", Time::ZERO)), uses.of(&session("a", Time::ZERO)));
        let hour = Time::from_millis(STORE_USE_MS.cast_signed());
        assert!(!stream.is_to_be_stored(Time::from_millis(hour.as_millis() - 1)));
        assert!(stream.is_to_be_stored(hour) && !request.is_to_be_stored(hour) && !stream.is_to_be_stored(hour));
        let idle = Time::from_millis(SESSION_IDLE_MS.cast_signed());
        assert!(!request.is_idle(idle), "the request knows of the stream's use");
        assert!(request.is_idle(hour.plus(SESSION_IDLE_MS)));
        let newer = uses.of(&session("a", hour.plus(STORE_USE_MS)));
        assert!(!newer.is_to_be_stored(hour.plus(STORE_USE_MS)), "another process has stored a use");
    }

    #[test]
    fn sessions_without_a_reference_are_dropped() {
        let uses = SessionUses::default();
        let kept = uses.of(&session("kept", Time::ZERO));
        for other in 0..3 * DROP_MIN {
            uses.of(&session(&other.to_string(), Time::ZERO));
        }
        assert!(uses.0.lock().expect("no other thread").by_id.len() <= DROP_MIN);
        assert!(Arc::ptr_eq(&kept, &uses.of(&session("kept", Time::ZERO))));
    }
}
