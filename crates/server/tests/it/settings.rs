use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::hub::TestHub;

#[tokio::test]
async fn a_patch_changes_what_it_names_and_a_core_subscriber_is_refused_by_name() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let patch = |body| hub.call(&ada, Method::PATCH, "/v1/users/ada/settings", Some(body));
    let (status, answer) = patch(json!({"disabled_subscribers": ["source_stale"]})).await;
    assert_eq!((status, answer), (StatusCode::OK, json!({"disabled_subscribers": ["source_stale"]})));
    let (status, answer) = patch(json!({"disabled_subscribers": ["tool_failure"]})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(answer["error"]["message"].as_str().unwrap().contains("'tool_failure' is a core subscriber"));
    let (_, answer) = patch(json!({})).await;
    assert_eq!(answer, json!({"disabled_subscribers": ["source_stale"]}));
    let (_, list) = hub.get(&ada, "/v1/subscribers").await;
    let stale = list["items"].as_array().unwrap().iter().find(|one| one["id"] == "source_stale").unwrap();
    assert_eq!(stale["enabled"], false);
}

#[tokio::test]
async fn a_subscriber_can_be_tried_without_anything_happening() {
    let hub = TestHub::start().await;
    let event =
        json!({"type": "tool.call.failure", "source": "x", "severity": "error", "payload": {"tool_name": "grep"}});
    let (status, answer) = hub.post(&hub.admin, "/v1/subscribers/tool_failure/test", json!({"events": [event]})).await;
    assert_eq!(status, StatusCode::OK);
    assert!(answer["content"].as_str().unwrap().starts_with("tool_fail: grep"), "{answer}");
}
