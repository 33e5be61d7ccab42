//! `GET /v1/events` and `GET /v1/conversations`: filters, pages, owners and errors.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};

fn event(kind: &str, severity: &str) -> Value {
    json!({"type": kind, "source": "ci", "severity": severity, "conversation_id": "chat", "payload": {"tool_name": "grep"}})
}

fn types(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

/// A hub on which Ada's agent has published four events and Bob's one.
async fn hub_with_events() -> (TestHub, String) {
    let hub = TestHub::start().await;
    let (ada, bob) = (hub.token("agent", "ada").await, hub.token("agent", "bob").await);
    let events = [
        event("tool.call.failure", "error"),
        event("tool.call.failure", "error"),
        event("tool.call.success", "info"),
        event("tool.call.timeout", "debug"),
    ];
    for event in events {
        assert_eq!(hub.post(&ada, "/v1/events", event).await.0, StatusCode::ACCEPTED);
    }
    let (status, _) = hub.post(&bob, "/v1/events", failure("his")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    (hub, ada)
}

#[tokio::test]
async fn why_an_event_was_not_shown_is_found_without_its_id() {
    let (hub, ada) = hub_with_events().await;
    let (status, duplicates) = hub.get(&ada, "/v1/events?conversation_id=chat&verdict=duplicate").await;
    assert_eq!((status, types(&duplicates)), (StatusCode::OK, vec!["tool.call.failure"]), "{duplicates}");
    let item = &duplicates["items"][0];
    assert_eq!((&item["user_id"], &item["payload"]), (&json!("ada"), &json!({"tool_name": "grep"})));
    assert!(item["verdicts"][0]["reason"].as_str().unwrap().contains("repeat 1"), "{item}");
    let (_, filtered) = hub.get(&ada, "/v1/events?verdict=filtered&type=tool.*").await;
    assert_eq!(types(&filtered), ["tool.call.timeout"]);
    let person = hub.token("user", "ada").await;
    assert_eq!(types(&hub.get(&person, "/v1/events?type=tool.call.success").await.1), ["tool.call.success"]);
}

#[tokio::test]
async fn events_are_paged_by_cursor_for_admin_and_owner() {
    let (hub, ada) = hub_with_events().await;
    for (token, count) in [(&ada, 4), (&hub.admin, 5)] {
        let (mut seen, mut path) = (Vec::new(), "/v1/events?limit=2".to_owned());
        loop {
            let (status, page) = hub.get(token, &path).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].to_string()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/events?limit=2&cursor={next}");
        }
        let newest_first = seen.windows(2).all(|pair| pair[0] > pair[1]);
        assert!(seen.len() == count && newest_first, "{seen:?}");
    }
    assert_eq!(types(&hub.get(&hub.admin, "/v1/events?user_id=bob").await.1).len(), 1);
    let (_, event) = hub.get(&hub.admin, "/v1/events?limit=1").await;
    let since = event["items"][0]["accepted_at"].as_str().unwrap();
    assert!(!types(&hub.get(&hub.admin, &format!("/v1/events?since={since}")).await.1).is_empty());
    // An offset whose plus sign was not percent-encoded.
    let (status, none) = hub.get(&hub.admin, "/v1/events?since=2999-01-01T00:00:00+01:00").await;
    assert_eq!((status, types(&none).len()), (StatusCode::OK, 0), "{none}");
}

#[tokio::test]
async fn conversations_are_listed_with_what_waits_in_them() {
    let (hub, ada) = hub_with_events().await;
    let (_, put) = hub
        .call(&ada, reqwest::Method::PUT, "/v1/conversations/work", Some(json!({"user_id": "ada", "title": "Work"})))
        .await;
    assert_eq!(put["title"], "Work");
    let (status, list) = hub.get(&ada, "/v1/conversations").await;
    assert_eq!(status, StatusCode::OK);
    let ids: Vec<&str> = list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["work", "chat"], "{list}");
    for (key, value) in put.as_object().unwrap() {
        assert_eq!(&list["items"][0][key], value, "{key}");
    }
    assert!(list["items"][0]["last_used_at"].is_string() && list["items"][0]["created_at"].is_string());
    let (_, first) = hub.get(&hub.admin, "/v1/conversations?limit=1").await;
    let next = first["next_cursor"].as_str().expect("there are more");
    let (_, second) = hub.get(&hub.admin, &format!("/v1/conversations?limit=9&cursor={next}")).await;
    assert_eq!((&first["items"][0]["id"], second["items"].as_array().unwrap().len()), (&json!("work"), 2));
    let (_, named) = hub.get(&hub.admin, "/v1/conversations?conversation_id=chat").await;
    let owners: Vec<&Value> = named["items"].as_array().unwrap().iter().map(|item| &item["user_id"]).collect();
    assert_eq!(owners, ["ada", "bob"]);
    let (_, bound) = hub
        .post(
            &hub.admin,
            "/v1/tokens",
            json!({"scope": "agent", "user_id": "ada", "origin": "x", "conversation_id": "work"}),
        )
        .await;
    let (_, only) = hub.get(bound["token"].as_str().unwrap(), "/v1/conversations").await;
    assert_eq!((only["items"].as_array().unwrap().len(), &only["items"][0]["id"]), (1, &json!("work")));
}

