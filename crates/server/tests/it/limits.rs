//! The hourly limits over HTTP: they are exact with and without Redis, and a flood of refused calls does not reach the
//! database.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwire_server::Config;
use bellwire_server::config::Secret;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::redis_server::RedisServer;

/// A timeout that is long enough for a busy machine.
const LONG: Duration = Duration::from_secs(20);

fn with_redis(redis: &RedisServer) -> Config {
    let mut config = Config::default();
    config.redis.url = Some(Secret::new(redis.url()));
    // A long wait, so that a busy machine does not fall back to the database.
    config.redis.wait_ms = 1000;
    config
}

async fn send(hub: &TestHub, context: Value) -> Value {
    let body = json!({"arguments": {"message": "The build is green."}, "context": context});
    let (status, answer) = hub.post(&hub.admin, "/v1/tools/send_notification", body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

/// The value of a metric; 0 if it is not there yet.
async fn figure(hub: &TestHub, name: &str) -> u64 {
    // The text may be cached for a second. Requests are counted in it, so the first text that differs is newer than this call.
    let (_, first) = hub.get(&hub.admin, "/metrics").await;
    let text = loop {
        let (_, text) = hub.get(&hub.admin, "/metrics").await;
        if text != first {
            break text.as_str().expect("metrics are text").to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.map_or(0, |value| value.parse::<f64>().expect("a figure") as u64)
}

async fn readiness(hub: &TestHub) -> Value {
    let (status, answer) = hub.get(&hub.admin, "/readyz").await;
    assert_eq!((status, &answer["status"]), (StatusCode::OK, &json!("ready")), "{answer}");
    answer
}

/// Waits until `/readyz` reports Redis as degraded, or no longer.
async fn until_degraded(hub: &TestHub, degraded: bool) {
    let said = async {
        while readiness(hub).await["degraded"].is_array() != degraded {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, said).await.expect("the hub notices what became of Redis");
}

/// Waits until a refusal came from the cache, then sends fifty more calls and checks that none reached the database.
async fn check_flood_does_not_reach_the_database(hub: &TestHub, context: &Value) {
    let recalled = async {
        let before = figure(hub, "bellwire_refusals_recalled_total").await;
        while figure(hub, "bellwire_refusals_recalled_total").await == before {
            assert_eq!(send(hub, context.clone()).await["action"], "rate_limited");
        }
    };
    tokio::time::timeout(LONG, recalled).await.expect("the refusal is remembered");
    let commands = figure(hub, "bellwire_commit_commands_sum").await;
    let recalled = figure(hub, "bellwire_refusals_recalled_total").await;
    for _ in 0..50 {
        let answer = send(hub, context.clone()).await;
        assert_eq!((&answer["success"], &answer["action"]), (&json!(false), &json!("rate_limited")));
        assert_eq!(answer["message"], "Notification rate limit exceeded. Try again later.");
        let seconds = answer["retry_after_seconds"].as_u64().expect("it says when");
        assert!((3500..=3600).contains(&seconds), "{seconds}");
    }
    assert_eq!(figure(hub, "bellwire_refusals_recalled_total").await, recalled + 50);
    assert_eq!(figure(hub, "bellwire_commit_commands_sum").await, commands);
}

#[tokio::test]
async fn a_flood_is_refused_by_redis_and_by_the_database_while_redis_is_down() {
    let redis = RedisServer::start();
    let hub = TestHub::start_with(with_redis(&redis)).await;
    until_degraded(&hub, false).await;
    let ada = json!({"user_id": "ada"});
    let first = send(&hub, json!({"user_id": "ada", "idempotency_key": "first"})).await;
    for _ in 0..29 {
        assert_eq!(send(&hub, ada.clone()).await["success"], true);
    }
    check_flood_does_not_reach_the_database(&hub, &ada).await;
    let again = send(&hub, json!({"user_id": "ada", "idempotency_key": "first"})).await;
    assert_eq!(again["notification_id"], first["notification_id"], "a repeat gets its first answer");
    redis.kill();
    until_degraded(&hub, true).await;
    assert_eq!(figure(&hub, "bellwire_refusals_up").await, 0);
    assert_eq!(send(&hub, ada.clone()).await["action"], "rate_limited");
    assert_eq!(send(&hub, json!({"user_id": "bob"})).await["success"], true, "nobody else is refused");
    let redis = redis.replace();
    until_degraded(&hub, false).await;
    check_flood_does_not_reach_the_database(&hub, &ada).await;
    drop(redis);
}

#[tokio::test]
async fn a_hub_without_redis_caches_refusals_in_memory_and_erases_them_with_the_user() {
    let hub = TestHub::start().await;
    let ada = json!({"user_id": "ada"});
    for _ in 0..30 {
        assert_eq!(send(&hub, ada.clone()).await["success"], true);
    }
    check_flood_does_not_reach_the_database(&hub, &ada).await;
    let (status, _) = hub.call(&hub.admin, reqwest::Method::DELETE, "/v1/users/ada", None).await;
    assert!(status.is_success(), "{status}");
    assert_eq!(send(&hub, ada).await["success"], true);
}

#[tokio::test]
async fn a_flooding_agent_gets_its_notifications_at_most_once_a_second() {
    let mut config = Config::default();
    config.limits.notifications_per_hour = 1;
    let hub = TestHub::start_with(config).await;
    let context = json!({"user_id": "ada", "conversation_id": "chat"});
    let (status, _) =
        hub.call(&hub.admin, reqwest::Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    assert!(status.is_success());
    assert_eq!(send(&hub, context.clone()).await["success"], true);
    hub.post(&hub.admin, "/v1/events", crate::hub::failure("deploy")).await;
    let heard = async {
        loop {
            let answer = send(&hub, context.clone()).await;
            assert_eq!(answer["action"], "rate_limited", "{answer}");
            if answer["notifications"].as_str().is_some_and(|block| block.contains("deploy")) {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, heard).await.expect("a refusal carries the news");
    let started = std::time::Instant::now();
    let mut taken = 0;
    for _ in 0..100 {
        taken += u64::from(send(&hub, context.clone()).await["call_id"].is_string());
    }
    assert!(taken <= started.elapsed().as_secs() + 1, "mail was taken {taken} times in {:?}", started.elapsed());
}

#[tokio::test]
async fn the_configuration_can_set_a_limit_per_type() {
    let mut config = Config::default();
    (config.limits.notifications_per_hour, config.limits.warnings_per_hour) = (1, 2);
    let hub = TestHub::start_with(config).await;
    let mut admitted = BTreeMap::<&str, usize>::new();
    for kind in ["warning", "info", "reminder", "warning", "info", "warning"] {
        let body = json!({"arguments": {"message": "news", "type": kind}, "context": {"user_id": "ada"}});
        let (_, answer) = hub.post(&hub.admin, "/v1/tools/send_notification", body).await;
        *admitted.entry(kind).or_default() += usize::from(answer["success"] == true);
    }
    assert_eq!(admitted, BTreeMap::from([("warning", 2), ("info", 1), ("reminder", 0)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_concurrent_calls_with_repeated_keys_create_each_row_once() {
    let mut config = Config::default();
    config.limits.notifications_per_hour = 10_000;
    let hub = TestHub::start_with(config).await;
    let clients = (0..50_u32).map(|client| {
        let (url, token) = (format!("{}/v1/tools/send_notification", hub.base), hub.admin.clone());
        tokio::spawn(async move {
            let own = Client::new();
            let mut answers = Vec::new();
            for call in 0..20_u32 {
                // Two calls of this client and the same two calls of another client share each key.
                let name = (client / 2) * 10 + call / 2;
                let context = json!({"user_id": "ada", "idempotency_key": name.to_string()});
                let body = json!({"arguments": {"message": format!("news {name}")}, "context": context});
                let answer = own.post(&url).bearer_auth(&token).json(&body).send().await.expect("the hub answers");
                let answer: Value = answer.json().await.expect("JSON");
                assert_eq!(answer["success"], true, "{answer}");
                answers.push((name, answer["notification_id"].as_str().expect("an id").to_owned()));
            }
            answers
        })
    });
    let mut ids = BTreeMap::new();
    for client in clients.collect::<Vec<_>>() {
        for (name, id) in client.await.expect("no client fails") {
            assert_eq!(*ids.entry(name).or_insert_with(|| id.clone()), id, "one name, one answer");
        }
    }
    assert_eq!(inbox(&hub).await, ids.into_iter().map(|(name, id)| (id, format!("news {name}"))).collect());
}

/// Everything in Ada's inbox: ids and texts.
async fn inbox(hub: &TestHub) -> BTreeMap<String, String> {
    let (mut found, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let path = format!("/v1/users/ada/notifications?state=all&limit=100{cursor}");
        let (status, page) = hub.get(&hub.admin, &path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        for item in page["items"].as_array().expect("a page has items") {
            let field = |name: &str| item[name].as_str().expect("a text").to_owned();
            assert_eq!(found.insert(field("id"), field("message")), None, "every row is there once");
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}
