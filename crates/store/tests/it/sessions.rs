//! Signing in: a code opens one session, which lasts for a bounded time.

use bellwire_core::Time;
use bellwire_store::{
    ErrorKind, NewSession, RetentionCutoffs, SESSION_IDLE_MS, SESSION_MS, SESSIONS_MAX, SIGN_IN_CODE_MS, Session,
    SessionOwner, SignInCode, SignedIn,
};

use crate::backends::{Backend, on_every_store};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn new(id: &str) -> NewSession {
    NewSession { id: id.into(), secret_hash: format!("hash of {id}").into_bytes(), name: Some("Firefox".into()) }
}

fn owner(user_id: &str, scope: &str) -> SessionOwner {
    SessionOwner { user_id: Some(user_id.into()), scope: scope.into() }
}

async fn code(backend: &Backend, code: &str, user_id: &str, scope: &str) {
    let expires_at = backend.now().plus(SIGN_IN_CODE_MS);
    let (code, scope, user_id) = (code.as_bytes().to_vec(), scope.to_owned(), user_id.to_owned());
    backend.store().put_sign_in_code(SignInCode { code, scope, user_id, expires_at }).await.unwrap();
}

async fn sign_in(backend: &Backend, code: &str, id: &str) -> Option<SignedIn> {
    backend.store().sign_in(code.as_bytes().to_vec(), new(id)).await.unwrap()
}

/// Signs in with a code of its own.
async fn session(backend: &Backend, id: &str, user_id: &str, scope: &str) -> SignedIn {
    code(backend, id, user_id, scope).await;
    sign_in(backend, id, id).await.expect("the code is new")
}

async fn ids(backend: &Backend, owner: SessionOwner) -> Vec<String> {
    backend.store().sessions(owner).await.unwrap().into_iter().map(|session| session.id).collect()
}

