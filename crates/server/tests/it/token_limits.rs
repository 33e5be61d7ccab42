//! Limits per token: one token cannot starve the others, and a refusal has `Retry-After`.

use std::time::Duration;

use bellwire_server::Config;
use bellwire_server::config::Limits;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::hub::{TestHub, failure};
use crate::mailed::wait_for;

async fn hub(change: impl Fn(&mut Limits)) -> TestHub {
    let mut config = Config::default();
    change(&mut config.limits);
    TestHub::start_with(config).await
}

/// Checks that a response is a refusal by a limit of the token, and returns its message.
async fn refused(response: Response) -> String {
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(seconds > 0);
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["error"]["code"], "rate_limited", "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

async fn publish(hub: &TestHub, token: &str, body: &Value) -> Response {
    hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(token).json(body).send().await.unwrap()
}

async fn status(hub: &TestHub, path: &str) -> StatusCode {
    hub.client.get(format!("{}{path}", hub.base)).send().await.unwrap().status()
}

/// A publish request that sends a part of its body and then nothing.
async fn trickle(hub: &TestHub, token: &str) -> TcpStream {
    let address = hub.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The status line of a response, and whether it has `Retry-After`.
async fn answer(stream: &mut TcpStream) -> (String, bool) {
    let mut text = Vec::new();
    let read = stream.read_to_end(&mut text);
    tokio::time::timeout(Duration::from_secs(60), read).await.expect("the hub answers and closes").unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    (text.lines().next().unwrap_or_default().to_owned(), text.contains("retry-after: "))
}

#[tokio::test]
async fn a_token_that_sends_slow_bodies_has_its_share_and_is_cut_off() {
    let hub = hub(|limits| (limits.concurrent_requests, limits.concurrent_per_token) = (40, 10)).await;
    let (slow, other) = (hub.token("agent", "ada").await, hub.token("agent", "bob").await);
    let mut held = Vec::new();
    for _ in 0..40 {
        held.push(trickle(&hub, &slow).await);
    }
    let is_refused =
        || async { publish(&hub, &slow, &failure("grep")).await.status() == StatusCode::TOO_MANY_REQUESTS };
    wait_for("the token's share to be used up", is_refused).await;
    assert_eq!(publish(&hub, &other, &failure("grep")).await.status(), StatusCode::ACCEPTED, "others are not hurt");
    let mut answers = Vec::new();
    for stream in &mut held {
        answers.push(answer(stream).await);
    }
    let count = |wanted: (&str, bool)| answers.iter().filter(|(line, again)| (&**line, *again) == wanted).count();
    assert_eq!(count(("HTTP/1.1 429 Too Many Requests", true)), 30, "{answers:?}");
    assert_eq!(count(("HTTP/1.1 408 Request Timeout", false)), 10, "{answers:?}");
    assert_eq!(publish(&hub, &slow, &failure("grep")).await.status(), StatusCode::ACCEPTED, "its share is free again");
}

#[tokio::test]
async fn a_hub_that_is_full_still_answers_probes() {
    let hub = hub(|limits| (limits.concurrent_requests, limits.concurrent_per_token) = (5, 0)).await;
    let slow = hub.token("agent", "ada").await;
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(trickle(&hub, &slow).await);
    }
    let is_full = || async { status(&hub, "/docs").await == StatusCode::SERVICE_UNAVAILABLE };
    wait_for("the hub to be full", is_full).await;
    for probe in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(status(&hub, probe).await, StatusCode::OK, "{probe}");
    }
}

#[tokio::test]
async fn a_token_has_only_so_many_streams_and_another_has_its_own() {
    let hub = hub(|limits| limits.streams_per_token = 2).await;
    let (ada, bob) = (hub.token("user", "ada").await, hub.token("user", "bob").await);
    let open = |token: &str, user: &str| {
        let request = hub.client.get(format!("{}/v1/users/{user}/stream", hub.base)).bearer_auth(token);
        async { request.send().await.unwrap() }
    };
    let (first, second) = (open(&ada, "ada").await, open(&ada, "ada").await);
    assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK));
    assert!(refused(open(&ada, "ada").await).await.contains("limits.streams_per_token"));
    assert_eq!(open(&bob, "bob").await.status(), StatusCode::OK);
    let admin: Vec<_> =
        vec![open(&hub.admin, "ada").await, open(&hub.admin, "ada").await, open(&hub.admin, "ada").await];
    assert!(admin.iter().all(|stream| stream.status() == StatusCode::OK), "an admin is exempt");
    drop(first);
    wait_for("the stream to end", || async { open(&ada, "ada").await.status() == StatusCode::OK }).await;
}

