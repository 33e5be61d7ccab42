//! The scenarios of the notify contract, each by its name. Those that need no hub are in
//! `crates/core/tests/notify_contract.rs`.

use bellwire_core::notify::Intent;
use bellwire_server::channels::{NotifyOutcome, Obstacle};
use bellwire_server::tools::CORE_TOOL_NAMES;
use serde_json::json;

use super::pager::Script;
use super::peer::Peer;
use super::three::{start_hub, start_hub_at, start_switchboard};
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
    let switchboard = Peer::switchboard().await;
    let scene = start_hub_at(&switchboard.url, "bw_token").await;
    let call = json!({"channel": "pager", "message": "Hello", "intent": "send"});
    assert_eq!(scene.notify(call.clone()).await["status"], "ok");
    let mut envelope = switchboard.envelopes().remove(0);
    assert!(envelope["request_context"]["request_id"].take().is_string());
    assert_eq!(
        envelope,
        json!({
            "schema_version": "notify.v1",
            "origin_butler": "health",
            "delivery": {"intent": "send", "channel": "pager", "message": "Hello", "recipient": super::ADAS},
            "request_context": {
                "request_id": null, "source_channel": "mcp", "source_endpoint_identity": "butler:health",
                "source_sender_identity": "health",
            },
        })
    );
    let scene = Scene::open().await;
    let answer = scene.notify(call).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let message = scene.pager.messages().remove(0);
    assert_eq!((message.intent, message.message.as_deref()), (Intent::Send, Some("Hello")));
    assert_eq!((message.origin.as_str(), message.target.target.as_str()), ("health", super::ADAS));
    assert_eq!(message.conversation_id.as_deref(), Some("chat"));
}

#[tokio::test]
async fn request_context_forwarded_to_envelope() {
    let switchboard = Peer::switchboard().await;
    let scene = start_hub_at(&switchboard.url, "bw_token").await;
    let context = scene.says(7).await;
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes", "request_context": wire(&context)});
    assert_eq!(scene.notify(reply.clone()).await["status"], "ok");
    assert_eq!(switchboard.envelopes()[0]["request_context"], wire(&context), "as it came");
    let scene = Scene::open().await;
    scene.says(7).await;
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
    let switchboard = Peer::switchboard().await;
    let scene = start_hub_at(&switchboard.url, "bw_token").await;
    assert_eq!(scene.notify(json!({"channel": "pager", "message": "Hello"})).await["status"], "ok");
    let call = switchboard.asked().remove(0);
    assert_eq!((&call["path"], &call["tool"]), (&json!("/mcp/switchboard"), &json!("deliver")));
    let arguments = &call["arguments"];
    assert_eq!((&arguments["source_butler"], &arguments["user_id"]), (&json!("health"), &json!("ada")));
    let messenger = Peer::start(|_| json!({})).await;
    let hop = start_switchboard(&messenger.url, "bw_token").await;
    assert_eq!(start_hub(&hop).await.notify(json!({"channel": "pager", "message": "Hello"})).await["status"], "error");
    let call = messenger.asked().remove(0);
    assert_eq!((&call["path"], &call["tool"]), (&json!("/mcp/messenger"), &json!("route.execute")));
    let route = &call["arguments"];
    assert_eq!((&route["schema_version"], &route["target"]["butler"]), (&json!("route.v1"), &json!("messenger")));
    assert_eq!(route["request_context"]["source_endpoint_identity"], "switchboard");
    assert_eq!(route["input"]["context"]["notify_request"]["origin_butler"], "health");
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
