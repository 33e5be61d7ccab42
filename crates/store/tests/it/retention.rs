use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::Time;
use bellwire_store::{Caller, ClientEventId, ErrorKind, IdempotencyKey, Incoming, Publish, RetentionCutoffs};

use crate::backends::{Backend, START, failure, on_every_store};

fn kept(events: Time, answers: Time) -> RetentionCutoffs {
    RetentionCutoffs { events, answers, inbox: events }
}

on_every_store! {
    async fn old_rows_are_deleted_in_small_steps_and_pending_ones_stay(backend: Backend) {
        for number in 0..6 {
            backend.publish(failure(&format!("tool_{number}"))).await;
        }
        backend.take(AfterTool, "c1").await;
        backend.pass(60_000);
        let waiting = backend.publish(failure("waiting")).await;
        backend.pass(3_000);
        backend.store().tick().await.unwrap();
        let before = Time::from_millis(START + 30_000);
        let mut gone = 0;
        for _ in 0..20 {
            gone += backend.store().prune(kept(before, before), 2).await.unwrap();
        }
        assert!(gone >= 7, "six events and an answer went, not {gone}");
        assert!(backend.store().trace(Caller::user("ada"), waiting.event_id.to_string()).await.is_ok());
        assert!(backend.take(AfterTool, "c2").await.block.contains("waiting"));
    }

    async fn pending_notifications_keep_their_events(backend: Backend) {
        backend.publish(failure("grep")).await;
        backend.pass(3_000);
        backend.store().tick().await.unwrap();
        let later = Time::from_millis(START + 1_000_000);
        backend.store().prune(kept(later, later), 100).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        let told = backend.take(AfterTool, "c1").await.block;
        assert!(told.contains("grep"), "{told}");
        backend.store().prune(kept(later, later), 100).await.unwrap();
    }

    async fn injections_are_kept_as_long_as_events(backend: Backend) {
        backend.publish(failure("grep")).await;
        backend.take(AfterTool, "c1").await;
        backend.take(AfterTool, "c2").await;
        let (never, later) = (Time::from_millis(START), Time::from_millis(START + 1_000_000));
        backend.store().prune(kept(never, later), 100).await.unwrap();
        let store = backend.store();
        let messages = || store.messages(Caller::user("ada"), "chat".into(), None, 10);
        assert_eq!(messages().await.unwrap().0.len(), 1);
        backend.store().prune(kept(later, later), 100).await.unwrap();
        assert_eq!(messages().await.unwrap().0.len(), 0);
    }

    async fn a_name_whose_event_was_forgotten_may_be_used_again(backend: Backend) {
        let client_event_id = |content: u8| Some(ClientEventId { id: "build-17".into(), content: [content; 16] });
        backend.publish_as(Caller::user("ada"), failure("grep"), client_event_id(1)).await.unwrap();
        backend.take(AfterTool, "c1").await;
        let later = Time::from_millis(START + 1_000_000);
        backend.store().prune(kept(later, Time::from_millis(START)), 100).await.unwrap();
        assert!(backend.publish_as(Caller::user("ada"), failure("sed"), client_event_id(2)).await.is_ok());
    }

    async fn an_erased_person_leaves_nothing(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        backend.take(AfterTool, "c1").await;
        backend.store().erase_user("ada".into()).await.unwrap();
        let store = backend.store();
        let error = store.conversation(Caller::user("ada"), "chat".into()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(store.trace(Caller::anyone(), receipt.event_id.to_string()).await.is_err());
        let again = backend.publish(failure("grep")).await;
        assert_eq!(again.verdicts[0].verdict, "held", "the old window is forgotten with the rest");
    }

    async fn idempotency_records_about_an_erased_user_are_erased(backend: Backend) {
        let store = backend.store();
        let once = |key: &str| {
            let names = ["admin", "POST /v1/events", key].map(str::to_owned);
            let [token_id, route, key] = names;
            Some(IdempotencyKey { token_id, route, key, content: [7; 32] })
        };
        let say = |key: &str, conversations: &[&str]| {
            let told = |id: &&str| Incoming::new(failure("grep").in_conversation(id), None);
            let events = conversations.iter().map(told).collect();
            store.publish(Publish { caller: Caller::anyone(), events, once: once(key) })
        };
        for (user, id) in [("ada", "adas"), ("bob", "bobs")] {
            store.put_conversation(Caller::anyone(), id.into(), user.into(), None).await.unwrap();
        }
        say("to ada", &["adas"]).await.unwrap();
        say("to both", &["bobs", "adas"]).await.unwrap();
        let to_bob = say("to bob", &["bobs"]).await.unwrap();
        for user in ["ada", "bob"] {
            let about = Some(user.to_owned());
            store.answer_once(once(user).unwrap(), "before".into(), about).await.unwrap();
        }
        store.erase_user("ada".into()).await.unwrap();
        for (key, conversations) in [("to ada", &["adas"][..]), ("to both", &["bobs", "adas"])] {
            assert_eq!(say(key, conversations).await.unwrap_err().kind, ErrorKind::NotFound, "{key} is not known");
        }
        assert_eq!(say("to bob", &["bobs"]).await.unwrap(), to_bob);
        for (user, said) in [("ada", "after"), ("bob", "before")] {
            assert_eq!(store.answer_once(once(user).unwrap(), "after".into(), None).await.unwrap(), said, "{user}");
        }
    }
}
