//! An event reaches mailboxes that nothing has used for a day: everything in them expires first, in small steps.

use bellwire_core::{Event, Severity};
use bellwire_store::{
    Caller, ConversationDetails, ErrorKind, IdempotencyKey, IncomingEvent, Publish, Receipt, StoreError,
};
use serde_json::json;

use crate::backends::{Backend, failure};
use crate::work::{Reports, hundred_full_mailboxes, to_person};

/// How long a notification of a bundled subscriber may wait.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A hundred open conversations of one person, each with 200 expired notifications, none of them in memory.
async fn hundred_overdue_mailboxes() -> (Backend, Reports) {
    let mut backend = Backend::sqlite().await;
    hundred_full_mailboxes(&backend).await;
    backend.pass(DAY_MS + 1);
    for number in 0..100 {
        let id = format!("chat-{number}");
        backend
            .store()
            .put_conversation(Caller::anyone(), id, "ada".into(), ConversationDetails::default())
            .await
            .unwrap();
    }
    let reports = Reports::of(&mut backend).await;
    (backend, reports)
}

async fn publish(backend: &Backend, events: Vec<Event>, key: Option<&str>) -> Result<Vec<Receipt>, StoreError> {
    let idempotency_key = key.map(|key| IdempotencyKey {
        token_id: "t".into(),
        route: "events".into(),
        key: key.into(),
        content: [1; 32],
    });
    let events = events.into_iter().map(|event| IncomingEvent::new(event, None)).collect();
    backend.store().publish(Publish { caller: Caller::anyone(), events, idempotency_key }).await
}

async fn pending(backend: &Backend, number: usize) -> usize {
    backend.store().conversation(Caller::anyone(), format!("chat-{number}")).await.unwrap().pending
}

#[tokio::test]
async fn one_event_for_a_hundred_overdue_mailboxes_is_published_in_small_steps() {
    let (mut backend, reports) = hundred_overdue_mailboxes().await;
    let other = || backend.publish_as(Caller::user("bob"), failure("grep"), None);
    let (receipts, other) = tokio::join!(publish(&backend, vec![to_person(9_000)], Some("k")), other());
    other.unwrap();
    let receipts = receipts.unwrap();
    let (steps, read) = reports.check("an event for 100 overdue mailboxes");
    assert!(steps <= 60 && read <= 21_000, "{steps} steps, {read} rows: nothing is read in circles");
    assert_eq!(receipts[0].verdicts.len(), 100);
    assert_eq!(publish(&backend, vec![to_person(9_000)], Some("k")).await.unwrap(), receipts, "it was published once");
    backend.restart().await;
    for number in 0..100 {
        assert_eq!(pending(&backend, number).await, 1, "the others have expired");
    }
}

#[tokio::test]
async fn a_hundred_events_for_an_overdue_mailbox_each_are_published_in_small_steps() {
    let (backend, reports) = hundred_overdue_mailboxes().await;
    let task = |number: usize| {
        let payload = json!({ "task_id": number });
        let event = Event::new("task.background.completed", "runner", Severity::Info, payload).unwrap();
        event.for_person("ada").in_conversation(&format!("chat-{number}"))
    };
    let receipts = publish(&backend, (0..100).map(task).collect(), None).await.unwrap();
    assert_eq!(receipts.len(), 100);
    reports.check("100 events for 100 overdue mailboxes");
    assert_eq!(pending(&backend, 99).await, 1);
}

#[tokio::test]
async fn a_call_that_a_full_mailbox_refuses_after_timers_fired_publishes_nothing() {
    let (backend, reports) = hundred_overdue_mailboxes().await;
    let says = |number: usize| {
        let message = Event::user_message(&format!("message {number}")).unwrap();
        message.in_conversation("chat-7").for_person("ada")
    };
    publish(&backend, (0..200).map(says).collect(), None).await.unwrap();
    reports.check("200 messages for an overdue mailbox");
    let refused = publish(&backend, vec![to_person(9_000), says(200)], Some("k")).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Full);
    assert!(!refused.message.contains("are stored"), "{refused}");
    let reports = reports.take();
    assert!(reports.len() > 5 && reports.iter().all(|report| report.events == 0), "{} steps", reports.len());
    assert_eq!(pending(&backend, 99).await, 0, "timers fire all the same");
}
