//! What the caller is told about an attempt: only what can be proven.

use std::sync::Arc;

use bellwire_server::Config;
use bellwire_server::channels::{NotifyOutcome, Obstacle};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Scene;
use super::pager::Script;
use crate::mailed::wait_for;

fn send(message: &str) -> Value {
    json!({"channel": "pager", "message": message})
}

#[tokio::test]
async fn every_outcome_of_the_channel_has_its_class() {
    let scene = Scene::open().await;
    let reason = || "because".to_owned();
    let again = |obstacle| NotifyOutcome::TryAgain { obstacle, reason: reason(), retry_after: None };
    let outcomes = [
        (NotifyOutcome::Refused { reason: reason() }, "validation_error", false, "failed"),
        (again(Obstacle::Unavailable), "target_unavailable", true, "failed"),
        (again(Obstacle::TimedOut), "timeout", true, "failed"),
        (NotifyOutcome::Unknown { reason: reason() }, "timeout", false, "unknown"),
        (
            NotifyOutcome::Partial { delivery_id: "p1".into(), further_parts: Vec::new(), parts: 3, reason: reason() },
            "internal_error",
            false,
            "failed",
        ),
    ];
    for (number, (outcome, class, retryable, decision)) in outcomes.into_iter().enumerate() {
        let is_unknown = matches!(outcome, NotifyOutcome::Unknown { .. });
        let is_partial = matches!(outcome, NotifyOutcome::Partial { .. });
        scene.pager.next(Script::Outcome(outcome));
        let answer = scene.notify(send(&format!("message {number}"))).await;
        assert_eq!(
            (&answer["error"]["class"], &answer["error"]["retryable"]),
            (&json!(class), &json!(retryable)),
            "{answer}"
        );
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(message.starts_with("Delivery outcome unknown"), is_unknown, "{message}");
        assert_eq!(answer["delivery"]["delivery_id"] == "p1", is_partial, "{answer}");
        assert!(!is_partial || message.starts_with("1 of 3 parts delivered"), "{message}");
        assert_eq!(scene.decisions().await.last().map(String::as_str), Some(decision));
    }
}

/// A hub whose callers wait a second.
async fn impatient() -> Scene {
    let mut config = Config::default();
    config.limits.request_seconds = 1;
    Scene::open_with(config).await
}

#[tokio::test]
async fn an_attempt_without_an_outcome_in_time_is_unknown_goes_on_and_a_repeat_gets_its_outcome() {
    let scene = impatient().await;
    let released = Arc::new(Notify::new());
    scene.pager.next(Script::Hold(released.clone()));
    let keyed = || scene.notify_as(&scene.health, send("Hello"), json!({"idempotency_key": "k"}));
    let answer = keyed().await;
    assert_eq!((&answer["error"]["class"], &answer["error"]["retryable"]), (&json!("timeout"), &json!(false)));
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("Delivery outcome unknown"), "{answer}");
    let joined = keyed().await;
    assert_eq!(joined["error"], answer["error"], "a repeat joins it");
    assert_eq!(scene.decisions().await, [""; 0], "nothing is decided yet");
    released.notify_one();
    wait_for("the outcome", || async { !scene.decisions().await.is_empty() }).await;
    assert_eq!(scene.decisions().await, ["delivered"]);
    assert_eq!(keyed().await["delivery"]["delivery_id"], "page-1");
    assert_eq!(scene.pager.messages().len(), 1);
}

#[tokio::test]
async fn a_caller_that_hangs_up_does_not_end_the_attempt() {
    let scene = Scene::open().await;
    let released = Arc::new(Notify::new());
    scene.pager.next(Script::Hold(released.clone()));
    tokio::select! {
        answer = scene.notify(send("Hello")) => panic!("{answer}"),
        () = scene.pager.until(1) => {}
    }
    released.notify_one();
    wait_for("the outcome", || async { !scene.decisions().await.is_empty() }).await;
    assert_eq!(scene.decisions().await, ["delivered"]);
}

#[tokio::test]
async fn a_channel_that_fails_after_the_provider_accepted_is_unknown_and_final() {
    let scene = Scene::open().await;
    scene.pager.next(Script::Panic);
    let keyed = || scene.notify_as(&scene.health, send("Hello"), json!({"idempotency_key": "k"}));
    let answer = keyed().await;
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("Delivery outcome unknown"), "{answer}");
    assert_eq!(keyed().await["error"], answer["error"]);
    assert_eq!(scene.pager.messages().len(), 1, "it is not sent again");
    assert_eq!(scene.decisions().await, ["unknown"]);
}