#[tokio::test]
async fn what_a_list_cannot_serve_is_named() {
    let (hub, ada) = hub_with_events().await;
    let wrong = [
        ("/v1/conversations?type=tool.call.failure", 422, Some("type")),
        ("/v1/conversations?verdict=held", 422, Some("verdict")),
        ("/v1/conversations?conversation_id=chat&since=2026-01-03T15:30:00Z", 422, Some("since")),
        ("/v1/conversations?cursor=%21", 400, Some("cursor")),
        ("/v1/conversations?colour=red", 400, Some("colour")),
        ("/v1/conversations?user_id=bob", 404, None),
        ("/v1/events?type=Tool", 400, Some("type")),
        ("/v1/events?verdict=lost", 400, Some("verdict")),
        ("/v1/events?since=yesterday", 400, Some("since")),
        ("/v1/events?limit=101", 400, Some("limit")),
        ("/v1/events?cursor=1", 400, Some("cursor")),
        ("/v1/events?colour=red", 400, Some("colour")),
        ("/v1/events?conversation_id=absent", 404, None),
        ("/v1/events?user_id=bob", 404, None),
    ];
    for (path, status, field) in wrong {
        let (answered, error) = hub.get(&ada, path).await;
        assert_eq!((answered.as_u16(), error["error"]["field"].as_str()), (status, field), "{path}: {error}");
    }
    let (status, error) = hub.get(&hub.admin, "/v1/events?conversation_id=chat").await;
    assert_eq!(status, StatusCode::CONFLICT, "two people have it: {error}");
}

#[tokio::test]
async fn an_admin_finds_an_event_by_its_senders_id_and_is_told_of_several() {
    let hub = TestHub::start().await;
    let send = async |user: &str, id: &str| {
        let agent = hub.token("agent", user).await;
        let mut event = failure("grep");
        event["id"] = json!(id);
        let (status, answer) = hub.post(&agent, "/v1/events", event).await;
        assert_eq!((status, &answer["events"][0]["id"]), (StatusCode::ACCEPTED, &json!(id)), "{answer}");
        (agent, answer["events"][0]["event_id"].as_str().unwrap().to_owned())
    };
    let (ada, first) = send("ada", "build-17").await;
    for id in ["build-17", &first] {
        for token in [&ada, &hub.admin] {
            let (status, trace) = hub.get(token, &format!("/v1/events/{id}")).await;
            assert_eq!((status, &trace["id"]), (StatusCode::OK, &json!(first)), "{id}: {trace}");
        }
    }
    let (_, second) = send("bob", "build-17").await;
    let (status, answer) = hub.get(&hub.admin, "/v1/events/build-17").await;
    let error = &answer["error"];
    assert_eq!((status, &error["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{answer}");
    assert_eq!(error["message"], "2 events have this id; ask with the event_id of the one you mean");
    let candidates = error["candidates"].as_array().unwrap();
    let ids: Vec<_> = candidates.iter().map(|one| one["event_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&&*first) && ids.contains(&&*second), "{answer}");
    assert!(candidates.iter().all(|one| one["conversation_id"] == "chat" && one["type"] == "tool.call.failure"));
    let (_, own) = hub.get(&ada, "/v1/events/build-17").await;
    assert_eq!(own["id"], json!(first), "a sender finds its own");

    // The id of another event does not hide that event.
    let (_, third) = send("mallory", &first).await;
    assert_ne!(third, first);
    assert_eq!(hub.get(&hub.admin, &format!("/v1/events/{first}")).await.1["id"], json!(first));
    // An agent for everyone is no admin: it finds events by its own ids and by the hub's.
    let anyone = hub.token("agent", "*").await;
    assert_eq!(hub.get(&anyone, "/v1/events/build-17").await.0, StatusCode::NOT_FOUND);
    assert_eq!(hub.get(&hub.admin, "/v1/events/build-18").await.0, StatusCode::NOT_FOUND);
    let (_, published) = hub.post(&ada, "/v1/events", failure("sed")).await;
    assert_eq!(
        published["events"][0]["id"], published["events"][0]["event_id"],
        "without an own id both are the hub's"
    );
}

#[tokio::test]
async fn the_list_of_events_with_one_id_is_bounded() {
    let hub = TestHub::start().await;
    for number in 0..22 {
        let agent = hub.token("agent", &format!("user-{number}")).await;
        let mut event = failure("grep");
        event["id"] = json!("1");
        assert_eq!(hub.post(&agent, "/v1/events", event).await.0, StatusCode::ACCEPTED);
    }
    let (_, answer) = hub.get(&hub.admin, "/v1/events/1").await;
    assert_eq!(answer["error"]["candidates"].as_array().map(Vec::len), Some(20));
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("more than 20 events have this id"), "{answer}");
}
