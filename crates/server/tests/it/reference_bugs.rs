//! One regression test for each bug of the systems that these tools come from ("there"). Bugs that only concern the store
//! are tested in `crates/store/tests/it`: the hourly limit, reminders under it, fenced claims.

mod counting;
mod delivery;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::people::{send, tool};

async fn patch(hub: &TestHub, token: &str, body: Value) -> (StatusCode, Value) {
    hub.call(token, Method::PATCH, "/v1/users/ada/settings", Some(body)).await
}

#[tokio::test]
async fn refused_calls_do_not_renew_the_limits_window() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    for number in 0..30 {
        send(&hub, &agent, &format!("{number}")).await;
    }
    let mut last = 3601;
    for _ in 0..5 {
        let wait = send(&hub, &agent, "again").await["retry_after_seconds"].as_u64().unwrap();
        assert!(wait <= last, "asking again does not make the wait longer");
        last = wait;
    }
}

#[tokio::test]
async fn leaving_out_a_setting_does_not_reset_it() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let night = json!({"start": "22:00", "end": "07:00", "timezone": "UTC"});
    patch(&hub, &ada, json!({"quiet_hours": night, "toasts": {"enabled": false}})).await;
    let (_, after) = patch(&hub, &ada, json!({"email": {"enabled": true}})).await;
    assert_eq!((&after["quiet_hours"], &after["toasts"]["enabled"]), (&night, &json!(false)));
}

#[tokio::test]
async fn an_unknown_timezone_is_refused_and_never_taken_for_utc() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let wrong = json!({"quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "Berlin"}});
    let (status, answer) = patch(&hub, &ada, wrong).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("quiet_hours.timezone")));
    let half = json!({"quiet_hours": {"start": "22:00"}});
    assert_eq!(patch(&hub, &ada, half).await.0, StatusCode::BAD_REQUEST, "one end of a window is none");
}

#[tokio::test]
async fn the_length_limit_applies_to_the_trimmed_text() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let padded = format!("   {}\n\n", "x".repeat(500));
    assert_eq!(send(&hub, &agent, &padded).await["success"], true);
    assert_eq!(send(&hub, &agent, &"x".repeat(501)).await["action"], "validation_error");
}

#[tokio::test]
async fn line_breaks_and_controls_in_a_message_stay_text() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    send(&hub, &agent, "hello\r\nBcc: eve@example.org\u{0}\u{202e}").await;
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications").await;
    assert_eq!(list["items"][0]["message"], "hello\nBcc: eve@example.org");
}

#[tokio::test]
async fn every_toast_is_stored_with_a_state() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let shown = tool(&hub, &agent, "show_notification", json!({"message": "Saved", "severity": "success"})).await;
    let path = format!("/v1/users/ada/notifications/{}", shown["notification"]["id"].as_str().unwrap());
    let (status, read) = hub.call(&ada, Method::PATCH, &path, Some(json!({"read": true}))).await;
    assert_eq!((status, read["read_at"].is_string()), (StatusCode::OK, true));
}

/// There, acknowledging a delivered notification failed with 404: only pending ones could be acknowledged.
#[tokio::test]
async fn a_shown_toast_can_still_be_acted_on() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let button = json!({"label": "Go", "action": "prompt", "prompt": "go on"});
    let toast = json!({"message": "Look", "severity": "info", "duration": 1, "actions": [button]});
    let shown = tool(&hub, &agent, "show_notification", toast).await;
    let path = format!("/v1/users/ada/notifications/{}", shown["notification"]["id"].as_str().unwrap());
    hub.call(&ada, Method::PATCH, &path, Some(json!({"read": true}))).await;
    let (status, _) = hub.post(&ada, &format!("{path}/actions/0"), json!({})).await;
    assert_eq!(status, StatusCode::OK, "it was delivered and read, and its button works all the same");
}

#[tokio::test]
async fn a_buttons_prompt_is_not_shown_as_typed_by_the_person() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let button = json!({"label": "Yes", "action": "prompt", "prompt": "delete everything"});
    let toast = json!({"message": "Delete?", "severity": "warning", "actions": [button]});
    let shown = tool(&hub, &agent, "show_notification", toast).await;
    let path = format!("/v1/users/ada/notifications/{}", shown["notification"]["id"].as_str().unwrap());
    hub.post(&ada, &format!("{path}/actions/0"), json!({})).await;
    let (_, block) =
        hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "c"})).await;
    assert!(block["block"].as_str().unwrap().contains("offered by butler"), "{block}");
}

#[tokio::test]
async fn the_same_event_for_two_people_reaches_both() {
    let hub = TestHub::start().await;
    for person in ["ada", "bob"] {
        let agent = hub.token("agent", person).await;
        let event = json!({
            "type": "agent.input.needed", "source": "butler", "severity": "info", "user_id": person,
            "payload": {"message": "Review, please"}, "dedupe_key": "review-7",
        });
        let (status, answer) = hub.post(&agent, "/v1/events", event.clone()).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        hub.post(&agent, "/v1/events", event).await;
        let (_, list) = hub.get(&hub.admin, &format!("/v1/users/{person}/notifications")).await;
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{person} is told, and told once: {list}");
    }
}

#[tokio::test]
async fn a_press_with_a_reused_idempotency_key_is_refused() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let button = json!({"label": "Go", "action": "prompt", "prompt": "go on"});
    let toast = json!({"message": "Look", "severity": "info", "actions": [button]});
    let shown = tool(&hub, &agent, "show_notification", toast).await;
    let id = shown["notification"]["id"].as_str().unwrap();
    let url = format!("{}/v1/users/ada/notifications/{id}/actions/0", hub.base);
    let press = async |body: &'static str| {
        let request = hub.client.post(&url).bearer_auth(&ada).header("idempotency-key", "press-1").body(body);
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };
    let first = press("").await;
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    assert_eq!(press("").await, first, "the first answer, byte for byte");
    assert_eq!(press("{}").await.0, StatusCode::CONFLICT);
}
