//! Errors name the cause and the fix.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};
use crate::people::tool;

/// Status, message and hint of the answer to a GET with this `Authorization` header.
async fn with_header(hub: &TestHub, value: Option<&str>) -> (StatusCode, String, String) {
    let mut request = hub.client.get(format!("{}/v1/subscribers", hub.base));
    if let Some(value) = value {
        request = request.header("authorization", value);
    }
    let response = request.send().await.unwrap();
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    (status, text(&body["error"]["message"]), text(&body["error"]["hint"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn message(answer: &(StatusCode, Value)) -> (u16, String) {
    (answer.0.as_u16(), text(&answer.1["error"]["message"]))
}

fn hint(answer: &(StatusCode, Value)) -> (u16, String) {
    (answer.0.as_u16(), text(&answer.1["error"]["hint"]))
}

#[tokio::test]
async fn a_refused_token_says_why() {
    let hub = TestHub::start().await;
    let (status, message, hint) = with_header(&hub, None).await;
    assert_eq!((status, &*message), (StatusCode::UNAUTHORIZED, "send a token: Authorization: Bearer bw_…"));
    assert!(hint.contains("bellwire token create") && hint.contains("admin.token"), "{hint}");
    let without_scheme = with_header(&hub, Some(&hub.admin)).await.1;
    assert_eq!(without_scheme, "the Authorization header is not of the form: Bearer bw_…");
    let unknown = with_header(&hub, Some("Bearer bw_00")).await.1;
    assert!(unknown.starts_with("this hub does not know this token"), "{unknown}");

    let body = json!({"scope": "user", "user_id": "ada"});
    let (_, created) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let (secret, id) = (text(&created["token"]), text(&created["id"]));
    hub.call(&hub.admin, Method::DELETE, &format!("/v1/tokens/{id}"), None).await;
    let revoked = with_header(&hub, Some(&format!("Bearer {secret}"))).await.1;
    assert!(revoked.starts_with("this token was revoked at 2"), "{revoked}");
    hub.stop().await;
}

#[tokio::test]
async fn a_refused_scope_names_the_scopes_that_may() {
    let hub = TestHub::start().await;
    let ingest = hub.token("ingest", "ada").await;
    let answer = hub.get(&ingest, "/v1/users/ada/settings").await;
    let expected = "a token of scope ingest may not do this; allowed: admin, user";
    assert_eq!(message(&answer), (403, expected.to_owned()));
    hub.stop().await;
}

#[tokio::test]
async fn a_wrong_method_or_path_names_the_right_one() {
    let hub = TestHub::start().await;
    let answer = hub.call(&hub.admin, Method::PATCH, "/v1/conversations/chat", None).await;
    assert_eq!(message(&answer), (405, "this path has no method PATCH; it has PUT, GET".to_owned()));
    let answer = hub.get(&hub.admin, "/v1/conversation/chat").await;
    assert_eq!(message(&answer), (404, "there is no path /v1/conversation/chat".to_owned()));
    let expected = "did you mean /v1/conversations/{id}? GET /docs describes every path";
    assert_eq!(hint(&answer), (404, expected.to_owned()));
    hub.stop().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_names_the_limit() {
    let mut config = bellwire_server::Config::default();
    config.limits.body_bytes = 2_000;
    let hub = TestHub::start_with(config).await;
    let answer = hub.post(&hub.admin, "/v1/events", json!({"payload": "x".repeat(3_000)})).await;
    let expected = "the body has more than 2000 bytes (limits.body_bytes); send it in parts";
    assert_eq!(message(&answer), (413, expected.to_owned()));
    hub.stop().await;
}

#[tokio::test]
async fn a_404_says_what_the_token_can_see_and_how_to_create() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let (_, created) = hub
        .post(
            &hub.admin,
            "/v1/tokens",
            json!({"scope": "agent", "user_id": "ada", "origin": "butler", "conversation_id": "mine"}),
        )
        .await;
    let bound = text(&created["token"]);
    let create = "PUT /v1/conversations/{id} creates a conversation";
    let only_ada = "this token can see only what belongs to the user 'ada'";
    assert_eq!(hint(&hub.get(&ada, "/v1/users/bob/settings").await), (404, only_ada.to_owned()));
    for path in ["/v1/conversations/none/stream", "/v1/conversations/none"] {
        assert_eq!(hint(&hub.get(&ada, path).await), (404, format!("{only_ada}; {create}")));
        let expected = format!("name the owner with ?user_id=; {create}");
        assert_eq!(hint(&hub.get(&hub.admin, path).await), (404, expected));
        let named = format!("{path}?user_id=ada");
        assert_eq!(hint(&hub.get(&hub.admin, &named).await), (404, create.to_owned()));
    }
    let said = hub.post(&hub.admin, "/v1/conversations/none/messages", json!({"message": "hi"})).await;
    assert_eq!(said.0, StatusCode::BAD_REQUEST, "the field is called text: {}", said.1);
    let said = hub.post(&hub.admin, "/v1/conversations/none/messages", json!({"text": "hi"})).await;
    assert_eq!(hint(&said), (404, format!("name the owner with ?user_id=; {create}")));
    let expected = "this token can see only the conversation 'mine' of the user 'ada'";
    assert_eq!(hint(&hub.get(&bound, "/v1/conversations/other").await), (404, expected.to_owned()));
    let published = hub.post(&hub.admin, "/v1/events", failure("grep")).await;
    assert_eq!(hint(&published), (404, format!("name the owner too, with user_id; or {create}")));

    // Whether it exists makes no difference to a caller who may not see it.
    let missing = hub.get(&ada, "/v1/conversations/theirs?user_id=bob").await;
    hub.call(&hub.admin, Method::PUT, "/v1/conversations/theirs", Some(json!({"user_id": "bob"}))).await;
    assert_eq!(hub.get(&ada, "/v1/conversations/theirs?user_id=bob").await, missing);
    hub.stop().await;
}

#[tokio::test]
async fn a_token_for_everyone_is_asked_whose_and_a_bound_one_told_that_it_is_bound() {
    let hub = TestHub::start().await;
    let anyone = hub.token("agent", "*").await;
    let answer = hub.get(&anyone, "/v1/conversations/none/system_prompt").await;
    let expected = "name the owner with ?user_id=; PUT /v1/conversations/{id} creates a conversation";
    assert_eq!(hint(&answer), (404, expected.to_owned()));
    let answer = tool(&hub, &anyone, "send_notification", json!({"message": "done"})).await;
    assert_eq!(answer["message"], "user_id must be present in context");
    for owner in ["ada", "bob"] {
        hub.call(
            &hub.token("agent", owner).await,
            Method::PUT,
            "/v1/conversations/chat",
            Some(json!({"user_id": owner})),
        )
        .await;
    }
    let (status, expected) = message(&hub.get(&anyone, "/v1/conversations/chat").await);
    assert_eq!(
        (status, &*expected),
        (409, "several people have a conversation 'chat'; say whose is meant with user_id")
    );

    let body = json!({"scope": "agent", "user_id": "ada", "origin": "butler", "conversation_id": "mine"});
    let bound = text(&hub.post(&hub.admin, "/v1/tokens", body).await.1["token"]);
    for (field, value) in [("user_id", "bob"), ("conversation_id", "other")] {
        let call = json!({"arguments": {}, "context": {field: value}});
        let answer = hub.post(&bound, "/v1/tools/check_notifications", call).await;
        assert_eq!(message(&answer), (403, format!("this token is bound to another {field}; leave it out")));
        assert_eq!(answer.1["error"]["field"], json!(format!("context.{field}")));
    }
    hub.stop().await;
}

#[tokio::test]
async fn an_unknown_tool_argument_is_named_before_a_missing_one() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    for (name, wrong) in [
        ("send_notification", json!({"text": "done"})),
        ("show_notification", json!({"text": "done"})),
        ("remind", json!({"text": "later"})),
        ("notify_self", json!({"text": "note"})),
    ] {
        let answer = tool(&hub, &agent, name, wrong).await;
        let message = [text(&answer["message"]), text(&answer["error"])].concat();
        assert!(message.starts_with("Unknown argument 'text'. Allowed: message"), "{name}: {answer}");
    }
    hub.stop().await;
}

#[tokio::test]
async fn an_epoch_number_and_a_missing_offset_are_named_in_an_event() {
    let hub = TestHub::start().await;
    for (timestamp, expected) in [
        (json!(1_767_454_200), "1767454200 is a number; write the time in RFC 3339, such as 2026-01-03T15:30:00Z"),
        (json!("1767454200"), "1767454200 is a number; write the time in RFC 3339, such as 2026-01-03T15:30:00Z"),
        (
            json!("2026-01-03T15:30:00"),
            "\"2026-01-03T15:30:00\" has no UTC offset; append Z for UTC, or an offset such as +01:00",
        ),
    ] {
        let mut event = failure("grep");
        event["timestamp"] = timestamp;
        let answer = hub.post(&hub.admin, "/v1/events", event).await;
        assert_eq!(message(&answer), (400, expected.to_owned()));
        assert_eq!(answer.1["error"]["field"], "events[0].timestamp");
    }
    hub.stop().await;
}
