//! Who may be reached, and what their settings and limits say.

use bellwire_server::Config;
use bellwire_server::channels::NotifyOutcome;
use reqwest::StatusCode;
use serde_json::json;

use super::pager::Script;
use super::{ADAS, Scene, agent, allowing};

fn send() -> serde_json::Value {
    json!({"channel": "pager", "message": "Hello"})
}

fn send_to(recipient: &str) -> serde_json::Value {
    json!({"channel": "pager", "message": "Hello", "recipient": recipient})
}

#[tokio::test]
async fn a_send_reaches_the_agents_user_and_adds_one_inbox_item_and_no_other_delivery() {
    let scene = Scene::open().await;
    assert_eq!(scene.notify(json!({"channel": "pager", "message": "Hello", "subject": "Hi"})).await["status"], "ok");
    assert_eq!(scene.notify(send_to(ADAS)).await["status"], "ok", "her own target may be named");
    let inbox = scene.inbox().await;
    assert_eq!(inbox.len(), 2);
    assert_eq!(
        (&inbox[1]["message"], &inbox[1]["title"], &inbox[1]["origin"]),
        (&json!("Hello"), &json!("Hi"), &json!("health"))
    );
    assert_eq!(inbox[1]["conversation_id"], "chat");
    assert_eq!(scene.pager.outbound().len(), 0);
}

#[tokio::test]
async fn a_foreign_recipient_is_refused_and_recorded_without_its_address() {
    let scene = Scene::open().await;
    let bob = scene.hub.token("user", "bob").await;
    scene.pair("bob", &bob, "555:2").await;
    let of_bob = scene.refusal(send_to("555:2")).await;
    let of_nobody = scene.refusal(send_to("555:3")).await;
    assert_eq!(of_bob, of_nobody, "it does not say whether the target exists");
    assert!(of_bob.contains("not on the allow-list of 'health'"), "{of_bob}");
    assert_eq!(scene.pager.messages().len(), 0);
    let ledger = scene.ledger().await;
    assert_eq!(ledger.len(), 2);
    for entry in ledger {
        assert_eq!(
            (entry.decided.user_id.as_deref(), entry.decided.reason.as_deref()),
            (Some("ada"), Some("invalid recipient"))
        );
    }
}

#[tokio::test]
async fn a_call_without_recipient_and_user_is_refused() {
    let scene = Scene::open().await;
    let roaming = agent(&scene.hub, "roaming", "*").await;
    let answer = scene.notify_as(&roaming, send(), json!({})).await;
    assert!(answer["error"].as_str().unwrap().starts_with("Missing required 'recipient' parameter"), "{answer}");
    let answer = scene.notify_as(&roaming, send(), json!({"user_id": "ada"})).await;
    assert_eq!(answer["status"], "ok", "{answer}");
}

#[tokio::test]
async fn a_target_that_is_not_confirmed_not_enabled_or_muted_is_refused_with_the_reason() {
    let scene = Scene::open().await;
    let bob = agent(&scene.hub, "health", "bob").await;
    let answer = scene.notify_as(&bob, send(), json!({})).await;
    assert_eq!(answer["error"], "Your user has not set up pager, so there is no target to send to");
    scene.change(json!({"muted_origins": ["health"]})).await;
    assert_eq!(scene.refusal(send()).await, "The recipient has muted 'health'");
    scene.change(json!({"muted_origins": [], "pager": {"enabled": false}})).await;
    assert_eq!(scene.refusal(send()).await, "Your user has switched pager off");
    scene.change(json!({"pager": {"enabled": true, "number": "555:9"}})).await;
    assert!(scene.refusal(send()).await.contains("has not confirmed their pager target"));
    assert_eq!(scene.pager.messages().len(), 0);
    assert_eq!(scene.decisions().await, ["refused"; 4]);
    assert_eq!(scene.inbox().await.len(), 0);
}

#[tokio::test]
async fn an_allow_listed_target_is_reached_within_its_own_limit() {
    let mut config = allowing(&["pager:555:7", "pager:555:8"]);
    config.limits.notifications_per_hour = 2;
    let scene = Scene::open_with(config).await;
    for _ in 0..2 {
        assert_eq!(scene.notify(send_to("555:7")).await["status"], "ok");
    }
    let over = scene.notify(send_to("555:7")).await;
    assert_eq!((&over["error"]["class"], &over["error"]["retryable"]), (&json!("overload_rejected"), &json!(true)));
    assert!(over["retry_after_seconds"].as_u64() > Some(3_500), "{over}");
    assert_eq!(scene.notify(send_to("555:8")).await["status"], "ok");
    assert_eq!(scene.inbox().await.len(), 0, "it is nobody's");
    let bank = agent(&scene.hub, "bank", "ada").await;
    let answer = scene.notify_as(&bank, send_to("555:8"), json!({})).await;
    assert_eq!(answer["error_class"], "validation_error", "the list is health's: {answer}");
}

