//! Limits, counts and duplicates.

use std::sync::Arc;

use bellwire_core::Time;
use bellwire_store::SendResult;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::outbox::{Post, time};
use crate::people::send;
use crate::person_stream::Listener;

const MINUTE_MS: i64 = 60_000;

/// There, every allowed call renewed the counter's expiry, so that it never reset while calls kept coming.
#[tokio::test]
async fn allowed_calls_do_not_renew_the_limits_window() {
    for durable in [false, true] {
        let start = time("2026-01-03T12:00:00Z");
        let post = Post::open_with(durable, "2026-01-03T12:00:00Z", 3).await;
        let at = |millis: i64| post.set(Time::from_millis(start.as_millis() + millis));
        for minute in [0, 20, 40] {
            at(minute * MINUTE_MS);
            post.tell("in time").await;
        }
        at(60 * MINUTE_MS - 1);
        assert_eq!(post.try_to_tell("too early").await, SendResult::Limited { retry_after_seconds: 1 });
        // Each of the first three calls leaves the window an hour after it was made, not an hour after the last.
        for minute in [60, 80, 100, 120] {
            at(minute * MINUTE_MS);
            post.tell("in time again").await;
            assert!(matches!(post.try_to_tell("one too many").await, SendResult::Limited { .. }));
        }
    }
}

/// There, the counter was read and then incremented, so that concurrent calls exceeded the limit.
#[tokio::test]
async fn concurrent_calls_do_not_exceed_the_limit() {
    let hub = Arc::new(TestHub::start().await);
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let calls = (0..200).map(|number| {
        let (hub, agent) = (hub.clone(), agent.clone());
        tokio::spawn(async move { send(&hub, &agent, &format!("{number}")).await["success"] == true })
    });
    let admitted = join_all(calls).await.into_iter().filter(|call| *call.as_ref().unwrap()).count();
    assert_eq!(admitted, 30);
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications?limit=100").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 30);
}

/// There, the unread count and the list were queries of different rows.
#[tokio::test]
async fn the_unread_count_equals_the_unread_items_of_the_list() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let mut ids = Vec::new();
    for text in ["read", "dismissed", "unread", "unread too"] {
        ids.push(send(&hub, &agent, text).await["notification_id"].as_str().unwrap().to_owned());
    }
    let path = |id: &str| format!("/v1/users/ada/notifications/{id}");
    hub.call(&ada, reqwest::Method::PATCH, &path(&ids[0]), Some(json!({"read": true}))).await;
    hub.call(&ada, reqwest::Method::DELETE, &path(&ids[1]), None).await;
    // Notifications of a muted agent stay in the list and in the count.
    let muted = json!({"muted_origins": ["butler"]});
    hub.call(&ada, reqwest::Method::PATCH, "/v1/users/ada/settings", Some(muted)).await;
    send(&hub, &agent, "muted").await;
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications?state=unread").await;
    let (_, count) = hub.get(&ada, "/v1/users/ada/notifications/unread_count").await;
    assert_eq!((list["items"].as_array().unwrap().len(), &count["count"]), (3, &json!(3)));
}

/// There, the count was read only when the page was opened.
#[tokio::test]
async fn the_unread_count_is_streamed_as_it_changes() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let mut stream = Listener::open(&hub, &ada, None).await;
    assert_eq!(stream.hear("unread").await.data, json!({"count": 0}));
    for count in 1..=3 {
        send(&hub, &agent, "news").await;
        stream.hear("notification").await;
        assert_eq!(stream.hear("unread").await.data, json!({ "count": count }));
    }
    hub.post(&ada, "/v1/users/ada/notifications/read_all", json!({})).await;
    for _ in 0..3 {
        stream.hear("updated").await;
    }
    assert_eq!(stream.hear("unread").await.data, json!({"count": 0}));
}

/// There, the dedupe key contained counts, so that no two events were equal.
#[tokio::test]
async fn events_that_differ_only_in_numbers_are_duplicates() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    for number in 1..=5 {
        let event = json!({
            "type": "agent.input.needed", "source": "butler", "severity": "info", "conversation_id": "chat",
            "payload": {"message": format!("{number} of 7 files wait for you"), "count": number},
        });
        let (_, answer) = hub.post(&agent, "/v1/events", event).await;
        let verdicts = answer["events"][0]["verdicts"].as_array().unwrap();
        let verdict = verdicts.iter().find(|one| one["subscriber"] == "needs_you").unwrap();
        let wanted = if number == 1 { "queued" } else { "duplicate" };
        assert_eq!(verdict["verdict"], wanted, "{answer}");
    }
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
}

/// There, two code paths each sent the same request.
#[tokio::test]
async fn the_same_call_over_mcp_and_rest_is_carried_out_once() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let context = json!({"conversation_id": "chat", "idempotency_key": "review-7"});
    let call = json!({"arguments": {"message": "Review, please"}, "context": context});
    let (_, rest) = hub.post(&agent, "/v1/tools/send_notification", call).await;
    let meta = json!({"bellwire/conversation_id": "chat", "bellwire/idempotency_key": "review-7"});
    let mcp =
        crate::mcp::call_once(&hub, &agent, "send_notification", json!({"message": "Review, please"}), meta).await;
    assert_eq!(mcp["structuredContent"]["notification_id"], rest["notification_id"], "{mcp}");
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

/// There, the check for a reused key compared a value with itself and never failed.
#[tokio::test]
async fn a_reused_key_with_other_content_is_refused() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let call = |message: &str| json!({"arguments": {"message": message}, "context": {"idempotency_key": "k"}});
    let (_, first) = hub.post(&agent, "/v1/tools/send_notification", call("approved")).await;
    let (_, other) = hub.post(&agent, "/v1/tools/send_notification", call("rejected")).await;
    assert_eq!(
        (&first["success"], &other["success"], &other["action"]),
        (&json!(true), &json!(false), &json!("validation_error"))
    );
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications").await;
    let said: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["message"]).collect();
    assert_eq!(said, [&json!("approved")]);
}

/// There, an unreachable counter failed the tool. Here the database decides, with or without Redis.
#[tokio::test]
async fn a_tool_works_while_redis_is_down() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = bellwire_server::Config::default();
    config.redis.url = Some(bellwire_server::config::Secret::new(format!("redis://{nobody}")));
    config.limits.notifications_per_hour = 2;
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    let mut actions = Vec::new();
    for _ in 0..3 {
        let body = json!({"arguments": {"message": "The build is green."}});
        let (_, answer) = hub.post(&agent, "/v1/tools/send_notification", body).await;
        actions.push(answer["action"].as_str().unwrap().to_owned());
    }
    assert_eq!(actions, ["notification_created", "notification_created", "rate_limited"]);
}