#[tokio::test]
async fn a_token_has_only_so_many_mcp_sessions() {
    let hub = hub(|limits| limits.mcp_sessions_per_token = 2).await;
    let (ada, bob) = (hub.token("agent", "ada").await, hub.token("agent", "bob").await);
    let begin = |token: &str| {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let request = hub.client.post(format!("{}/mcp", hub.base)).bearer_auth(token).json(&hello);
        async { request.header("accept", "application/json, text/event-stream").send().await.unwrap() }
    };
    let first = begin(&ada).await;
    assert_eq!((first.status(), begin(&ada).await.status()), (StatusCode::OK, StatusCode::OK));
    assert!(refused(begin(&ada).await).await.contains("limits.mcp_sessions_per_token"));
    assert_eq!(begin(&bob).await.status(), StatusCode::OK);
    let session = first.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let end = hub.client.delete(format!("{}/mcp", hub.base)).bearer_auth(&ada).header("mcp-session-id", session);
    assert!(end.send().await.unwrap().status().is_success());
    assert_eq!(begin(&ada).await.status(), StatusCode::OK, "a session that ended makes room");
}

#[tokio::test]
async fn a_token_injects_only_so_often() {
    let hub = hub(|limits| limits.injections_per_second = 1).await;
    let (ada, bob) = (hub.token("agent", "ada").await, hub.token("agent", "bob").await);
    let inject = |token: &str, call: usize| {
        let body = json!({"point": "after_tool", "call_id": format!("call {call}")});
        let url = format!("{}/v1/conversations/chat/inject", hub.base);
        let request = hub.client.post(url).bearer_auth(token).json(&body);
        async { request.send().await.unwrap() }
    };
    let mut passed = 0;
    let limited = loop {
        let response = inject(&ada, passed).await;
        match response.status() {
            StatusCode::OK => passed += 1,
            _ => break response,
        }
        assert!(passed < 100, "it is never refused");
    };
    assert!(passed >= 5, "a burst passes: {passed}");
    assert!(refused(limited).await.contains("limits.injections_per_second"));
    assert_eq!(inject(&bob, 0).await.status(), StatusCode::OK);
    let called = |token: &str| {
        let body = json!({"arguments": {"message": "remember"}, "context": {"conversation_id": "chat"}});
        let request = hub.client.post(format!("{}/v1/tools/notify_self", hub.base)).bearer_auth(token).json(&body);
        async { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    assert!(called(&bob).await["call_id"].is_string());
    for _ in 0..100 {
        let answer = called(&ada).await;
        assert_eq!(answer["success"], true, "{answer}");
        if answer["call_id"].is_null() {
            return;
        }
    }
    panic!("a tool's result goes without mail where its token is over the limit");
}

#[tokio::test]
async fn a_token_sends_only_so_many_bytes_a_day() {
    let hub = hub(|limits| limits.bytes_per_day = 2000).await;
    let (ada, bob) = (hub.token("agent", "ada").await, hub.token("agent", "bob").await);
    let mut large = failure("grep");
    large["payload"]["text"] = "x".repeat(1500).into();
    assert_eq!(publish(&hub, &ada, &large).await.status(), StatusCode::ACCEPTED);
    assert!(refused(publish(&hub, &ada, &large).await).await.contains("limits.bytes_per_day"));
    assert_eq!(publish(&hub, &ada, &failure("grep")).await.status(), StatusCode::ACCEPTED, "what fits is taken");
    assert_eq!(publish(&hub, &bob, &large).await.status(), StatusCode::ACCEPTED);
}

#[tokio::test]
async fn an_event_for_a_person_counts_once_per_conversation_it_reaches() {
    let hub = hub(|limits| {
        (limits.publish_per_second, limits.publish_burst, limits.batch_events) = (1, 10, 10);
    })
    .await;
    let agent = hub.token("agent", "ada").await;
    for chat in ["a", "b", "c", "d"] {
        let path = format!("/v1/conversations/{chat}");
        let (status, _) = hub.call(&agent, Method::PUT, &path, Some(json!({"user_id": "ada"}))).await;
        assert_eq!(status, StatusCode::OK);
    }
    let mut event = failure("grep");
    event["conversation_id"].take();
    event["user_id"] = "ada".into();
    let response = publish(&hub, &agent, &json!([event, event, event])).await;
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let answer: Value = response.json().await.unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("costs 12"), "{answer}");
    assert_eq!(publish(&hub, &agent, &json!([event, event])).await.status(), StatusCode::ACCEPTED, "it cost nothing");
    refused(publish(&hub, &agent, &event).await).await;
    assert_eq!(publish(&hub, &hub.admin, &json!([event, event, event])).await.status(), StatusCode::ACCEPTED);
}
