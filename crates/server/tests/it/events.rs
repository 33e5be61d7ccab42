use bellwire_server::Config;
use bellwire_server::http::router::ROUTES;
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
    assert_eq!(trace["progress"][0]["states"], json!(["created", "queued", "dispatched", "filtered", "batched"]));

    hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "1"})).await;
    let (_, trace) = hub.get(&agent, &format!("/v1/events/{}", event["id"].as_str().unwrap())).await;
    assert_eq!(trace["progress"][0]["states"].as_array().unwrap().last().unwrap(), "injected");
    assert_eq!(trace["notifications"][0]["states"], json!(["pending", "injected", "persisted"]));
    assert_eq!((&trace["injections"][0]["call_id"], &trace["injections"][0]["unseen"]), (&json!("1"), &json!(false)));
}

#[tokio::test]
async fn arrays_and_ndjson_are_accepted_or_refused_as_a_whole() {
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
async fn an_error_in_ndjson_names_the_line_and_the_field() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let good = failure("grep").to_string();
    let changed = |change: fn(&mut serde_json::Value)| {
        let mut event = failure("grep");
        change(&mut event);
        event.to_string()
    };
    let wrong = [
        ("{nonsense", "events[1]", "line 4: key must be a string at column 2"),
        ("{", "events[1]", "line 4: EOF while parsing an object at column 1"),
        ("7", "events[1]", "line 4: invalid type: integer `7`, expected a JSON object"),
        (
            &changed(|event| event["severity"] = json!("loud")),
            "events[1].severity",
            "line 4: 'loud' must be one of: debug, info, warning, error, critical",
        ),
        (
            &changed(|event| event["colour"] = json!("red")),
            "events[1].colour",
            "line 4: unknown field `colour`, expected one of `id`, `type`, `source`, `severity`, `timestamp`, \
             `payload`, `dedupe_key`, `conversation_id`, `agent`, `user_id`, `correlation_id`",
        ),
        (
            &changed(|event| drop(event.as_object_mut().unwrap().remove("conversation_id"))),
            "events[1].conversation_id",
            "line 4: is missing; an event needs conversation_id or user_id",
        ),
        (
            &changed(|event| drop(event.as_object_mut().unwrap().remove("source"))),
            "events[1].source",
            "line 4: missing field `source`",
        ),
    ];
    for (line, field, message) in wrong {
        let body = format!("\n{good}\r\n\n{line}\n{good}\n");
        let request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent);
        let response = request.header("content-type", "application/x-ndjson").body(body).send().await.unwrap();
        let answer: serde_json::Value = response.json().await.unwrap();
        assert_eq!(
            (&answer["error"]["field"], &answer["error"]["message"]),
            (&json!(field), &json!(message)),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_repeated_client_event_id_is_one_event() {
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
async fn invalid_events_name_the_field_and_never_give_5xx() {
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
async fn a_token_that_publishes_too_fast_gets_429_with_retry_after() {
    let mut config = Config::default();
    (config.limits.publish_per_second, config.limits.publish_burst) = (1, 10);
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    let send = |count: usize| {
        let many = json!(vec![failure("grep"); count]);
        hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent).json(&many).send()
    };
    assert_eq!(send(10).await.unwrap().status(), StatusCode::ACCEPTED);
    let limited = send(10).await.unwrap();
    assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = limited.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=10).contains(&seconds), "{seconds}");
    let request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&hub.admin);
    let unlimited = request.json(&json!(vec![failure("grep"); 20])).send().await.unwrap();
    assert_eq!(unlimited.status(), StatusCode::ACCEPTED, "an admin is exempt");
}

#[tokio::test]
async fn a_call_with_an_idempotency_key_happens_once() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let send = |path: &'static str, key: &'static str, body: serde_json::Value| {
        let request = hub.client.post(format!("{}{path}", hub.base)).bearer_auth(&agent).json(&body);
        async move {
            let response = request.header("idempotency-key", key).send().await.unwrap();
            (response.status(), response.json::<serde_json::Value>().await.unwrap())
        }
    };
    let first = send("/v1/events", "k1", failure("grep")).await;
    assert_eq!(first.0, StatusCode::ACCEPTED);
    assert_eq!(send("/v1/events", "k1", failure("grep")).await, first);
    let (status, answer) = send("/v1/events", "k1", failure("sed")).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (StatusCode::CONFLICT, Some("conflict")));
    let (status, answer) = send("/v1/events", "two words", failure("sed")).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("Idempotency-Key")));

    let rotate = "/v1/conversations/chat/system_prompt/rotate";
    assert_eq!(
        send(rotate, "k1", json!({})).await,
        send(rotate, "k1", json!({})).await,
        "one key means one thing a path"
    );
    let inject = "/v1/conversations/chat/inject";
    let (status, _) = send(inject, "k1", json!({"point": "after_tool", "call_id": "1"})).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = send(inject, "k1", json!({"point": "after_tool", "call_id": "2"})).await;
    assert_eq!(status, StatusCode::OK, "an injection has its call_id, the key is ignored");
}

