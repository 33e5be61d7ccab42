//! `POST /v1/reminders`: a person sets their own reminders.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;

const PATH: &str = "/v1/reminders";

#[tokio::test]
async fn a_person_sets_lists_and_cancels_their_own_reminder() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let (status, made) = hub.post(&ada, PATH, json!({"message": " Buy\u{0} milk ", "in_minutes": 30})).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!(
        (&made["user_id"], &made["origin"], &made["message"]),
        (&json!("ada"), &json!("user"), &json!("Buy milk"))
    );
    let (_, list) = hub.get(&ada, PATH).await;
    assert_eq!(list["items"], json!([made]));
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    assert_eq!(hub.call(&ada, Method::DELETE, &path, None).await.0, StatusCode::NO_CONTENT);
    let bob = hub.token("user", "bob").await;
    let of_bob = format!("{PATH}?user_id=bob");
    hub.post(&bob, PATH, json!({"message": "Call Ada", "in_minutes": 30})).await;
    assert_eq!(hub.get(&hub.admin, &of_bob).await.1, hub.get(&bob, PATH).await.1);
    assert_eq!(hub.get(&bob, &of_bob).await, hub.get(&bob, PATH).await);
    assert_eq!(hub.get(&ada, &of_bob).await.0, StatusCode::NOT_FOUND);
    let theirs = json!({"message": "Pay me", "in_minutes": 5, "user_id": "ada"});
    assert_eq!(hub.post(&bob, PATH, theirs.clone()).await.0, StatusCode::NOT_FOUND);
    let (status, made) = hub.post(&hub.admin, PATH, theirs.clone()).await;
    assert_eq!((status, &made["origin"]), (StatusCode::CREATED, &json!("operator")));
    let agent = hub.token("agent", "ada").await;
    assert_eq!(hub.post(&agent, PATH, theirs).await.0, StatusCode::FORBIDDEN, "agents have the tool");
}

#[tokio::test]
async fn a_repeated_call_sets_one_reminder_also_when_its_time_has_passed() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let at = hub.store().now().plus(2_000).to_string();
    let send = async || -> (StatusCode, Value) {
        let request = hub.client.post(format!("{}{PATH}", hub.base)).bearer_auth(&ada).header("Idempotency-Key", "k");
        let response = request.json(&json!({"message": "Soon", "at": at})).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    };
    let (status, first) = send().await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    while hub.get(&ada, PATH).await.1["items"] != json!([]) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let (status, again) = send().await;
    assert_eq!((status, &again["id"]), (StatusCode::CREATED, &first["id"]));
    let (_, inbox) = hub.get(&ada, "/v1/users/ada/notifications").await;
    assert_eq!(inbox["items"].as_array().unwrap().len(), 1, "{inbox}");
}

#[tokio::test]
async fn what_is_wrong_with_a_reminder_is_named() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let wrong = [
        (json!({"in_minutes": 5}), "message"),
        (json!({"message": " ", "in_minutes": 5}), "message"),
        (json!({"message": "\u{200b}", "in_minutes": 5}), "message"),
        (json!({"message": "x".repeat(501), "in_minutes": 5}), "message"),
        (json!({"message": "x"}), "at"),
        (json!({"message": "x", "at": "2020-01-01T00:00:00Z"}), "at"),
        (json!({"message": "x", "at": "tomorrow"}), "at"),
        (json!({"message": "x", "at": "2999-01-01T00:00:00Z"}), "at"),
        (json!({"message": "x", "in_minutes": 0}), "in_minutes"),
        (json!({"message": "x", "in_minutes": 5, "at": "2999-01-01T00:00:00Z"}), "in_minutes"),
        (json!({"message": "x", "in_minutes": 5, "colour": "red"}), "colour"),
    ];
    for (body, field) in wrong {
        let (status, answer) = hub.post(&ada, PATH, body.clone()).await;
        assert_eq!(
            (status, answer["error"]["field"].as_str()),
            (StatusCode::BAD_REQUEST, Some(field)),
            "{body}: {answer}"
        );
    }
    let (status, answer) = hub.post(&hub.admin, PATH, json!({"message": "x", "in_minutes": 5})).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("user_id")), "{answer}");
}
