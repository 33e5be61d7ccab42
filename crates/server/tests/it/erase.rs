use std::time::Duration;

use bellwire_server::Config;
use reqwest::{Method, StatusCode};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::hub::{TestHub, failure};

#[tokio::test]
async fn a_person_the_hub_has_never_seen_is_not_found_and_a_repeated_erasure_is_done() {
    let hub = TestHub::start().await;
    let erase = async |user: &str| hub.call(&hub.admin, Method::DELETE, &format!("/v1/users/{user}"), None).await;
    let (status, answer) = erase("typo").await;
    assert_eq!((status, &answer["error"]["message"]), (StatusCode::NOT_FOUND, &json!("there is no such user")));
    // A token is enough to be known, and so is an event that reached no conversation.
    hub.token("user", "ada").await;
    let mut event = failure("grep");
    (event["conversation_id"], event["user_id"]) = (json!(null), json!("bob"));
    assert_eq!(hub.post(&hub.admin, "/v1/events", event).await.0, StatusCode::ACCEPTED);
    for user in ["ada", "bob"] {
        assert_eq!(erase(user).await.0, StatusCode::NO_CONTENT, "{user}");
        assert_eq!(erase(user).await.0, StatusCode::NO_CONTENT, "{user} again");
    }
    // A person learns nothing of others: the answer is the same whether they exist.
    let carol = hub.token("user", "carol").await;
    let asked = async |user: &str| hub.call(&carol, Method::DELETE, &format!("/v1/users/{user}"), None).await;
    hub.token("user", "dave").await;
    assert_eq!(asked("dave").await, asked("typo").await);
    assert_eq!(asked("carol").await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_slow_erasure_continues_and_a_repeated_request_waits_for_it() {
    let mut config = Config::default();
    config.limits.request_seconds = 2;
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    // An open read transaction still sees the rows, so the erasure cannot finish.
    let file = hub.folder.path().join("bellwire.db");
    let mut reader = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    reader.execute("BEGIN; SELECT * FROM events").await.unwrap();
    let erase = || hub.client.delete(format!("{}/v1/users/ada", hub.base)).bearer_auth(&hub.admin).send();
    let answer = erase().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key("retry-after"));
    for (method, path) in [(Method::GET, "/v1/users/ada/settings"), (Method::PATCH, "/v1/users/ada/settings")] {
        let body = (method == Method::PATCH).then(|| json!({}));
        let (status, answer) = hub.call(&hub.admin, method, path, body).await;
        assert_eq!((status, &answer["error"]["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{path}");
    }
    let made = json!({"scope": "agent", "user_id": "ada", "origin": "butler"});
    assert_eq!(hub.post(&hub.admin, "/v1/tokens", made).await.0, StatusCode::CONFLICT);
    reader.execute("ROLLBACK").await.unwrap();
    reader.close().await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(60), erase()).await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    assert_eq!(hub.get(&agent, "/v1/conversations/chat").await.0, StatusCode::UNAUTHORIZED, "its token is gone");
    assert_eq!(hub.get(&hub.admin, "/v1/users/ada/settings").await.0, StatusCode::OK);
}
