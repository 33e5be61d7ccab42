//! The operator's own subscriber files in a running hub.

use std::future::Future;

use bellwire_server::Config;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::email::peer::{MailServer, listener};
use crate::hub::TestHub;
use crate::mailed::{Post, header};
use crate::person_stream::Listener;

/// A subscriber that tells an agent of finished builds.
pub(crate) const CI_DONE: &str = r#"
[subscriber]
id = "ci_done"
name = "CI"
description = "Builds that are done"
version = "1.0.0"
[events]
types = ["ci.build.done"]
[batching]
window_ms = 0
[output]
priority = "normal"
inject_at = "after_tool"
template = "ci.j2"
"#;

/// A hub with the subscriber `ci_done` and this template.
async fn hub_with(template: &str) -> (TestHub, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ci.j2"), template).unwrap();
    std::fs::write(folder.path().join("ci.toml"), CI_DONE).unwrap();
    let config = Config { subscribers_dir: Some(folder.path().to_owned()), ..Config::default() };
    (TestHub::start_with(config).await, folder)
}

fn done(payload: Value) -> Value {
    json!({"type": "ci.build.done", "source": "ci", "severity": "info", "conversation_id": "chat", "payload": payload})
}

#[tokio::test]
async fn an_invalid_template_keeps_the_last_valid_version_and_the_list_says_why() {
    let (hub, folder) = hub_with("build: {{ events[0].payload.name|default(\"?\") }}").await;
    let agent = hub.token("agent", "ada").await;
    std::fs::write(folder.path().join("ci.j2"), "{% for e in events %}").unwrap();
    let listed = || async { hub.get(&hub.admin, "/v1/subscribers/ci_done").await };
    until(|| async { listed().await.1["problem"].is_string() }).await;
    let (status, one) = listed().await;
    assert_eq!(status, StatusCode::OK);
    let problem = one["problem"].as_str().unwrap();
    assert!(problem.starts_with("ci.j2:1: syntax error") && problem.ends_with("(named by ci.toml)"), "{problem}");

    hub.post(&agent, "/v1/events", done(json!({"name": "nightly"}))).await;
    let inject = json!({"point": "after_tool", "call_id": "1"});
    let (_, answer) = hub.post(&agent, "/v1/conversations/chat/inject", inject).await;
    assert!(answer["block"].as_str().unwrap().contains("build: nightly"), "{answer}");

    std::fs::write(folder.path().join("ci.j2"), "done: {{ count }}").unwrap();
    until(|| async { listed().await.1["problem"].is_null() }).await;
}

#[tokio::test]
async fn a_template_that_fails_is_in_the_trace_and_counted_by_subscriber() {
    let (hub, folder) = hub_with("build: {{ events[0].payload.name }}").await;
    let agent = hub.token("agent", "ada").await;
    let both = format!("{CI_DONE}audience = \"both\"\n");
    std::fs::write(folder.path().join("ci.toml"), both).unwrap();
    until(|| async { hub.get(&hub.admin, "/v1/subscribers/ci_done").await.1["audience"] == "both" }).await;

    let (_, published) = hub.post(&agent, "/v1/events", done(json!({"message": "<b>secret</b>"}))).await;
    let inject = json!({"point": "after_tool", "call_id": "1"});
    let (_, answer) = hub.post(&agent, "/v1/conversations/chat/inject", inject.clone()).await;
    let block = answer["block"].as_str().unwrap();
    assert!(block.contains("ci.build.done: &lt;b>secret&lt;/b>"), "{block}");
    hub.post(&agent, "/v1/conversations/chat/inject", inject).await;
    let id = published["events"][0]["id"].as_str().unwrap();
    let (_, trace) = hub.get(&agent, &format!("/v1/events/{id}")).await;
    let why = "ci.j2:1: a value is missing in `build: {{ events[0].payload.name }}`; give it a default";
    assert_eq!(trace["notifications"][0]["template_error"], why, "{trace}");
    assert_eq!(trace["told"][0]["template_error"], why, "{trace}");

    let metrics = hub.client.get(format!("{}/metrics", hub.base)).send().await.unwrap().text().await.unwrap();
    let counted = "bellwire_template_failures_total{subscriber=\"ci_done\"} 2\n";
    assert!(metrics.contains(counted), "once for the agent, once for the person, not for the replay:\n{metrics}");

    // A removed subscriber's notification is still rendered by its template; its id is no label.
    hub.post(&agent, "/v1/events", done(json!({"message": "again"}))).await;
    std::fs::remove_file(folder.path().join("ci.toml")).unwrap();
    until(|| async { hub.get(&hub.admin, "/v1/subscribers/ci_done").await.0 == StatusCode::NOT_FOUND }).await;
    hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "2"})).await;
    let removed = "bellwire_template_failures_total{subscriber=\"(removed)\"} 1\n";
    until(|| async {
        let metrics = hub.client.get(format!("{}/metrics", hub.base)).send().await.unwrap().text().await.unwrap();
        metrics.contains(removed)
    })
    .await;
}

