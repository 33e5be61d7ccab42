//! The origin that people see is authenticated: neither a token's origin nor an event's source can impersonate another.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::hub::TestHub;

fn asks(source: &str) -> Value {
    json!({
        "type": "agent.input.needed", "source": source, "severity": "info", "conversation_id": "chat",
        "payload": {"message": "May I?"},
    })
}

async fn inbox(hub: &TestHub) -> Vec<Value> {
    let (_, list) = hub.get(&hub.admin, "/v1/users/ada/notifications").await;
    list["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn reserved_origins_are_refused_in_every_spelling() {
    let hub = TestHub::start().await;
    let spellings = |name: &str| {
        let wide: String = name.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
        [name.to_owned(), name.to_uppercase(), wide, format!("{}\u{200d}{}\u{fe0f}", &name[..2], &name[2..])]
    };
    for name in ["bellwire", "user", "operator", "switchboard", "messenger"] {
        for origin in spellings(name) {
            for scope in ["agent", "ingest", "daemon", "admin", "user"] {
                let user = if matches!(scope, "admin" | "daemon") { None } else { Some("ada") };
                let token = json!({"scope": scope, "user_id": user, "origin": origin});
                let (status, answer) = hub.post(&hub.admin, "/v1/tokens", token).await;
                let allowed = scope == "daemon" && matches!(name, "switchboard" | "messenger");
                let expected = if allowed { StatusCode::CREATED } else { StatusCode::BAD_REQUEST };
                assert_eq!(status, expected, "{scope} {origin}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn reserved_sources_are_refused_from_outside() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    for source in ["bellwire", "Bellwire x3", "USER", "operator", "Switchboard", "messenger"] {
        for token in [&agent, &hub.admin] {
            let (status, answer) = hub.post(token, "/v1/events", asks(source)).await;
            let refused = (StatusCode::FORBIDDEN, &json!("events[0].source"));
            assert_eq!((status, &answer["error"]["field"]), refused, "{source}: {answer}");
        }
    }
    assert_eq!(inbox(&hub).await, Vec::<Value>::new());
}

#[tokio::test]
async fn people_see_the_tokens_origin_beside_the_source() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let (status, answer) = hub.post(&agent, "/v1/events", asks("gardener")).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let (status, answer) = hub.post(&hub.admin, "/v1/events", asks("gardener")).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let items = inbox(&hub).await;
    let shown: Vec<_> = items.iter().map(|item| (item["origin"].as_str(), item["source"].as_str())).collect();
    assert_eq!(shown, [(Some("operator"), Some("gardener")), (Some("butler"), Some("gardener"))]);
}

#[tokio::test]
async fn an_ingest_token_reaches_a_person_only_under_an_origin() {
    let hub = TestHub::start().await;
    let make = async |origin: Value| {
        let (_, made) =
            hub.post(&hub.admin, "/v1/tokens", json!({"scope": "ingest", "user_id": "ada", "origin": origin})).await;
        made["token"].as_str().unwrap().to_owned()
    };
    let (nameless, named) = (make(Value::Null).await, make(json!("ci")).await);
    let (_, answer) = hub.post(&nameless, "/v1/events", asks("butler")).await;
    let verdict = &answer["events"][0]["verdicts"][0];
    assert_eq!((&verdict["subscriber"], &verdict["verdict"]), (&json!("needs_you"), &json!("filtered")), "{answer}");
    assert!(verdict["reason"].as_str().unwrap().starts_with("no_origin: "), "{answer}");
    assert_eq!(inbox(&hub).await, Vec::<Value>::new());
    hub.post(&named, "/v1/events", asks("butler")).await;
    assert_eq!(inbox(&hub).await[0]["origin"], "ci");
}
