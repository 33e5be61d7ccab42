//! Equal requests: attempted once, answered with the first answer.

use std::sync::Arc;

use bellwire_server::Config;
use bellwire_server::channels::{NoSlot, NotifyOutcome, Obstacle};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::pager::{Pager, Script};
use super::{Scene, agent};
use crate::hub::TestHub;

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

/// A hub that starts from what is on the disk of a running one at this moment, as after a crash.
async fn crashed(scene: &Scene) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(scene.hub.folder.path()).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    let pager = Pager::new();
    let hub = TestHub::start_in_with_channels(Config::default(), folder, vec![pager.clone()]).await;
    Scene { hub, pager, health: scene.health.clone(), ada: scene.ada.clone() }
}

#[tokio::test]
async fn a_hub_that_is_killed_while_a_message_waits_for_its_slot_has_sent_nothing_and_a_repeat_sends_it() {
    let scene = Scene::open().await;
    scene.pager.next_slot(None);
    let keyed = |scene: &Scene| {
        let (token, arguments) = (scene.health.clone(), json!({"channel": "pager", "message": "Hello"}));
        let request = scene.hub.client.post(format!("{}/v1/tools/notify", scene.hub.base)).bearer_auth(token);
        let request = request.json(&json!({"arguments": arguments, "context": {"idempotency_key": "k"}}));
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let asking = tokio::spawn(keyed(&scene));
    scene.pager.until_slots_are_asked_for().await;
    let after = crashed(&scene).await;
    asking.abort();
    let answer = keyed(&after).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    assert_eq!((after.pager.texts().len(), scene.pager.texts().len(), after.inbox().await.len()), (1, 0, 1));
}

#[tokio::test]
async fn a_message_without_a_slot_is_told_when_to_try_again() {
    let scene = Scene::open().await;
    scene.pager.next_slot(Some(NoSlot::Busy(std::time::Duration::from_millis(2_500))));
    scene.pager.next_slot(Some(NoSlot::Stopping));
    let keyed = || async {
        let arguments = json!({"channel": "pager", "message": "Hello"});
        scene.notify_as(&scene.health, arguments, json!({"idempotency_key": "k"})).await
    };
    let busy = keyed().await;
    assert_eq!((&busy["error"]["class"], &busy["retry_after_seconds"]), (&json!("overload_rejected"), &json!(3)));
    let stopping = keyed().await;
    assert_eq!(
        (&stopping["error"]["class"], &stopping["error"]["retryable"]),
        (&json!("target_unavailable"), &json!(true))
    );
    assert_eq!(keyed().await["status"], "ok");
}