#[tokio::test]
async fn an_allow_listed_target_of_a_person_obeys_that_persons_settings() {
    let scene = Scene::open_with(allowing(&["pager:555:2"])).await;
    let bob = scene.hub.token("user", "bob").await;
    scene.pair("bob", &bob, "555:2").await;
    assert_eq!(scene.notify(send_to("555:2")).await["status"], "ok");
    let (_, inbox) = scene.hub.get(&bob, "/v1/users/bob/notifications").await;
    assert_eq!(inbox["items"][0]["conversation_id"], json!(null), "Ada's conversation means nothing to Bob: {inbox}");
    let path = "/v1/users/bob/settings";
    let muted = json!({"muted_origins": ["health"]});
    assert_eq!(scene.hub.call(&bob, reqwest::Method::PATCH, path, Some(muted)).await.0, StatusCode::OK);
    assert_eq!(scene.refusal(send_to("555:2")).await, "The recipient has muted 'health'");
}

#[tokio::test]
async fn a_target_that_a_person_wrote_and_did_not_confirm_is_not_theirs() {
    let scene = Scene::open_with(allowing(&["pager:555:2"])).await;
    let bob = scene.hub.token("user", "bob").await;
    let change = json!({"pager": {"enabled": true, "number": "555:2"}});
    let (status, _) = scene.hub.call(&bob, reqwest::Method::PATCH, "/v1/users/bob/settings", Some(change)).await;
    assert_eq!(status, StatusCode::OK);
    let answer = scene.notify(send_to("555:2")).await;
    assert_eq!(answer["status"], "ok", "the operator allows it: {answer}");
    let (_, inbox) = scene.hub.get(&bob, "/v1/users/bob/notifications").await;
    assert_eq!(inbox["items"], json!([]), "Bob has not shown that it is his");
}

#[tokio::test]
async fn over_the_recipients_limit_a_send_is_rejected_and_replies_are_not() {
    let mut config = Config::default();
    config.limits.notifications_per_hour = 1;
    let scene = Scene::open_with(config).await;
    scene.says(1).await;
    scene.reads("call_1").await;
    assert_eq!(scene.notify(send()).await["status"], "ok");
    let over = scene.notify(json!({"channel": "pager", "message": "again"})).await;
    assert_eq!(over["error"]["class"], "overload_rejected", "{over}");
    assert!(over["retry_after_seconds"].as_u64() > Some(3_000), "{over}");
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes"});
    assert_eq!(scene.notify(reply).await["status"], "ok");
    assert_eq!(scene.inbox().await.len(), 1);
}

#[tokio::test]
async fn quiet_hours_defer_a_send_and_never_a_reply() {
    let scene = Scene::open().await;
    scene.says(1).await;
    scene.reads("call_1").await;
    // They never end while the test runs.
    let (now, later) = (super::clock(-1), super::clock(3));
    scene.change(json!({"quiet_hours": {"start": now, "end": later, "timezone": "UTC"}})).await;
    let answer = scene.notify(json!({"channel": "pager", "message": "Hello", "subject": "Hi"})).await;
    assert_eq!(answer["status"], "deferred", "{answer}");
    let inbox = scene.inbox().await;
    assert_eq!((inbox.len(), &inbox[0]["id"]), (1, &answer["notification_id"]));
    assert!(answer["deliver_at"].is_string() && answer["reason"].is_string(), "{answer}");
    let (_, deliveries) = scene.hub.get(&scene.ada, "/v1/deliveries?state=waiting").await;
    assert_eq!(deliveries["items"].as_array().unwrap().len(), 1, "{deliveries}");
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes"});
    assert_eq!(scene.notify(reply).await["status"], "ok");
    assert_eq!(scene.decisions().await, ["deferred", "delivered"]);
}

#[tokio::test]
async fn a_person_who_blocked_the_hub_is_told_and_the_channel_is_switched_off() {
    let scene = Scene::open().await;
    scene.pager.next(Script::Outcome(NotifyOutcome::Unreachable { reason: "blocked by the user".into() }));
    let answer = scene.notify(send()).await;
    assert_eq!((&answer["error"]["class"], &answer["error"]["retryable"]), (&json!("validation_error"), &json!(false)));
    let (_, settings) = scene.hub.get(&scene.ada, "/v1/users/ada/settings").await;
    assert_eq!(settings["pager"]["enabled"], false, "{settings}");
    let inbox = scene.inbox().await;
    assert!(inbox.iter().any(|item| item["message"].as_str().unwrap().contains("switched off")), "{inbox:?}");
    assert_eq!(scene.refusal(send()).await, "Your user has switched pager off");
}

#[tokio::test]
async fn a_target_that_is_not_the_checked_one_when_it_is_used_gets_nothing() {
    let scene = Scene::open_with(allowing(&["pager:555:2", "pager:555:3"])).await;
    scene.pager.next_resolved(["555:2", "555:3"]);
    let answer = scene.notify(json!({"channel": "pager", "message": "Hello", "recipient": "555:2"})).await;
    assert_eq!(
        (&answer["error"]["class"], &answer["error"]["retryable"]),
        (&json!("internal_error"), &json!(false)),
        "{answer}"
    );
    assert_eq!((scene.pager.messages().len(), scene.decisions().await), (0, vec!["failed".to_owned()]));
}
