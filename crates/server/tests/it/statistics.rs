//! Counts per minute and per subscriber.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};

/// The sum of a column.
fn sum(column: &Value) -> u64 {
    column.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

#[tokio::test]
async fn minutes_count_events_verdicts_and_injections() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    for tool in ["grep", "grep", "find"] {
        hub.post(&agent, "/v1/events", failure(tool)).await;
    }
    let take = json!({"point": "after_tool", "call_id": "c1"});
    let (_, injected) = hub.post(&agent, "/v1/conversations/chat/inject", take.clone()).await;
    assert_eq!(injected["showing"], 1, "{injected}");
    let (status, answer) = hub.get(&hub.admin, "/v1/statistics").await;
    assert_eq!((status, &answer["step_seconds"]), (StatusCode::OK, &json!(60)), "{answer}");
    assert_eq!((sum(&answer["events"]), sum(&answer["verdicts"]["held"])), (3, 2), "{answer}");
    assert_eq!((sum(&answer["verdicts"]["duplicate"]), sum(&answer["injections"])), (1, 1), "{answer}");
    assert_eq!(sum(&answer["injected_items"]), 1, "{answer}");
    assert!(sum(&answer["injected_tokens"]) > 0 && sum(&answer["saved_tokens"]) > 0, "{answer}");
    let last = |name: &str| answer[name].as_array().unwrap().last().unwrap().clone();
    assert_eq!((last("pending"), last("oldest_delivery_seconds")), (json!(0), json!(0)), "{answer}");
    let latency = answer["injection_ms"]["p99"].as_array().unwrap().iter().filter_map(Value::as_f64).next();
    assert!(latency.is_some_and(|millis| millis > 0.0), "{answer}");
    let columns = answer["events"].as_array().unwrap().len();
    for column in [&answer["injection_ms"]["p50"], &answer["pending"], &answer["deliveries"]["sent"]] {
        assert_eq!(column.as_array().unwrap().len(), columns, "{answer}");
    }
    let (_, one) = hub.get(&hub.admin, "/v1/statistics?minutes=1").await;
    assert_eq!(one["events"].as_array().unwrap().len(), 1);
    for wrong in ["0", "1441", "x", "-1"] {
        let (status, answer) = hub.get(&hub.admin, &format!("/v1/statistics?minutes={wrong}")).await;
        assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("minutes")), "{wrong}");
    }
}

#[tokio::test]
async fn a_start_begins_anew_and_says_since_when_it_counts() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let (_, before) = hub.get(&hub.admin, "/v1/statistics").await;
    let hub = TestHub::start_in(hub.stop().await).await;
    let (_, after) = hub.get(&hub.admin, "/v1/statistics").await;
    assert_eq!((sum(&before["events"]), sum(&after["events"])), (1, 0));
    assert!(after["since"].as_str() > before["since"].as_str(), "{after}");
}

#[tokio::test]
async fn operators_see_what_each_subscriber_did_and_whose_it_is_enabled_for() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    for tool in ["grep", "grep", "find"] {
        hub.post(&agent, "/v1/events", failure(tool)).await;
    }
    hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "c1"})).await;
    let (_, one) = hub.get(&hub.admin, "/v1/subscribers/tool_failure").await;
    let counts = &one["last_24h"];
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert_eq!((count("events"), count("held"), count("duplicate"), count("injected")), (3, 2, 1, 1), "{one}");
    assert!(counts["since"].is_string(), "{one}");
    assert_eq!(hub.get(&ada, "/v1/subscribers/tool_failure").await.1.get("last_24h"), None, "they tell about everyone");
    let off = json!({"disabled_subscribers": ["source_stale"]});
    hub.call(&ada, Method::PATCH, "/v1/users/ada/settings", Some(off)).await;
    let enabled = async |query: &str| {
        let (status, list) = hub.get(&hub.admin, &format!("/v1/subscribers{query}")).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        let items = list["items"].as_array().unwrap();
        items.iter().find(|one| one["id"] == "source_stale").unwrap()["enabled"].clone()
    };
    assert_eq!((enabled("?user_id=ada").await, enabled("").await), (json!(false), json!(true)));
    assert_eq!(hub.get(&ada, "/v1/subscribers?user_id=bob").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_dry_run_counts_the_tokens_of_its_text() {
    let hub = TestHub::start().await;
    let run = json!({"events": [failure("grep")]});
    let (_, answer) = hub.post(&hub.admin, "/v1/subscribers/tool_failure/test", run).await;
    let content = answer["content"].as_str().unwrap();
    assert_eq!(answer["tokens"], content.len().div_ceil(4), "{answer}");
}
