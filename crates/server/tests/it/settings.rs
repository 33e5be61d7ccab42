use bellwire_server::Config;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::hub::TestHub;
use crate::subscribers::CI_DONE;

#[tokio::test]
async fn a_patch_changes_only_its_fields_and_core_subscribers_cannot_be_disabled() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let patch = |body| hub.call(&ada, Method::PATCH, "/v1/users/ada/settings", Some(body));
    let (status, answer) = patch(json!({"disabled_subscribers": ["source_stale"]})).await;
    assert_eq!((status, &answer["disabled_subscribers"]), (StatusCode::OK, &json!(["source_stale"])));
    let (status, answer) = patch(json!({"disabled_subscribers": ["tool_failure"]})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(answer["error"]["message"].as_str().unwrap().contains("'tool_failure' is a core subscriber"));
    let (_, answer) = patch(json!({})).await;
    assert_eq!(answer["disabled_subscribers"], json!(["source_stale"]));
    let (_, list) = hub.get(&ada, "/v1/subscribers").await;
    let stale = list["items"].as_array().unwrap().iter().find(|one| one["id"] == "source_stale").unwrap();
    assert_eq!(stale["enabled"], false);
}

#[tokio::test]
async fn a_dry_run_of_a_subscriber_has_no_effect() {
    let hub = TestHub::start().await;
    let event =
        json!({"type": "tool.call.failure", "source": "x", "severity": "error", "payload": {"tool_name": "grep"}});
    let (status, answer) = hub.post(&hub.admin, "/v1/subscribers/tool_failure/test", json!({"events": [event]})).await;
    assert_eq!(status, StatusCode::OK);
    assert!(answer["content"].as_str().unwrap().starts_with("tool_fail: grep"), "{answer}");
}

#[tokio::test]
async fn an_edited_file_applies_from_the_next_event_and_an_invalid_edit_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("ci.j2", "build: {{ events[0].payload.name }}");
    let config = Config { subscribers_dir: Some(folder.path().to_owned()), ..Config::default() };
    let hub = TestHub::start_with(config).await;
    let known = || async { hub.get(&hub.admin, "/v1/subscribers/ci_done").await };
    assert_eq!(known().await.0, StatusCode::NOT_FOUND);

    write("ci.toml", CI_DONE);
    until(|| async { known().await.0 == StatusCode::OK }).await;
    let agent = hub.token("agent", "ada").await;
    let event = json!({
        "type": "ci.build.done", "source": "ci", "severity": "info", "conversation_id": "chat", "payload": {"name": "x"},
    });
    let (_, answer) = hub.post(&agent, "/v1/events", event).await;
    assert_eq!(answer["events"][0]["verdicts"][0]["subscriber"], "ci_done");

    write("ci.toml", &CI_DONE.replace("window_ms = 0", "window_ms = -1"));
    write("other.toml", &CI_DONE.replace("ci_done", "ci_other"));
    until(|| async { hub.get(&hub.admin, "/v1/subscribers/ci_other").await.0 == StatusCode::OK }).await;
    assert_eq!(known().await.1["window_ms"], 0, "the broken edit keeps the last good version");

    std::fs::remove_file(folder.path().join("ci.toml")).unwrap();
    until(|| async { known().await.0 == StatusCode::NOT_FOUND }).await;
    let (_, block) =
        hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "1"})).await;
    assert!(block["block"].as_str().unwrap().contains("build: x"), "what it had queued keeps its words: {block}");
}

/// Polls until the condition holds: the file watcher reports changes with a delay.
async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), wait).await.expect("it becomes so within 20 seconds");
}