on_every_store! {
    async fn a_code_opens_one_session_however_often_it_comes(backend: Backend) {
        code(&backend, "code", "ada", "user").await;
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(sign_in(&backend, "another", "x").await, None);
        let (store, other) = (backend.store(), backend.store());
        let (one, two) = tokio::join!(store.sign_in(b"code".to_vec(), new("a")), other.sign_in(b"code".to_vec(), new("b")));
        let opened: Vec<SignedIn> = [one.unwrap(), two.unwrap()].into_iter().flatten().collect();
        assert_eq!(opened.len(), 1, "{opened:?}");
        assert_eq!(sign_in(&backend, "code", "c").await, None, "it is used up");
        let now = backend.now();
        // Either may come first.
        let (first, second) = if opened[0].session.id == "a" { ("a", "b") } else { ("b", "a") };
        let hash = |id: &str| format!("hash of {id}").into_bytes();
        let session = Session {
            id: first.into(),
            secret_hash: hash(first),
            scope: "user".into(),
            user_id: "ada".into(),
            name: Some("Firefox".into()),
            created_at: now,
            expires_at: now.plus(SESSION_MS),
            used_at: now,
        };
        assert_eq!(opened[0], SignedIn { session: session.clone(), ended: vec![] });
        if backend.is_durable() {
            backend.restart().await;
        }
        let found = backend.store().session_by_secret(hash(first)).await.unwrap();
        assert_eq!(found, Some(session));
        assert_eq!(backend.store().session_by_secret(hash(second)).await.unwrap(), None);
        assert_eq!(backend.store().tokens().await.unwrap(), [], "a session is no token");
    }

    async fn a_code_is_too_old_after_ten_minutes(backend: Backend) {
        code(&backend, "code", "ada", "user").await;
        backend.pass(10 * 60_000);
        assert_eq!(sign_in(&backend, "code", "a").await, None);
    }

    async fn a_person_lists_and_ends_the_own_sessions_only(backend: Backend) {
        session(&backend, "hers", "ada", "user").await;
        backend.pass(1);
        session(&backend, "hers too", "ada", "user").await;
        session(&backend, "as operator", "ada", "admin").await;
        session(&backend, "his", "bob", "user").await;
        assert_eq!(ids(&backend, owner("ada", "user")).await, ["hers too", "hers"], "the newest first");
        assert_eq!(ids(&backend, owner("ada", "admin")).await, ["as operator"]);
        let operators = || SessionOwner { user_id: None, scope: "admin".into() };
        assert_eq!(ids(&backend, operators()).await, ["as operator"]);
        for (owner, id) in [(owner("ada", "user"), "his"), (owner("ada", "user"), "as operator"), (operators(), "hers")] {
            assert!(!backend.store().end_session(owner, id.into()).await.unwrap(), "{id}");
        }
        assert!(backend.store().end_session(owner("ada", "user"), "hers".into()).await.unwrap());
        assert!(!backend.store().end_session(owner("ada", "user"), "hers".into()).await.unwrap(), "it has ended");
        assert_eq!(ids(&backend, owner("ada", "user")).await, ["hers too"]);
        assert_eq!(backend.store().session_by_secret(b"hash of hers".to_vec()).await.unwrap(), None);
    }

    async fn a_session_ends_when_it_is_not_used_and_in_any_case(backend: Backend) {
        session(&backend, "a", "ada", "user").await;
        backend.pass(6 * DAY);
        backend.store().note_session_use("a".into()).await.unwrap();
        backend.pass(SESSION_IDLE_MS as i64 - 1);
        assert_eq!(ids(&backend, owner("ada", "user")).await, ["a"]);
        backend.pass(1);
        assert!(ids(&backend, owner("ada", "user")).await.is_empty(), "unused for a week");
        let kept = RetentionCutoffs::before(Time::ZERO);
        backend.pass(1);
        assert_eq!(backend.store().prune(kept, 10).await.unwrap(), 1);
        session(&backend, "b", "ada", "user").await;
        for _ in 0..29 {
            backend.pass(DAY);
            backend.store().note_session_use("b".into()).await.unwrap();
        }
        assert_eq!(ids(&backend, owner("ada", "user")).await, ["b"]);
        backend.pass(DAY);
        assert!(ids(&backend, owner("ada", "user")).await.is_empty(), "a month has passed");
        code(&backend, "unused", "ada", "user").await;
        backend.pass(11 * 60_000);
        assert_eq!(backend.store().prune(kept, 10).await.unwrap(), 2, "the session and a code");
    }

    async fn one_session_too_many_ends_the_one_unused_for_longest(backend: Backend) {
        for number in 0..SESSIONS_MAX {
            session(&backend, &number.to_string(), "ada", "user").await;
            backend.pass(1);
        }
        backend.store().note_session_use("0".into()).await.unwrap();
        session(&backend, "others", "bob", "user").await;
        let last = session(&backend, "last", "ada", "user").await;
        assert_eq!(last.ended, ["1"]);
        let left = ids(&backend, owner("ada", "user")).await;
        assert!(left.len() == SESSIONS_MAX && left.contains(&"0".to_owned()) && !left.contains(&"1".to_owned()));
    }

    async fn sessions_and_codes_are_erased_with_the_person(backend: Backend) {
        session(&backend, "hers", "ada", "user").await;
        session(&backend, "his", "bob", "user").await;
        code(&backend, "unused", "ada", "admin").await;
        backend.store().erase_user("ada".into()).await.unwrap();
        assert_eq!(backend.store().session_by_secret(b"hash of hers".to_vec()).await.unwrap(), None);
        assert_eq!(sign_in(&backend, "unused", "x").await, None);
        assert_eq!(ids(&backend, owner("bob", "user")).await, ["his"]);
        backend.store().erase_user("carol".into()).await.map_err(|error| error.kind).expect_err("nothing is stored");
        session(&backend, "again", "ada", "user").await;
        assert_eq!(backend.store().erase_user("nobody".into()).await.unwrap_err().kind, ErrorKind::NotFound);
    }
}
