//! The sessions of the clients that use one address.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;

use crate::wrap::calls::Calls;

/// Beyond this number, the oldest session is forgotten: its results pass as they are.
const SESSIONS_MAX: usize = 1000;
const SESSION: &str = "mcp-session-id";

/// The open requests of each session. A request without a session stands for itself.
#[derive(Default)]
pub(super) struct Sessions {
    all: Mutex<VecDeque<(String, Arc<Calls>)>>,
}

impl Sessions {
    /// The requests of the session that a request belongs to; `None` for a session that is not known or for no session.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Arc<Calls>> {
        let id = id_in(headers)?;
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().find(|(known, _)| known == id).map(|(_, calls)| calls.clone())
    }

    /// Notes the session that a response has begun, or that a request belongs to.
    pub(super) fn note(&self, headers: &HeaderMap, calls: &Arc<Calls>) {
        let Some(id) = id_in(headers) else { return };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|(known, _)| known == id) {
            return;
        }
        if all.len() >= SESSIONS_MAX {
            all.pop_front();
        }
        all.push_back((id.to_owned(), calls.clone()));
    }

    /// The session was ended by its client.
    pub(super) fn forget(&self, headers: &HeaderMap) {
        let Some(id) = id_in(headers) else { return };
        self.all.lock().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| known != id);
    }
}

fn id_in(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_sessions_is_bounded_and_an_ended_one_is_forgotten() {
        let sessions = Sessions::default();
        let headers = |id: usize| HeaderMap::from_iter([(SESSION.parse().expect("a name"), id.into())]);
        for id in 0..SESSIONS_MAX + 1 {
            sessions.note(&headers(id), &Arc::default());
        }
        assert!(sessions.find(&headers(0)).is_none() && sessions.find(&headers(1)).is_some());
        sessions.forget(&headers(1));
        assert!(sessions.find(&headers(1)).is_none());
        assert!(sessions.find(&HeaderMap::new()).is_none());
    }
}
