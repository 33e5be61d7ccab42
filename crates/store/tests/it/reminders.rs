use bellwire_core::Time;
use bellwire_store::{Caller, ErrorKind, IdempotencyKey, InboxItemType, InboxState, NewReminder};

use crate::backends::{Backend, START, on_every_store};
use crate::notify::{inbox, message, told};

fn call_ada(in_ms: i64) -> NewReminder {
    NewReminder {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        origin: "butler".into(),
        conversation_id: None,
        correlation_id: None,
        message: "Call Ada".into(),
        at: Time::from_millis(START + in_ms),
        idempotency_key: None,
    }
}

on_every_store! {
    async fn a_reminder_is_listed_until_it_is_told_and_told_once(backend: Backend) {
        let made = backend.store().remind(call_ada(60_000)).await.unwrap();
        assert_eq!(backend.store().reminders(Some("ada".into()), None, 10).await.unwrap().0, [made]);
        assert!(backend.store().reminders(Some("bob".into()), None, 10).await.unwrap().0.is_empty());
        backend.pass(59_999);
        backend.store().tick().await.unwrap();
        assert!(inbox(&backend, InboxState::All).await.is_empty());
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.pass(1);
        backend.store().tick().await.unwrap();
        backend.store().tick().await.unwrap();
        let items = inbox(&backend, InboxState::All).await;
        assert_eq!((items.len(), items[0].item_type, items[0].message.as_str()), (1, InboxItemType::Reminder, "Call Ada"));
        assert!(backend.store().reminders(None, None, 10).await.unwrap().0.is_empty());
    }

    async fn a_reminder_that_is_cancelled_is_never_told(backend: Backend) {
        let store = backend.store();
        let made = store.remind(call_ada(60_000)).await.unwrap();
        let foreign = store.cancel_reminder(Some("bob".into()), made.id).await.unwrap_err();
        assert_eq!(foreign.kind, ErrorKind::NotFound);
        store.cancel_reminder(Some("ada".into()), made.id).await.unwrap();
        store.cancel_reminder(None, made.id).await.unwrap();
        backend.pass(120_000);
        store.tick().await.unwrap();
        assert!(inbox(&backend, InboxState::All).await.is_empty());
        let late = store.remind(call_ada(180_000)).await.unwrap();
        backend.pass(120_000);
        store.tick().await.unwrap();
        assert_eq!(store.cancel_reminder(None, late.id).await.unwrap_err().kind, ErrorKind::Conflict);
    }

    async fn scheduler_created_notifications_do_not_bypass_the_limit(backend: Backend) {
        for number in 0..5 {
            told(&backend, message(&format!("{number}"))).await;
        }
        backend.store().remind(call_ada(1_000)).await.unwrap();
        backend.pass(1_000);
        backend.store().tick().await.unwrap();
        assert_eq!(inbox(&backend, InboxState::All).await.len(), 5);
        assert_eq!(backend.store().reminders(None, None, 10).await.unwrap().0.len(), 1, "it waits");
        backend.pass(3_600_000 - 1_000);
        backend.store().tick().await.unwrap();
        assert_eq!(inbox(&backend, InboxState::All).await[0].message, "Call Ada");
    }

    async fn the_same_call_makes_one_reminder(backend: Backend) {
        let idempotency_key = IdempotencyKey { token_id: "t".into(), route: "remind".into(), key: "k".into(), content: [0; 32] };
        let call = || NewReminder { idempotency_key: Some(idempotency_key.clone()), ..call_ada(60_000) };
        let first = backend.store().remind(call()).await.unwrap();
        assert_eq!(backend.store().remind(call()).await.unwrap(), first);
        assert_eq!(backend.store().reminders(None, None, 10).await.unwrap().0.len(), 1);
    }
}