#[tokio::test]
async fn a_token_made_twice_under_one_key_is_refused_because_its_secret_was_shown() {
    let hub = TestHub::start().await;
    let make = || {
        let request = hub.client.post(format!("{}/v1/tokens", hub.base)).bearer_auth(&hub.admin);
        request.json(&json!({"scope": "ingest"})).header("idempotency-key", "k").send()
    };
    assert_eq!(make().await.unwrap().status(), StatusCode::CREATED);
    assert_eq!(make().await.unwrap().status(), StatusCode::CONFLICT);
}

#[tokio::test]
async fn an_event_for_a_person_without_open_conversations_names_none() {
    let hub = TestHub::start().await;
    let mut event = failure("grep");
    event["conversation_id"] = json!(null);
    event["user_id"] = json!("nobody");
    let (status, answer) = hub.post(&hub.admin, "/v1/events", event).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let verdict = &answer["events"][0]["verdicts"][0];
    assert_eq!(verdict["reason"], "no_open_conversation");
    assert_eq!((&verdict["conversation_id"], &verdict["agent"]), (&json!(null), &json!(null)), "an empty id is none");
}

#[tokio::test]
async fn the_body_limit_applies_with_and_without_content_length() {
    let hub = TestHub::start().await;
    let token = hub.token("agent", "ada").await;
    let mut event = failure("grep");
    event["payload"]["text"] = "x".repeat(50_000).into();
    let lines = |count: usize| format!("{event}\n").repeat(count);
    let send = |body: reqwest::Body| {
        let call = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&token);
        call.header("content-type", "application/x-ndjson").body(body).send()
    };
    // Five megabytes, and seventeen where sixteen are allowed: with and without `Content-Length`.
    let chunked =
        |text: String| reqwest::Body::wrap_stream(futures_util::stream::iter([Ok::<_, std::io::Error>(text)]));
    assert_eq!(send(lines(100).into()).await.unwrap().status(), StatusCode::ACCEPTED);
    assert_eq!(send(chunked(lines(100))).await.unwrap().status(), StatusCode::ACCEPTED);
    // The hub may close the connection before all of the body is sent; then there is no response.
    for refused in [send(lines(340).into()).await, send(chunked(lines(340))).await] {
        assert!(refused.is_err() || refused.is_ok_and(|answer| answer.status() == StatusCode::PAYLOAD_TOO_LARGE));
    }
    assert_eq!(send(lines(1).into()).await.unwrap().status(), StatusCode::ACCEPTED);
}

/// The parameter of a path, and the literal segment of another path that is matched before it.
fn hidden_by(path: &str, other: &str) -> Option<(&'static str, String)> {
    let is_parameter = |segment: &str| segment.starts_with('{');
    let (own, others): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), other.split('/').collect());
    let matches = |(own, other): (&&str, &&str)| own == other || is_parameter(own) || is_parameter(other);
    if own.len() != others.len() || !own.iter().zip(&others).all(matches) {
        return None;
    }
    let (parameter, literal) = own.iter().zip(&others).find(|(own, other)| own != other)?;
    let known = ["{id}", "{nid}", "{channel}", "{signed}", "{file}"].into_iter().find(|known| known == parameter)?;
    (!is_parameter(literal)).then(|| (known, (*literal).to_owned()))
}

#[tokio::test]
async fn no_path_of_the_table_hides_an_id_that_a_caller_chose() {
    let hub = TestHub::start().await;
    let (_, channels) = hub.get(&hub.admin, "/v1/channels").await;
    let mut refused = 0;
    let pairs = ROUTES.iter().flat_map(|route| ROUTES.iter().map(move |other| (route.path, other.path)));
    for (path, (parameter, literal)) in pairs.filter_map(|(path, other)| Some((path, hidden_by(path, other)?))) {
        match parameter {
            "{id}" => {
                assert_eq!(path, "/v1/events/{id}", "the ids of this path need the same refusal");
                let mut event = failure("grep");
                (event["id"], event["user_id"]) = (json!(literal), json!("ada"));
                let (status, answer) = hub.post(&hub.admin, "/v1/events", json!([event])).await;
                assert_eq!(status, StatusCode::BAD_REQUEST, "{literal}: {answer}");
                assert_eq!(answer["error"]["field"], "events[0].id", "{answer}");
                refused += 1;
            }
            "{channel}" => assert!(!channels.to_string().contains(&format!("\"{literal}\"")), "{path}: {literal}"),
            // The hub makes the ids of notifications: UUIDs.
            "{nid}" => assert!(uuid::Uuid::try_parse(&literal).is_err(), "{path}: {literal}"),
            other => panic!("{path}: who chooses {other}, and can it be {literal}?"),
        }
    }
    assert_eq!(refused, 1, "the table has one such path: stream");
}
