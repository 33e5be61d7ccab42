use bellwire_core::InjectionPoint::{AfterTool, TurnStart};
use bellwire_store::{Brought, Caller, ErrorKind, Incoming, Publish};

use crate::backends::{Backend, failure, on_every_store, take};

fn brought(content: u8) -> Option<Brought> {
    Some(Brought { id: "build-17".into(), content: [content; 16] })
}

on_every_store! {
    async fn the_same_event_sent_twice_happens_once(backend: Backend) {
        let caller = Caller::user("ada");
        let first = backend.publish_as(caller.clone(), failure("grep"), brought(1)).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        let again = backend.publish_as(caller, failure("grep"), brought(1)).await.unwrap();
        assert_eq!(first, again);
        let answer = backend.take(AfterTool, "c1").await;
        assert!(!answer.block.contains(" x2]"), "{}", answer.block);
    }

    async fn one_name_for_two_events_is_a_conflict(backend: Backend) {
        let caller = Caller::user("ada");
        backend.publish_as(caller.clone(), failure("grep"), brought(1)).await.unwrap();
        let refused = backend.publish_as(caller, failure("sed"), brought(2)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }

    async fn the_names_of_one_sender_never_block_anothers(backend: Backend) {
        let store = backend.store();
        store.put_conversation(Caller::user("bob"), "bobs".into(), "bob".into(), None).await.unwrap();
        backend.publish_as(Caller::user("ada"), failure("grep"), brought(1)).await.unwrap();
        let other = backend.publish_as(Caller::user("bob"), failure("sed").in_conversation("bobs"), brought(2)).await;
        assert!(other.is_ok());
    }

    async fn the_same_name_twice_in_one_call_is_one_event(backend: Backend) {
        let twice = || Incoming { event: failure("grep"), brought: brought(1) };
        let publish = Publish { caller: Caller::user("ada"), events: vec![twice(), twice()] };
        let receipts = backend.store().publish(publish).await.unwrap();
        assert_eq!(receipts[0], receipts[1]);
    }

    async fn asking_twice_gives_the_same_answer(backend: Backend) {
        backend.publish(failure("grep")).await;
        let first = backend.take(AfterTool, "c1").await;
        backend.publish(failure("sed")).await;
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(backend.take(AfterTool, "c1").await, first);
        let refused = backend.store().take(take(TurnStart, "c1")).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }

    async fn an_empty_answer_is_remembered_too(backend: Backend) {
        let empty = backend.take(AfterTool, "c1").await;
        backend.publish(failure("grep")).await;
        assert_eq!(backend.take(AfterTool, "c1").await, empty);
        assert_eq!(empty.block, "");
    }
}