#[tokio::test]
async fn a_mistyped_event_type_gets_the_nearest_known_one() {
    let (hub, _folder) = hub_with("build: {{ count }}").await;
    let agent = hub.token("agent", "ada").await;
    let ingest = hub.token("ingest", "ada").await;
    let hint = |token: String, kind: &'static str| {
        let hub = &hub;
        async move {
            let event =
                json!({"type": kind, "source": "ci", "severity": "info", "conversation_id": "chat", "payload": {}});
            let (status, answer) = hub.post(&token, "/v1/events", event).await;
            assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
            let verdict = answer["events"][0]["verdicts"][0].clone();
            assert_eq!((&verdict["subscriber"], &verdict["verdict"]), (&json!("*"), &json!("filtered")), "{answer}");
            assert_eq!(verdict["reason"], "no_listener: no subscriber listens for this type");
            verdict["hint"].as_str().unwrap_or_default().to_owned()
        }
    };
    assert_eq!(hint(agent.clone(), "tool.call.failed").await, "did you mean tool.call.failure?");
    assert_eq!(hint(agent.clone(), "source.file.change").await, "did you mean source.file.changed?");
    assert_eq!(hint(agent.clone(), "ci.build.dnoe").await, "did you mean ci.build.done?");
    assert_eq!(hint(agent.clone(), "weather.forecast.changed").await, "");
    assert_eq!(hint(ingest.clone(), "tool.call.failed").await, "did you mean tool.call.failure?");
    assert_eq!(hint(ingest, "ci.build.dnoe").await, "", "an ingest token may not list the operator's subscribers");
    // The search is bounded: only so many different types of one request are compared.
    let mistyped = |number: usize| {
        let kind = format!("tool.call.failure{number}");
        json!({"type": kind, "source": "ci", "severity": "info", "conversation_id": "chat", "payload": {}})
    };
    let (_, answer) = hub.post(&agent, "/v1/events", (0..100).map(mistyped).collect()).await;
    let hints = answer["events"].as_array().unwrap().iter().filter(|one| one["verdicts"][0]["hint"].is_string());
    assert_eq!(hints.count(), 20);
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

#[tokio::test]
async fn a_person_reads_plain_text_where_the_agent_reads_toon() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let both = format!("{CI_DONE}audience = \"both\"\n");
    write("ci.j2", "build_done: {{ events[0].payload.job }}");
    write("ci.toml", &both);
    let subscribers_dir = Some(folder.path().to_owned());
    let config = Config { email: server.settings("x"), subscribers_dir, ..Config::default() };
    let post = Post::open_on(&server, "x", config).await;
    let mut stream = Listener::open(&post.hub, &post.ada, None).await;
    stream.hear("unread").await;
    let payload = json!({"job": "nightly", "message": "all 80 tests passed"});
    for _ in 0..3 {
        post.hub.post(&post.agent, "/v1/events", done(payload.clone())).await;
    }
    let plain = "Ci build done: nightly - all 80 tests passed";
    let item = stream.hear("notification").await.data;
    assert_eq!((&item["message"], &item["origin"], &item["source"]), (&json!(plain), &json!("butler"), &json!("ci")));
    post.until("sent", 1).await;
    let mail = server.received("x").remove(1);
    assert_eq!(header(&mail, "Subject"), format!("[butler] Info: {plain}"));
    assert!(!mail.to_string().contains("build_done"), "{mail}");
    // When the window of five seconds ends, the repeats are counted in the same item, and no second mail goes out.
    stream.hear("unread").await;
    let updated = stream.hear("updated").await.data;
    assert_eq!((&updated["id"], &updated["message"]), (&item["id"], &json!(format!("{plain} (2 more times)"))));
    let inject = json!({"point": "after_tool", "call_id": "1"});
    let (_, answer) = post.hub.post(&post.agent, "/v1/conversations/chat/inject", inject).await;
    assert!(answer["block"].as_str().unwrap().contains("build_done: nightly"), "{answer}");

    // A template for people is loaded while the hub runs, and a dry run shows both texts.
    write("ci.user.j2", "Build {{ events[0].payload.job }} is done");
    write("ci.toml", &(both + "template_user = \"ci.user.j2\"\n"));
    let mut event = done(payload);
    event.as_object_mut().unwrap().remove("conversation_id");
    let test = || async {
        let body = json!({"events": [event]});
        post.hub.post(&post.hub.admin, "/v1/subscribers/ci_done/test", body).await.1
    };
    until(|| async { test().await["content_user"] == "Build nightly is done" }).await;
    assert_eq!(test().await["content"], "build_done: nightly");
    assert_eq!(server.received("x").len(), 2, "the confirmation and one notification");
}

#[tokio::test]
async fn a_mail_counts_repeats_after_a_text_that_ends_like_a_count() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    // The repeats are counted before the batch closes.
    let batching = "window_ms = 1000\ndedupe_window_ms = 100\nmax_size = 10";
    write("ci.toml", &format!("{}audience = \"both\"\n", CI_DONE.replace("window_ms = 0", batching)));
    write("ci.j2", "build_done: {{ events[0].payload.job }}");
    let subscribers_dir = Some(folder.path().to_owned());
    let config = Config { email: server.settings("x"), subscribers_dir, ..Config::default() };
    let post = Post::open_on(&server, "x", config).await;
    let event = done(json!({"job": "nightly", "message": "bad (9 more times)"}));
    let (status, answer) = post.hub.post(&post.agent, "/v1/events", json!([event, event, event])).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    post.until("sent", 1).await;
    let shown = "Ci build done: nightly - bad (9 more times) (2 more times)";
    assert_eq!(header(&server.received("x").remove(1), "Subject"), format!("[butler] Info: {shown}"));
    assert_eq!(post.inbox().await[0]["message"], shown);
    let id = answer["events"][0]["id"].as_str().unwrap();
    let (_, trace) = post.hub.get(&post.agent, &format!("/v1/events/{id}")).await;
    assert_eq!(trace["told"][0]["notification"]["message"], shown, "{trace}");
}
