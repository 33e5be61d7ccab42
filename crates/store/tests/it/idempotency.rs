use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::event::AgentName;
use bellwire_store::{
    Caller, ClientEventId, ConversationDetails, DeliveryState, ErrorKind, IdempotencyKey, IncomingEvent, Publish,
};
use serde_json::json;

use crate::backends::{Backend, email, failure, on_every_store};
use crate::notify::{message, toast, told};
use crate::outbox::{claim, finish, mail_to, only, start};

pub(crate) fn idempotency_key(route: &str, content: u8) -> IdempotencyKey {
    IdempotencyKey { token_id: "t".into(), route: route.into(), key: "k".into(), content: [content; 32] }
}

fn publish(tool: &str, content: u8) -> Publish {
    let events = vec![IncomingEvent::new(failure(tool), None)];
    Publish { caller: Caller::user("ada"), events, idempotency_key: Some(idempotency_key("POST /v1/events", content)) }
}

fn client_event_id(content: u8) -> Option<ClientEventId> {
    Some(ClientEventId { id: "build-17".into(), content: [content; 16] })
}

on_every_store! {
    async fn the_same_event_sent_twice_happens_once(backend: Backend) {
        let caller = Caller::user("ada");
        let first = backend.publish_as(caller.clone(), failure("grep"), client_event_id(1)).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        let again = backend.publish_as(caller, failure("grep"), client_event_id(1)).await.unwrap();
        assert_eq!(first, again);
        let answer = backend.inject(AfterTool, "c1").await;
        assert!(!answer.block.contains(" x2]"), "{}", answer.block);
    }

    async fn one_name_for_two_events_is_a_conflict(backend: Backend) {
        let caller = Caller::user("ada");
        backend.publish_as(caller.clone(), failure("grep"), client_event_id(1)).await.unwrap();
        let refused = backend.publish_as(caller, failure("sed"), client_event_id(2)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }

    async fn the_names_of_one_sender_never_block_anothers(backend: Backend) {
        let store = backend.store();
        store.put_conversation(Caller::user("bob"), "bobs".into(), "bob".into(), ConversationDetails::default()).await.unwrap();
        backend.publish_as(Caller::user("ada"), failure("grep"), client_event_id(1)).await.unwrap();
        let other = backend.publish_as(Caller::user("bob"), failure("sed").in_conversation("bobs"), client_event_id(2)).await;
        assert!(other.is_ok());
    }

    async fn the_same_name_twice_in_one_call_is_one_event(backend: Backend) {
        let twice = || IncomingEvent::new(failure("grep"), client_event_id(1));
        let publish = Publish { caller: Caller::user("ada"), events: vec![twice(), twice()], idempotency_key: None };
        let receipts = backend.store().publish(publish).await.unwrap();
        assert_eq!(receipts[0], receipts[1]);
    }

    async fn a_call_with_a_name_happens_once_and_answers_as_it_did(backend: Backend) {
        let first = backend.store().publish(publish("grep", 1)).await.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(backend.store().publish(publish("grep", 1)).await.unwrap(), first);
        let refused = backend.store().publish(publish("sed", 2)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        assert!(refused.message.contains("Idempotency-Key 'k'"), "{refused}");
        let answer = backend.inject(AfterTool, "c1").await;
        assert!(answer.block.contains("[tool_executor] tool_fail: grep"), "told once: {}", answer.block);
    }

    async fn repeats_of_a_call_in_flight_get_its_answer(backend: Backend) {
        let store = backend.store();
        let asked: Vec<_> = (0..20).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.publish(publish("grep", 1)).await.unwrap() })
        }).collect();
        let mut answers = Vec::new();
        for answer in asked {
            answers.push(answer.await.unwrap());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    }

    async fn a_refused_call_leaves_its_name_free(backend: Backend) {
        let mut refused = publish("grep", 1);
        refused.events[0] = IncomingEvent::new(failure("grep").in_conversation("not there"), None);
        refused.caller = Caller::anyone();
        assert_eq!(backend.store().publish(refused).await.unwrap_err().kind, ErrorKind::NotFound);
        assert!(backend.store().publish(publish("sed", 2)).await.is_ok());
    }

    async fn a_name_may_be_used_again_after_a_day_and_elsewhere_at_once(backend: Backend) {
        backend.store().publish(publish("grep", 1)).await.unwrap();
        let boundary = backend.store().rotate_boundary(Caller::user("ada"), "chat".into(), AgentName::main(), Some(idempotency_key("rotate", 9))).await;
        let again = backend.store().rotate_boundary(Caller::user("ada"), "chat".into(), AgentName::main(), Some(idempotency_key("rotate", 9))).await;
        assert_eq!(boundary.unwrap(), again.unwrap());
        backend.pass(24 * 60 * 60 * 1000);
        assert!(backend.store().publish(publish("sed", 2)).await.is_ok());
        assert!(backend.store().publish(publish("grep", 1)).await.is_err(), "the new meaning holds now");
    }

    async fn a_delivery_that_is_retried_under_a_name_is_retried_once(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        let refused = || bellwire_store::AttemptOutcome::Refused { reason: "550 no such user".into() };
        let refuse = async |backend: &Backend| {
            let mail = claim(backend).await;
            assert!(start(backend, &mail).await && finish(backend, &mail, refused()).await);
            only(backend).await
        };
        let failed = refuse(&backend).await;
        let first = backend.store().retry_delivery(None, failed.id, Some(idempotency_key("retry", 1))).await.unwrap();
        assert_eq!(first.state, DeliveryState::Waiting);
        // The process dies before anybody hears the answer.
        if backend.is_durable() {
            backend.restart().await;
        }
        let failed = refuse(&backend).await;
        let again = backend.store().retry_delivery(None, failed.id, Some(idempotency_key("retry", 1))).await.unwrap();
        assert_eq!(again, first, "the first answer");
        assert_eq!(only(&backend).await, failed, "and nothing is sent once more");
        assert!(backend.store().claim(email(), 10).await.unwrap().is_empty());
        let conflict = backend.store().retry_delivery(None, failed.id, Some(idempotency_key("retry", 2))).await.unwrap_err();
        assert_eq!(conflict.kind, ErrorKind::Conflict);
    }

    async fn what_a_person_does_under_a_name_is_done_once(backend: Backend) {
        let store = backend.store();
        told(&backend, message("first")).await;
        assert_eq!(store.read_all("ada".into(), Some(idempotency_key("read_all", 1))).await.unwrap(), 1);
        told(&backend, message("second")).await;
        assert_eq!(store.read_all("ada".into(), Some(idempotency_key("read_all", 1))).await.unwrap(), 1, "the first answer");
        assert_eq!(store.unread_count("ada".into()).await.unwrap(), 1, "what came later is unread");

        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("third")).await;
        let waits = only(&backend).await;
        let cancel = async || store.cancel_delivery(None, waits.id, Some(idempotency_key("cancel", 1))).await.unwrap();
        let first = cancel().await;
        store.retry_delivery(None, waits.id, None).await.unwrap();
        assert_eq!(cancel().await, first);
        assert_eq!(only(&backend).await.state, DeliveryState::Waiting, "it was not cancelled a second time");

        let button = json!({"message": "May I?", "severity": "info", "actions": [{"label": "No", "action": "dismiss"}]});
        let id = told(&backend, toast(button)).await;
        let press = async || store.act("ada".into(), id, 0, Some(idempotency_key("act", 1))).await.unwrap();
        let first = press().await;
        backend.pass(1_000);
        assert_eq!(press().await, first);
    }

    async fn an_answer_that_changes_nothing_is_remembered_too(backend: Backend) {
        let store = backend.store();
        assert_eq!(store.answer_once(idempotency_key("test", 1), "first".into(), None).await.unwrap(), "first");
        assert_eq!(store.answer_once(idempotency_key("test", 1), "second".into(), None).await.unwrap(), "first");
        assert_eq!(store.answer_once(idempotency_key("test", 2), "third".into(), None).await.unwrap_err().kind, ErrorKind::Conflict);
    }
}
