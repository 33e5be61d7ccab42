use bellwire_core::Time;
use bellwire_store::{ErrorKind, IdempotencyKey, Token};

use crate::backends::{Backend, START, on_every_store};

fn token(id: &str, created_at: i64) -> Token {
    Token {
        id: id.into(),
        secret_hash: format!("hash of {id}").into_bytes(),
        scope: "agent".into(),
        name: Some("build".into()),
        user_id: Some("ada".into()),
        origin: Some("butler".into()),
        conversation_id: None,
        created_at: Time::from_millis(START + created_at),
        expires_at: Some(Time::from_millis(START + 1_000_000)),
        revoked_at: None,
    }
}

on_every_store! {
    async fn a_token_is_found_by_its_secret_and_listed_by_age(backend: Backend) {
        let store = backend.store();
        store.put_token(token("second", 2)).await.unwrap();
        store.put_token(token("first", 1)).await.unwrap();
        let found = store.token_by_secret(b"hash of first".to_vec()).await.unwrap();
        assert_eq!(found, Some(token("first", 1)));
        assert_eq!(store.token_by_secret(b"hash of nobody".to_vec()).await.unwrap(), None);
        let ids: Vec<_> = store.tokens().await.unwrap().into_iter().map(|token| token.id).collect();
        assert_eq!(ids, ["first", "second"]);
    }

    async fn a_revoked_token_stays_known_as_revoked(backend: Backend) {
        let revoked = Token { revoked_at: Some(Time::from_millis(START + 9)), ..token("first", 1) };
        backend.store().put_token(token("first", 1)).await.unwrap();
        backend.store().put_token(revoked.clone()).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        let found = backend.store().token_by_secret(b"hash of first".to_vec()).await.unwrap();
        assert_eq!(found, Some(revoked));
    }

    async fn a_token_is_made_once_and_its_secret_never_shown_again(backend: Backend) {
        let idempotency_key = || IdempotencyKey { token_id: "t".into(), route: "tokens".into(), key: "k".into(), content: [1; 32] };
        backend.store().put_token_once(token("first", 1), idempotency_key()).await.unwrap();
        let refused = backend.store().put_token_once(token("second", 2), idempotency_key()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        assert!(refused.message.contains("token first"), "{refused}");
        assert_eq!(backend.store().tokens().await.unwrap().len(), 1);
    }
}
