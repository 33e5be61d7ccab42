//! Bugs of the system that the notify contract comes from, each by its name: none of them is possible here.

use std::sync::Arc;

use bellwire_server::channels::{NotifyOutcome, Obstacle};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use telegram_standin::Fault;
use tokio::sync::Notify;

use super::daemons::route;
use super::pager::Script;
use super::peer::Peer;
use super::three::{start_hub, start_hub_at, start_switchboard};
use super::{ADAS, Scene, wire};
use crate::mcp::Client;
use crate::telegram::Chat;

fn send(message: &str) -> Value {
    json!({"channel": "pager", "message": message})
}

/// Sends the same call again and again while the provider is down.
async fn outage(scene: &Scene, calls: usize) -> Vec<Value> {
    let mut answers = Vec::new();
    for number in 0..calls {
        let (obstacle, reason) = (Obstacle::Unavailable, "the network is down".to_owned());
        scene.pager.next(Script::Outcome(NotifyOutcome::TryAgain { obstacle, reason, retry_after: None }));
        answers.push(scene.notify(send(&number.to_string())).await);
    }
    answers
}

#[tokio::test]
async fn deliveries_failed_silently_because_the_forwarded_context_failed_the_messengers_caller_check() {
    let scene = Scene::open().await;
    let inbound = scene.says(7).await;
    let trusted = scene.daemon(Some("switchboard")).await;
    // The context of the route is the Switchboard's, and the one that the request came with stays inside.
    let mut carried = route("health");
    let request = &mut carried["input"]["context"]["notify_request"];
    request["delivery"] = json!({"intent": "reply", "channel": "pager", "message": "Yes"});
    request["request_context"] = wire(&inbound);
    carried["request_context"]["request_id"] = json!(inbound.request_id);
    assert_eq!(scene.execute(&trusted, &carried).await["status"], "ok");
    // A context that is forwarded in its place is an error, and not silent.
    carried["request_context"] = wire(&inbound);
    let answer = scene.execute(&trusted, &carried).await;
    assert_eq!((&answer["status"], &answer["result"]["notify_response"]["status"]), (&json!("error"), &json!("error")));
    assert_eq!(scene.decisions().await, ["delivered", "refused"]);
}

#[tokio::test]
async fn the_router_itself_called_notify_before_any_butler_had_worked() {
    let scene = Scene::open().await;
    for origin in ["switchboard", "messenger"] {
        let daemon = scene.daemon(Some(origin)).await;
        let body = json!({"arguments": send("Hello"), "context": {"user_id": "ada"}});
        let (status, _) = scene.hub.post(&daemon, "/v1/tools/notify", body).await;
        assert_eq!(status, reqwest::StatusCode::FORBIDDEN, "{origin}");
        let (status, _) = scene.mcp(&daemon, "/mcp", "notify", &send("Hello")).await;
        assert_eq!(status, reqwest::StatusCode::FORBIDDEN, "{origin}");
    }
    assert_eq!(scene.pager.messages().len(), 0);
}

#[tokio::test]
async fn bare_string_errors_gave_the_model_nothing_to_act_on() {
    let scene = Scene::open().await;
    let fixes = [
        (json!({"channel": "sms", "message": "x"}), "Must be one of: "),
        (json!({"channel": "pager"}), "needs the text to deliver"),
        (json!({"channel": "pager", "message": "x", "intent": "shout"}), "Must be one of: send, reply, react"),
        (json!({"channel": "pager", "intent": "react"}), "needs one emoji"),
        (json!({"channel": "pager", "message": "x", "recipient": "555:9"}), "Leave 'recipient' out"),
    ];
    for (call, fix) in fixes {
        // `refusal` checks class and retryable.
        assert!(scene.refusal(call.clone()).await.contains(fix), "{call}");
    }
    let failed = outage(&scene, 1).await.remove(0);
    assert_eq!(
        (&failed["error"]["class"], &failed["error"]["retryable"]),
        (&json!("target_unavailable"), &json!(true))
    );
}

#[tokio::test]
async fn a_request_context_in_a_json_string_was_rejected_and_the_reply_vanished() {
    let scene = Scene::open().await;
    let inbound = scene.says(7).await;
    let (client, _) = Client::introduced(&scene.hub, &scene.health, "2025-11-25").await;
    let reply = |context: Value| {
        json!({"name": "notify", "arguments": {
            "channel": "pager", "intent": "reply", "message": "Yes", "request_context": context,
        }})
    };
    let read = client.ask("tools/call", reply(json!(wire(&inbound).to_string()))).await;
    assert_eq!(read["result"]["structuredContent"]["status"], "ok", "{read}");
    assert_eq!(scene.pager.messages()[0].target.thread, inbound.source_thread_identity);
    let broken = client.ask("tools/call", reply(json!("{\"request_id\": "))).await;
    assert_eq!(broken["result"]["isError"], true, "{broken}");
    let error = broken["result"]["structuredContent"]["error"].as_str().unwrap();
    assert!(error.contains("request_context"), "it says what to fix: {error}");
    assert_eq!(scene.decisions().await, ["delivered", "refused"], "and it is not recorded as a success");
}

