use reqwest::StatusCode;
use serde_json::json;

use crate::hub::{TestHub, failure};

#[tokio::test]
async fn an_event_is_accepted_with_its_verdicts_and_can_be_traced() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let (status, answer) = hub.post(&agent, "/v1/events", failure("grep")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let event = &answer["events"][0];
    assert_eq!((event["filtered"].as_u64(), event["verdicts"][0]["verdict"].as_str()), (Some(14), Some("held")));

    let (status, trace) = hub.get(&agent, &format!("/v1/events/{}", event["id"].as_str().unwrap())).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(trace["type"], "tool.call.failure");
    assert_eq!(trace["verdicts"], event["verdicts"]);
}

#[tokio::test]
async fn arrays_and_ndjson_are_taken_in_together_or_not_at_all() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let (status, answer) = hub.post(&agent, "/v1/events", json!([failure("a"), failure("b")])).await;
    assert_eq!((status, answer["events"].as_array().unwrap().len()), (StatusCode::ACCEPTED, 2));

    let lines = format!("{}\n\n{}\n", failure("c"), failure("d"));
    let request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent);
    let response = request.header("content-type", "application/x-ndjson").body(lines).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);

    let mut bad = failure("f");
    bad["severity"] = json!("fatal");
    let (status, answer) = hub.post(&agent, "/v1/events", json!([failure("e"), bad])).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("events[1].severity")));
    let (_, block) =
        hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "1"})).await;
    let block = block["block"].as_str().unwrap();
    assert!(block.contains("tool_fails[4]"), "{block}");
}

#[tokio::test]
async fn a_name_that_is_brought_twice_is_one_event() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let mut event = failure("grep");
    event["id"] = json!("build-17");
    let first = hub.post(&agent, "/v1/events", event.clone()).await;
    assert_eq!(first.1["events"][0]["id"], "build-17");
    assert_eq!(hub.post(&agent, "/v1/events", event.clone()).await, first);
    event["severity"] = json!("critical");
    let (status, answer) = hub.post(&agent, "/v1/events", event).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (StatusCode::CONFLICT, Some("conflict")));
}

#[tokio::test]
async fn what_is_wrong_is_named_and_nothing_is_a_server_error() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let wrong = [
        (json!({"type": "Tool.Call"}), 400, "type"),
        (json!({"source": "user"}), 403, "source"),
        (json!({"type": "user.message"}), 403, "type"),
        (json!({"payload": [1]}), 400, "payload"),
        (json!({"conversation_id": null}), 400, "conversation_id"),
        (json!({"colour": "red"}), 400, "colour"),
        (json!({"payload": {"x": "y".repeat(70_000)}}), 400, "payload"),
    ];
    for (change, status, field) in wrong {
        let mut event = failure("grep");
        for (key, value) in change.as_object().unwrap() {
            event[key] = value.clone();
        }
        let (got, answer) = hub.post(&agent, "/v1/events", event).await;
        assert_eq!(
            (got.as_u16(), answer["error"]["field"].as_str()),
            (status, Some(format!("events[0].{field}").as_str()))
        );
    }
    let request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent).body("{nonsense");
    assert_eq!(request.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    let (status, _) = hub.post(&agent, "/v1/events", json!([])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_token_that_publishes_too_fast_is_told_when_to_come_back() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let many = json!(vec![failure("grep"); 1000]);
    // All at once: a busy machine takes so long over one after the other that the rate allows them.
    let send = |_| hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent).json(&many).send();
    let answers = futures_util::future::join_all((0..12).map(send)).await;
    let (limited, passed): (Vec<_>, Vec<_>) =
        answers.into_iter().map(Result::unwrap).partition(|answer| answer.status() == StatusCode::TOO_MANY_REQUESTS);
    assert!(passed.iter().all(|answer| answer.status() == StatusCode::ACCEPTED));
    let limited = limited.first().expect("five thousand at once are enough");
    assert!(limited.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
}
