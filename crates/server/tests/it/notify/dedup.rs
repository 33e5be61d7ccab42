//! Equal requests: attempted once, answered with the first answer.

use std::sync::Arc;

use bellwire_server::channels::{NotifyOutcome, Obstacle};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::pager::Script;
use super::{Scene, agent};

fn linked(request: u128, message: &str) -> Value {
    json!({
        "channel": "pager", "message": message,
        "request_context": {
            "request_id": uuid::Uuid::from_u128(request), "source_channel": "mcp", "source_endpoint_identity": "cron",
            "source_sender_identity": "cron",
        },
    })
}

fn without_call_id(mut answer: Value) -> String {
    answer.as_object_mut().unwrap().remove("call_id");
    answer.to_string()
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_byte_for_byte_also_after_the_settings_have_changed() {
    let scene = Scene::open().await;
    let first = without_call_id(scene.notify(linked(1, "Hello")).await);
    scene.change(json!({"pager": {"enabled": false}})).await;
    assert_eq!(without_call_id(scene.notify(linked(1, "Hello")).await), first);
    assert!(scene.refusal(linked(2, "Hello")).await.contains("switched pager off"));
    assert_eq!(scene.pager.messages().len(), 1);
    assert_eq!(scene.inbox().await.len(), 1);
}

#[tokio::test]
async fn requests_that_differ_in_anything_are_sent_each() {
    let scene = Scene::open().await;
    let bank = agent(&scene.hub, "bank", "ada").await;
    let mut with_subject = linked(1, "Hello");
    with_subject["subject"] = json!("Hi");
    for call in [linked(1, "Hello"), linked(2, "Hello"), linked(1, "Hello!"), with_subject] {
        assert_eq!(scene.notify(call).await["status"], "ok");
    }
    assert_eq!(scene.notify_as(&bank, linked(1, "Hello"), json!({})).await["status"], "ok");
    assert_eq!(scene.pager.messages().len(), 5);
}

#[tokio::test]
async fn calls_at_once_are_one_attempt_with_one_answer() {
    let scene = Scene::open().await;
    let released = Arc::new(Notify::new());
    scene.pager.next(Script::Hold(released.clone()));
    let calls = futures_util::future::join_all((0..20).map(|_| scene.notify(linked(1, "Hello"))));
    let (answers, ()) = tokio::join!(calls, async {
        scene.pager.until(1).await;
        released.notify_one();
    });
    assert_eq!(answers[0]["status"], "ok", "{}", answers[0]);
    let first = without_call_id(answers[0].clone());
    assert!(answers.into_iter().all(|answer| without_call_id(answer) == first));
    assert_eq!(scene.pager.messages().len(), 1);
}

#[tokio::test]
async fn a_failure_that_can_be_retried_releases_the_key_and_a_permanent_one_does_not() {
    let scene = Scene::open().await;
    let busy = |reason: &str| {
        let retry_after = Some(std::time::Duration::from_secs(7));
        Script::Outcome(NotifyOutcome::TryAgain { obstacle: Obstacle::Unavailable, reason: reason.into(), retry_after })
    };
    scene.pager.next(busy("429"));
    let first = scene.notify(linked(1, "Hello")).await;
    assert_eq!((&first["error"]["retryable"], &first["retry_after_seconds"]), (&json!(true), &json!(7)), "{first}");
    assert_eq!(scene.notify(linked(1, "Hello")).await["status"], "ok");
    scene.pager.next(Script::Outcome(NotifyOutcome::Refused { reason: "no such page".into() }));
    let refused = scene.notify(linked(2, "Hello")).await;
    assert_eq!(
        (&refused["error"]["class"], &refused["error"]["retryable"]),
        (&json!("validation_error"), &json!(false))
    );
    assert_eq!(without_call_id(scene.notify(linked(2, "Hello")).await), without_call_id(refused));
    assert_eq!(scene.pager.messages().len(), 3);
    assert_eq!(scene.inbox().await.len(), 2, "a retry adds no second item");
    assert_eq!(scene.decisions().await, ["failed", "delivered", "failed"]);
}

#[tokio::test]
async fn without_a_request_context_a_repeat_is_recognised_by_token_and_idempotency_key() {
    let scene = Scene::open().await;
    let call = json!({"channel": "pager", "message": "Hello"});
    let keyed = json!({"idempotency_key": "k1"});
    let first = scene.notify_as(&scene.health, call.clone(), keyed.clone()).await;
    let second = scene.notify_as(&scene.health, call.clone(), keyed.clone()).await;
    assert_eq!(first["delivery"], second["delivery"]);
    let other = agent(&scene.hub, "health", "ada").await;
    assert_eq!(scene.notify_as(&other, call.clone(), keyed).await["status"], "ok");
    for _ in 0..2 {
        assert_eq!(scene.notify(call.clone()).await["status"], "ok", "without a key every call is its own");
    }
    assert_eq!(scene.pager.messages().len(), 4);
}
