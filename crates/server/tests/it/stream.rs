use std::time::Duration;

use bellwire_server::Config;
use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::hub::TestHub;

struct Lines {
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<Vec<u8>>> + Send>>,
    text: String,
}

impl Lines {
    async fn open(hub: &TestHub, token: &str) -> Self {
        let request = hub.client.get(format!("{}/v1/conversations/chat/stream", hub.base)).bearer_auth(token);
        let response = request.send().await.expect("the hub answers");
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec()));
        Self { body: Box::pin(body), text: String::new() }
    }

    /// Reads up to and including this text; returns an empty string if the stream ends first.
    async fn until(&mut self, word: &str) -> String {
        let wait = async {
            loop {
                if let Some(end) = self.text.find(word).map(|at| at + word.len()) {
                    return self.text.drain(..end).collect();
                }
                match self.body.next().await {
                    Some(Ok(bytes)) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                    _ => return String::new(),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the stream says something in ten seconds")
    }
}

#[tokio::test]
async fn a_stream_gives_the_state_then_hints_and_never_text() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let mut lines = Lines::open(&hub, &agent).await;
    let state = lines.until("\"count\":0").await;
    assert!(state.contains("event: pending"), "{state}");

    let done = json!({
        "type": "task.background.complete", "source": "ci", "severity": "info", "conversation_id": "chat",
        "payload": {"task_id": "b17", "name": "a secret build"},
    });
    hub.post(&agent, "/v1/events", done).await;
    let hint = lines.until("event: wake").await + &lines.until("\"count\":1").await;
    assert!(hint.contains("notifications"), "{hint}");
    assert!(!hint.contains("secret"), "{hint}");
}

const SHORT_LIVED: &str = r#"
[subscriber]
id = "short_lived"
name = "Short-lived"
description = "Waits for a second"
version = "1.0.0"
[events]
types = ["ci.build.done"]
[batching]
window_ms = 0
[output]
priority = "normal"
inject_at = "after_tool"
ttl_ms = 1000
template = "ci.j2"
"#;

#[tokio::test]
async fn a_hint_follows_when_a_notification_expires() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ci.j2"), "build").unwrap();
    std::fs::write(folder.path().join("ci.toml"), SHORT_LIVED).unwrap();
    let config = Config { subscribers_dir: Some(folder.path().to_owned()), ..Config::default() };
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let mut lines = Lines::open(&hub, &agent).await;
    lines.until("\"count\":0").await;
    let done = json!({
        "type": "ci.build.done", "source": "ci", "severity": "info", "conversation_id": "chat", "payload": {},
    });
    hub.post(&agent, "/v1/events", done).await;
    assert!(lines.until("\"count\":1").await.contains("event: pending"));
    let hint = lines.until("\"count\":0").await;
    assert!(hint.contains("event: pending") && hint.contains("\"notifications\":[]"), "{hint}");
    let (_, answer) =
        hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "1"})).await;
    assert_eq!(answer["count"], 0, "{answer}");
}

#[tokio::test]
async fn revoking_a_token_ends_its_streams_at_once() {
    let hub = TestHub::start().await;
    let body = json!({"scope": "agent", "user_id": "ada", "origin": "butler"});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let agent = made["token"].as_str().unwrap();
    hub.call(agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let mut lines = Lines::open(&hub, agent).await;
    lines.until("event: pending").await;
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    let (status, _) = hub.call(&hub.admin, Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(lines.until("no such word").await, "", "the stream ended");
    let (status, _) = hub.get(agent, "/v1/conversations/chat").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let hub = TestHub::start().await;
    let in_a_moment = bellwire_core::Time::from_millis(
        i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap()
            + 3_000,
    );
    let body = json!({"scope": "agent", "user_id": "ada", "origin": "b", "expires_at": in_a_moment.to_string()});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let agent = made["token"].as_str().unwrap();
    hub.call(agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let mut lines = Lines::open(&hub, agent).await;
    lines.until("event: pending").await;
    assert_eq!(lines.until("no such word").await, "", "the stream ended");
}

#[tokio::test]
async fn erasing_a_user_ends_their_streams() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let mut lines = Lines::open(&hub, &agent).await;
    lines.until("event: pending").await;
    let (status, _) = hub.call(&hub.admin, Method::DELETE, "/v1/users/ada", None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(lines.until("no such word").await, "", "the stream ended");
    let (status, _) = hub.get(&agent, "/v1/conversations/chat").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "the token went with its person");
}