#[tokio::test]
async fn only_email_was_gated_at_the_messenger_and_a_reply_fell_back_to_another_target() {
    let scene = Scene::open().await;
    let trusted = scene.daemon(Some("switchboard")).await;
    let mut foreign = route("health");
    foreign["input"]["context"]["notify_request"]["delivery"]["recipient"] = json!("555:9");
    assert_eq!(scene.execute(&trusted, &foreign).await["status"], "error");
    // A reply with a bad thread and a recipient goes nowhere, not to the recipient.
    let inbound = scene.says(7).await;
    for thread in ["nonsense", "555:9#1", ""] {
        let mut reply = route("health");
        let request = &mut reply["input"]["context"]["notify_request"];
        request["delivery"] = json!({"intent": "reply", "channel": "pager", "message": "x", "recipient": ADAS});
        request["request_context"] = wire(&inbound);
        request["request_context"]["source_thread_identity"] = json!(thread);
        reply["request_context"]["request_id"] = json!(inbound.request_id);
        assert_eq!(scene.execute(&trusted, &reply).await["status"], "error", "{thread}");
        let mut call = json!({"channel": "pager", "intent": "reply", "message": "x", "recipient": ADAS});
        call["request_context"] = wire(&inbound);
        call["request_context"]["source_thread_identity"] = json!(thread);
        scene.refusal(call).await;
    }
    assert_eq!(scene.pager.messages().len(), 0);
}

#[tokio::test]
async fn a_channel_was_advertised_but_rejected() {
    let scene = Scene::open().await;
    let (client, _) = Client::introduced(&scene.hub, &scene.health, "2025-11-25").await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let notify = tools.iter().find(|tool| tool["name"] == "notify").unwrap();
    let offered = notify["inputSchema"]["properties"]["channel"]["enum"].as_array().unwrap();
    assert_eq!(offered, &[json!("pager")], "email and telegram are not configured here");
    for channel in offered {
        assert_eq!(scene.notify(json!({"channel": channel, "message": "Hello"})).await["status"], "ok");
    }
    for channel in ["email", "telegram", "whatsapp"] {
        scene.refusal(json!({"channel": channel, "message": "Hello"})).await;
    }
}

#[tokio::test]
async fn outages_were_recorded_as_deferred_and_looked_like_quiet_hours() {
    let scene = Scene::open().await;
    let answers = outage(&scene, 3).await;
    assert!(answers.iter().all(|answer| answer["status"] == "error"), "{answers:?}");
    assert_eq!(scene.decisions().await, ["failed"; 3]);
    let (_, sums) = scene.hub.get(&scene.hub.admin, "/v1/ledger/sums").await;
    assert_eq!((&sums["items"][0]["failed"], &sums["items"][0]["never_gets_through"]), (&json!(3), &json!(true)));
}

#[tokio::test]
async fn refusals_without_any_delivery_went_unnoticed_for_days() {
    let scene = Scene::open().await;
    scene.change(json!({"muted_origins": ["health"]})).await;
    for number in 0..120 {
        scene.refusal(send(&number.to_string())).await;
    }
    let (_, sums) = scene.hub.get(&scene.hub.admin, "/v1/ledger/sums").await;
    assert_eq!((&sums["items"][0]["refused"], &sums["items"][0]["never_gets_through"]), (&json!(120), &json!(true)));
    let page = scene.hub.client.get(format!("{}/metrics", scene.hub.base)).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("bellwire_notify_undelivered{origin=\"health\"} 120\n"), "{page}");
}

#[tokio::test]
async fn quiet_hours_destroyed_messages_instead_of_parking_them() {
    let scene = Scene::open().await;
    scene.change(json!({"quiet_hours": {"start": super::clock(-1), "end": super::clock(3), "timezone": "UTC"}})).await;
    assert_eq!(scene.notify(send("Sleep well")).await["status"], "deferred");
    let (pager, health, ada) = (scene.pager.clone(), scene.health.clone(), scene.ada.clone());
    let folder = scene.hub.stop().await;
    let hub =
        crate::hub::TestHub::start_in_with_channels(super::three::storm_config(), folder, vec![pager.clone()]).await;
    let scene = Scene { hub, pager, health, ada };
    assert!(scene.pager.outbound().is_empty());
    scene.change(json!({"quiet_hours": null})).await;
    crate::mailed::wait_for("the message", || async { !scene.pager.outbound().is_empty() }).await;
    let message = format!("{:?}", scene.pager.outbound()[0]);
    assert!(message.contains("Sleep well") && message.contains("Direct"), "{message}");
}

#[tokio::test]
async fn bookkeeping_errors_turned_confirmed_sends_into_retryable_failures() {
    let scene = Scene::open().await;
    let released = Arc::new(Notify::new());
    scene.pager.next(Script::Hold(released.clone()));
    let path = scene.hub.folder.path().join("bellwire.db");
    let (answer, ()) = tokio::join!(scene.notify(send("Hello")), async {
        scene.pager.until(1).await;
        // From now on, nothing can be recorded.
        let mut file = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        let broken = "CREATE TRIGGER broken BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END";
        file.execute(broken).await.unwrap();
        file.close().await.unwrap();
        released.notify_one();
    });
    assert_eq!((&answer["status"], &answer["delivery"]["delivery_id"]), (&json!("ok"), &json!("page-1")), "{answer}");
}

