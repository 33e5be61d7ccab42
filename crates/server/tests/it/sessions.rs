//! Signing in: a code is exchanged once for a session, which its person lists and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellwire_core::Time;
use bellwire_server::Config;
use bellwire_store::{Clock, SessionOwner};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::person_stream::Listener;

async fn code(hub: &TestHub, body: Value) -> Value {
    let (status, made) = hub.post(&hub.admin, "/v1/sign_in_codes", body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made
}

/// Exchanges a code without a token.
async fn exchange(hub: &TestHub, body: Value) -> reqwest::Response {
    hub.client.post(format!("{}/v1/sessions", hub.base)).json(&body).send().await.unwrap()
}

pub(crate) async fn sign_in(hub: &TestHub, user_id: &str, scope: &str) -> Value {
    let made = code(hub, json!({"user_id": user_id, "scope": scope})).await;
    let answer = exchange(hub, json!({"code": made["code"], "name": "Firefox"})).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    answer.json().await.unwrap()
}

fn token(session: &Value) -> &str {
    session["token"].as_str().unwrap()
}

#[tokio::test]
async fn a_code_is_exchanged_once_and_the_session_is_its_persons() {
    let hub = TestHub::start().await;
    let made = code(&hub, json!({"user_id": "ada"})).await;
    assert_eq!((&made["scope"], &made["user_id"], &made["link"]), (&json!("user"), &json!("ada"), &Value::Null));
    let secret = made["code"].as_str().unwrap();
    assert_eq!(secret.len(), 22, "128 bits: {secret}");
    let answer = exchange(&hub, json!({"code": secret})).await;
    assert_eq!(
        (answer.status(), &answer.headers()["cache-control"]),
        (StatusCode::CREATED, &"no-store".parse().unwrap())
    );
    assert!(!answer.headers().contains_key("set-cookie"), "no cookies");
    let session: Value = answer.json().await.unwrap();
    assert_eq!((&session["scope"], &session["user_id"]), (&json!("user"), &json!("ada")), "{session}");
    let again = exchange(&hub, json!({"code": secret})).await;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED);
    let text = again.text().await.unwrap();
    assert!(text.contains("was used") && !text.contains(secret), "{text}");
    let (status, own) = hub.get(token(&session), "/v1/token").await;
    assert_eq!((status, &own["id"], &own["user_id"]), (StatusCode::OK, &session["id"], &json!("ada")), "{own}");
    assert_eq!(own["expires_at"], session["expires_at"]);
    assert_eq!(hub.get(token(&session), "/v1/users/ada/notifications").await.0, StatusCode::OK);
    assert_eq!(hub.get(token(&session), "/v1/users/bob/notifications").await.0, StatusCode::NOT_FOUND);
    assert_eq!(hub.get(token(&session), "/v1/tokens").await.0, StatusCode::FORBIDDEN);
    let (_, tokens) = hub.get(&hub.admin, "/v1/tokens").await;
    assert!(!tokens.to_string().contains(session["id"].as_str().unwrap()), "a session is no token");
}

