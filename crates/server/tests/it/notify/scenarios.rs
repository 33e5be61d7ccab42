//! The scenarios of the notify contract, each by its name. Those that need no hub are in
//! `crates/core/tests/notify_contract.rs`.

use bellwire_core::notify::Intent;
use bellwire_server::channels::{NotifyOutcome, Obstacle};
use bellwire_server::tools::CORE_TOOL_NAMES;
use serde_json::json;

use super::pager::Script;
use super::{Scene, agent, wire};
use crate::mcp::Client;

#[tokio::test]
async fn notify_tool_is_a_core_tool() {
    assert!(CORE_TOOL_NAMES.contains(&"notify"));
    let scene = Scene::open().await;
    let (client, _) = Client::introduced(&scene.hub, &scene.health, "2025-11-25").await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, CORE_TOOL_NAMES);
    let notify = tools.iter().find(|tool| tool["name"] == "notify").unwrap();
    let arguments: Vec<&String> = notify["inputSchema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(arguments, ["channel", "message", "recipient", "subject", "intent", "emoji", "request_context"]);
}

#[tokio::test]
async fn send_intent_envelope() {
    let scene = Scene::open().await;
    let answer = scene.notify(json!({"channel": "pager", "message": "Hello", "intent": "send"})).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let message = scene.pager.messages().remove(0);
    assert_eq!((message.intent, message.message.as_deref()), (Intent::Send, Some("Hello")));
    assert_eq!((message.origin.as_str(), message.target.target.as_str()), ("health", super::ADAS));
}

#[tokio::test]
async fn request_context_forwarded_to_envelope() {
    let scene = Scene::open().await;
    let context = scene.says(7).await;
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes", "request_context": wire(&context)});
    assert_eq!(scene.notify(reply).await["status"], "ok");
    let message = scene.pager.messages().remove(0);
    assert_eq!(message.target.thread, context.source_thread_identity);
}

#[tokio::test]
async fn request_context_from_runtime_session() {
    let scene = Scene::open().await;
    let first = scene.says(7).await;
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes"});
    let refused = scene.notify(reply.clone()).await;
    let error = refused["error"].as_str().unwrap();
    assert!(error.starts_with("Missing required request_context field 'request_id'"), "{refused}");
    let shown = refused["notifications"].as_str().unwrap();
    assert!(shown.contains("are you there?"), "the message came with the result: {shown}");
    assert_eq!(scene.notify(reply.clone()).await["status"], "ok");
    let second = scene.says(8).await;
    scene.reads("call_2").await;
    assert_eq!(scene.notify(reply).await["status"], "ok");
    let threads: Vec<_> = scene.pager.messages().into_iter().map(|message| message.target.thread).collect();
    assert_eq!(threads, [first.source_thread_identity, second.source_thread_identity]);
}

#[tokio::test]
async fn notify_routed_through_switchboard() {
    let scene = Scene::open().await;
    assert_eq!(scene.notify(json!({"channel": "pager", "message": "Hello"})).await["status"], "ok");
    assert_eq!(scene.pager.texts(), ["Hello"]);
    assert_eq!(scene.decisions().await, ["delivered"]);
}

#[tokio::test]
async fn successful_delivery_response() {
    let scene = Scene::open().await;
    let mut answer = scene.notify(json!({"channel": "pager", "message": "Hello"})).await;
    answer.as_object_mut().unwrap().remove("call_id");
    assert_eq!(answer, json!({"status": "ok", "delivery": {"channel": "pager", "delivery_id": "page-1"}}));
}

#[tokio::test]
async fn failed_delivery_response() {
    let scene = Scene::open().await;
    let (obstacle, reason) = (Obstacle::Unavailable, "the network is down".to_owned());
    scene.pager.next(Script::Outcome(NotifyOutcome::TryAgain { obstacle, reason, retry_after: None }));
    let mut answer = scene.notify(json!({"channel": "pager", "message": "Hello"})).await;
    answer.as_object_mut().unwrap().remove("call_id");
    let error = json!({"class": "target_unavailable", "message": "the network is down", "retryable": true});
    assert_eq!(answer, json!({"status": "error", "error": error}));
}

#[tokio::test]
async fn origin_butler_set_automatically() {
    let scene = Scene::open().await;
    let bank = agent(&scene.hub, "bank", "ada").await;
    for token in [&scene.health, &bank] {
        let answer = scene.notify_as(token, json!({"channel": "pager", "message": "Hello"}), json!({})).await;
        assert_eq!(answer["status"], "ok", "{answer}");
    }
    let origins: Vec<String> = scene.pager.messages().into_iter().map(|message| message.origin).collect();
    assert_eq!(origins, ["health", "bank"]);
    let forged = json!({"channel": "pager", "message": "Hello", "origin_butler": "bank"});
    assert!(scene.refusal(forged).await.starts_with("Unknown argument 'origin_butler'"));
}

#[tokio::test]
async fn duplicate_notify_tolerated() {
    let scene = Scene::open().await;
    let context = scene.says(7).await;
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes", "request_context": wire(&context)});
    let first = scene.notify(reply.clone()).await;
    let second = scene.notify(reply).await;
    assert_eq!((&first["status"], &first["delivery"]), (&json!("ok"), &second["delivery"]));
    assert_eq!(scene.pager.messages().len(), 1);
}
