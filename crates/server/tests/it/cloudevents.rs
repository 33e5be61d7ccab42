use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::hub::TestHub;

async fn send(hub: &TestHub, token: &str, headers: &[(&str, &str)], body: String) -> (StatusCode, Value) {
    let mut request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(token).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

fn built(id: &str) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": "https://ci.example/job?x=1", "type": "com.Example.Build-Done",
        "time": "2026-01-03T15:30:00Z", "conversationid": "chat", "severity": "error", "buildnumber": 7,
        "data": {"tool_name": "cargo"},
    })
}

const STRUCTURED: &[(&str, &str)] = &[("content-type", "application/cloudevents+json; charset=utf-8")];
const BATCH: &[(&str, &str)] = &[("content-type", "application/cloudevents-batch+json")];

#[tokio::test]
async fn a_structured_cloudevent_becomes_an_event() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let (status, answer) = send(&hub, &agent, STRUCTURED, built("1").to_string()).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let id = answer["events"][0]["id"].as_str().unwrap();
    let (_, trace) = hub.get(&agent, &format!("/v1/events/{id}")).await;
    assert_eq!(trace["type"], "com.example.build_done");
    assert_eq!(trace["source"], "https://ci.example/job_x_1");
    assert_eq!(
        (trace["severity"].as_str(), trace["timestamp"].as_str()),
        (Some("error"), Some("2026-01-03T15:30:00Z"))
    );
    assert_eq!(trace["payload"], json!({"tool_name": "cargo", "extensions": {"buildnumber": 7}}));
}

#[tokio::test]
async fn binary_mode_carries_the_attributes_in_headers() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let headers = [
        ("content-type", "text/plain"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/sensors"),
        ("ce-type", "room.temperature"),
        ("ce-conversationid", "chat"),
        ("ce-place", "k%C3%BCche"),
    ];
    let (status, answer) = send(&hub, &agent, &headers, "warm".to_owned()).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let (_, trace) = hub.get(&agent, &format!("/v1/events/{}", answer["events"][0]["id"].as_str().unwrap())).await;
    assert_eq!(trace["payload"], json!({"data": "warm", "extensions": {"place": "küche"}}));
    assert_eq!(trace["severity"], "info");
}

#[tokio::test]
async fn a_repeated_source_and_id_is_one_event() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let first = send(&hub, &agent, STRUCTURED, built("1").to_string()).await;
    assert_eq!(send(&hub, &agent, STRUCTURED, built("1").to_string()).await, first);
    let mut elsewhere = built("1");
    elsewhere["source"] = json!("/other");
    let other = send(&hub, &agent, BATCH, json!([elsewhere, built("2")]).to_string()).await;
    assert_eq!(other.0, StatusCode::ACCEPTED);
    assert_ne!(other.1["events"][0]["id"], first.1["events"][0]["id"]);
    let mut changed = built("1");
    changed["data"] = json!(1);
    assert_eq!(send(&hub, &agent, STRUCTURED, changed.to_string()).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn an_invalid_cloudevent_is_refused_with_the_field() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    for (field, value) in [
        ("specversion", json!("0.3")),
        ("id", json!("")),
        ("source", json!(null)),
        ("type", json!(7)),
        ("severity", json!("fatal")),
        ("conversationid", json!(["chat"])),
        ("data_base64", json!("AAAA")),
    ] {
        let mut event = built("1");
        event[field] = value;
        let (status, answer) = send(&hub, &agent, STRUCTURED, event.to_string()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field}: {answer}");
        assert!(answer["error"]["field"].as_str().is_some_and(|named| named.starts_with("events[0].")), "{answer}");
    }
    let mut forged = built("1");
    forged["type"] = json!("user.message");
    assert_eq!(send(&hub, &agent, STRUCTURED, forged.to_string()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(send(&hub, &agent, BATCH, built("1").to_string()).await.0, StatusCode::BAD_REQUEST);
}