#[tokio::test]
async fn json_was_encoded_twice() {
    let peer = Peer::switchboard().await;
    let scene = start_hub_at(&peer.url, "bw_token").await;
    let inbound = scene.says(7).await;
    let reply = json!({
        "channel": "pager", "intent": "reply", "message": "Yes", "request_context": wire(&inbound).to_string(),
    });
    assert_eq!(scene.notify(reply).await["status"], "ok");
    assert_eq!(peer.envelopes()[0]["request_context"], wire(&inbound), "an object, not a text");
    let mut file =
        SqliteConnectOptions::new().filename(scene.hub.folder.path().join("bellwire.db")).connect().await.unwrap();
    let columns = [("answer_json", "notify_requests"), ("context_json", "inbound_messages")];
    for (column, table) in columns {
        let sql = format!("SELECT json_type({column}) FROM {table}");
        let kinds: Vec<(String,)> = sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_all(&mut file).await.unwrap();
        assert_eq!(kinds, [("object".to_owned(),)], "{table}.{column}");
    }
}

#[tokio::test]
async fn a_messenger_error_without_notify_response_was_reported_as_sent() {
    let errors = [
        json!({"class": "validation_error", "message": "The caller is not trusted", "retryable": false}),
        json!({"class": "strange_class", "message": "?", "retryable": true}),
    ];
    for error in errors {
        let answer = json!({
            "schema_version": "route_response.v1", "status": "error", "error": error, "timing": {"duration_ms": 1},
        });
        let messenger = Peer::start(move |_| answer.clone()).await;
        let switchboard = start_switchboard(&messenger.url, "bw_token").await;
        let scene = start_hub(&switchboard).await;
        let told = scene.notify(send("Hello")).await;
        assert_eq!((&told["status"], told.get("delivery")), (&json!("error"), None), "{told}");
        assert_eq!(told["error"]["message"], error["message"]);
        assert_eq!(messenger.asked()[0]["tool"], "route.execute");
        assert_ne!(scene.decisions().await, ["delivered"]);
    }
}

#[tokio::test]
async fn an_intent_passed_the_tool_and_no_branch_of_the_messenger_took_it() {
    let scene = Scene::open().await;
    let inbound = scene.says(7).await;
    for intent in ["insight", "approval_request", "SEND"] {
        let error = scene.refusal(json!({"channel": "pager", "message": "x", "intent": intent})).await;
        assert!(error.starts_with(&format!("Unsupported intent '{intent}'")), "{error}");
    }
    for intent in bellwire_core::notify::Intent::ALL {
        let mut call = json!({"channel": "pager", "intent": intent.as_str()});
        if intent.answers() {
            call["request_context"] = wire(&inbound);
        }
        match intent {
            bellwire_core::notify::Intent::React => call["emoji"] = json!("\u{1f44d}"),
            _ => call["message"] = json!("Hello"),
        }
        assert_eq!(scene.notify(call.clone()).await["status"], "ok", "{call}");
    }
}

#[tokio::test]
async fn http_429_from_telegram_became_an_internal_error_without_its_retry_after() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(7));
    let busy = chat.notify("chat", json!({"message": "Hello"})).await;
    assert_eq!(
        (&busy["error"]["class"], &busy["error"]["retryable"], &busy["retry_after_seconds"]),
        (&json!("target_unavailable"), &json!(true), &json!(7)),
        "{busy}"
    );
}

#[tokio::test]
async fn the_documentation_named_a_field_that_the_result_did_not_have() {
    let scene = Scene::open().await;
    let (client, _) = Client::introduced(&scene.hub, &scene.health, "2025-11-25").await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let notify = tools.iter().find(|tool| tool["name"] == "notify").unwrap();
    let documented = notify["outputSchema"]["properties"].as_object().unwrap();
    let ok = scene.notify(send("one")).await;
    let failed = outage(&scene, 1).await.remove(0);
    let refused = scene.notify(json!({"channel": "sms"})).await;
    scene.change(json!({"quiet_hours": {"start": super::clock(-1), "end": super::clock(3), "timezone": "UTC"}})).await;
    let deferred = scene.notify(send("two")).await;
    let results = [(&ok, "ok"), (&failed, "error"), (&refused, "error"), (&deferred, "deferred")];
    let mut seen = std::collections::BTreeSet::from(["notifications", "pending", "retry_after_seconds"]);
    for (result, status) in results {
        assert_eq!(result["status"], status, "{result}");
        for field in result.as_object().unwrap().keys().filter(|field| *field != "call_id") {
            assert!(documented.contains_key(field), "{field} is not documented: {result}");
            seen.insert(field);
        }
    }
    let undelivered: Vec<&String> = documented.keys().filter(|field| !seen.contains(field.as_str())).collect();
    assert!(undelivered.is_empty(), "documented, and in no result: {undelivered:?}");
}