#[tokio::test]
async fn an_admins_session_has_a_person_and_reads_everyone() {
    let config = Config { public_url: Some("https://bell.example.org".into()), ..Config::default() };
    let hub = TestHub::start_with(config).await;
    let made = code(&hub, json!({"user_id": "me", "scope": "admin"})).await;
    let link = format!("https://bell.example.org/sign-in#code={}", made["code"].as_str().unwrap());
    assert_eq!(made["link"], link);
    let session: Value = exchange(&hub, json!({"code": made["code"]})).await.json().await.unwrap();
    let (_, own) = hub.get(token(&session), "/v1/token").await;
    assert_eq!((&own["scope"], &own["user_id"]), (&json!("admin"), &json!("me")), "{own}");
    for path in ["/v1/users/bob/notifications", "/v1/tokens", "/v1/deliveries"] {
        assert_eq!(hub.get(token(&session), path).await.0, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_their_person() {
    let hub = TestHub::start().await;
    let (first, second) = (sign_in(&hub, "ada", "user").await, sign_in(&hub, "ada", "user").await);
    let (his, admins) = (sign_in(&hub, "bob", "user").await, sign_in(&hub, "ada", "admin").await);
    let listed = async |token: &str| {
        let (status, list) = hub.get(token, "/v1/sessions").await;
        assert_eq!(status, StatusCode::OK, "{list}");
        let items = list["items"].as_array().unwrap().clone();
        items.into_iter().map(|one| (one["id"].clone(), one["current"].as_bool().unwrap())).collect::<Vec<_>>()
    };
    let mut both = listed(token(&first)).await;
    both.sort_by_key(|(_, current)| !current);
    assert_eq!(both, [(first["id"].clone(), true), (second["id"].clone(), false)]);
    assert_eq!(listed(token(&admins)).await, [(admins["id"].clone(), true)]);
    assert_eq!(listed(&hub.admin).await, [(admins["id"].clone(), false)]);
    let (_, list) = hub.get(token(&his), "/v1/sessions").await;
    let one = &list["items"][0];
    assert_eq!((&one["name"], &one["scope"], &one["user_id"]), (&json!("Firefox"), &json!("user"), &json!("bob")));
    assert!(!list.to_string().contains(token(&his)), "no secret is listed");
    let end = async |token: &str, session: &Value| {
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        hub.call(token, Method::DELETE, &path, None).await.0
    };
    assert_eq!(end(token(&his), &first).await, StatusCode::NOT_FOUND);
    assert_eq!(end(&hub.admin, &first).await, StatusCode::NOT_FOUND, "a person's sessions are the person's");
    let mut stream = Listener::open(&hub, token(&second), None).await;
    stream.hear("unread").await;
    assert_eq!(end(token(&first), &second).await, StatusCode::NO_CONTENT);
    assert_eq!(stream.next().await, None, "its stream ends");
    assert_eq!(hub.get(token(&second), "/v1/token").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(end(token(&first), &first).await, StatusCode::NO_CONTENT, "signing out");
    assert_eq!(hub.get(token(&first), "/v1/token").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn wrong_codes_are_bounded_and_a_right_one_still_works() {
    let hub = TestHub::start().await;
    let made = code(&hub, json!({"user_id": "ada"})).await;
    for _ in 0..10 {
        assert_eq!(exchange(&hub, json!({"code": "AAAAAAAAAAAAAAAAAAAAAA"})).await.status(), StatusCode::UNAUTHORIZED);
    }
    let limited = exchange(&hub, json!({"code": "AAAAAAAAAAAAAAAAAAAAAA"})).await;
    assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.headers().contains_key("retry-after"));
    assert_eq!(exchange(&hub, json!({"code": made["code"]})).await.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn a_body_without_a_token_is_small_and_its_fields_are_checked() {
    let hub = TestHub::start().await;
    let large = exchange(&hub, json!({"code": "x", "name": "y".repeat(70_000)})).await;
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    for (body, field) in [
        (json!({}), "code"),
        (json!({"code": 5}), "code"),
        (json!({"code": "x", "scope": "admin"}), "scope"),
        (json!({"code": "x", "name": "a\nb"}), "name"),
    ] {
        let answer = exchange(&hub, body.clone()).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{body}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["error"]["field"], field, "{body}: {answer}");
    }
    for (body, field) in [
        (json!({"user_id": "ada", "scope": "agent"}), "scope"),
        (json!({"user_id": "*"}), "user_id"),
        (json!({"user_id": ""}), "user_id"),
    ] {
        let (status, answer) = hub.post(&hub.admin, "/v1/sign_in_codes", body.clone()).await;
        assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!(field)), "{body}: {answer}");
    }
}

#[tokio::test]
async fn a_session_survives_a_restart_and_is_erased_with_its_person() {
    let hub = TestHub::start().await;
    let session = sign_in(&hub, "ada", "user").await;
    let hub = TestHub::start_in(hub.stop().await).await;
    assert_eq!(hub.get(token(&session), "/v1/token").await.0, StatusCode::OK);
    let mut stream = Listener::open(&hub, token(&session), None).await;
    stream.hear("unread").await;
    hub.call(&hub.admin, Method::DELETE, "/v1/users/ada", None).await;
    assert_eq!(stream.next().await, None, "its stream ends");
    let (status, answer) = hub.get(token(&session), "/v1/token").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer}");
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A hub, and the number of milliseconds by which its clock is ahead of the machine's.
async fn hub_with_a_clock() -> (TestHub, Arc<AtomicI64>) {
    let ahead = Arc::new(AtomicI64::new(0));
    let read = ahead.clone();
    let wall = move || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap() + read.load(Ordering::SeqCst))
    };
    (TestHub::start_with_clock(Clock::set_by(wall)).await, ahead)
}

/// Lets an hour pass for the timers of the hub.
async fn pass_an_hour() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3601)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_page_that_only_listens_is_in_use_and_another_ends_after_seven_days() {
    let (hub, ahead) = hub_with_a_clock().await;
    let (listening, idle) = (sign_in(&hub, "ada", "user").await, sign_in(&hub, "ada", "user").await);
    assert_eq!(hub.get(token(&idle), "/v1/token").await.0, StatusCode::OK);
    let mut streams = [Listener::open(&hub, token(&listening), None).await, {
        // Clears the cache of tokens: the second stream has read its session anew.
        let made = hub.post(&hub.admin, "/v1/tokens", json!({"scope": "ingest"})).await.1;
        let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
        assert_eq!(hub.call(&hub.admin, Method::DELETE, &path, None).await.0, StatusCode::NO_CONTENT);
        Listener::open(&hub, token(&listening), None).await
    }];
    for stream in &mut streams {
        stream.hear("unread").await;
    }
    let used_at = async || {
        let owner = SessionOwner { user_id: Some("ada".into()), scope: "user".into() };
        let sessions = hub.store().sessions(owner).await.unwrap();
        sessions.iter().find(|one| listening["id"] == *one.id).map(|one| one.used_at)
    };
    for day in 1..=8 {
        let before = used_at().await.expect("the session lasts");
        ahead.store(day * DAY_MS, Ordering::SeqCst);
        pass_an_hour().await;
        let stored = async {
            while used_at().await.expect("the session lasts") <= before {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), stored).await.expect("the stream's use is stored");
    }
    assert_eq!(hub.get(token(&listening), "/v1/token").await.0, StatusCode::OK);
    let (status, answer) = hub.get(token(&idle), "/v1/token").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer}");
    let agent = hub.token("agent", "ada").await;
    crate::people::send(&hub, &agent, "Still there?").await;
    for stream in &mut streams {
        assert!(stream.next().await.is_some(), "the stream goes on");
    }
}

#[tokio::test]
async fn an_operator_who_watches_a_conversation_does_not_open_it() {
    let (hub, ahead) = hub_with_a_clock().await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    ahead.store(2 * DAY_MS, Ordering::SeqCst);
    let reached = async |watcher: Value| {
        let path = format!("{}/v1/conversations/chat/stream?user_id=ada", hub.base);
        let stream = hub.client.get(path).bearer_auth(token(&watcher)).send().await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
        let event = json!({
            "type": "task.background.complete", "source": "ci", "severity": "info", "user_id": "ada",
            "payload": {"task_id": "1"},
        });
        let (status, answer) = hub.post(&agent, "/v1/events", event).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        answer["events"][0]["verdicts"][0].clone()
    };
    let verdict = reached(sign_in(&hub, "me", "admin").await).await;
    assert_eq!(verdict["reason"], "no_open_conversation", "{verdict}");
    let verdict = reached(sign_in(&hub, "ada", "user").await).await;
    assert_eq!(verdict["conversation_id"], "chat", "{verdict}");
}
