//! The hourly limits over HTTP: exactly what they allow, whatever becomes of Redis, and a storm costs the database nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwire_server::Config;
use bellwire_server::config::Secret;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::redis_server::RedisServer;

/// Longer than anything here takes on a machine that is busy.
const LONG: Duration = Duration::from_secs(20);

fn with_redis(redis: &RedisServer) -> Config {
    let mut config = Config::default();
    config.redis.url = Some(Secret::new(redis.url()));
    // Here it is to be known what answered, also on a machine that is busy.
    config.redis.wait_ms = 1000;
    config
}

async fn send(hub: &TestHub, context: Value) -> Value {
    let body = json!({"arguments": {"message": "The build is green."}, "context": context});
    let (status, answer) = hub.post(&hub.admin, "/v1/tools/send_notification", body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

/// A figure of the metrics; 0 where nothing was counted yet.
async fn figure(hub: &TestHub, name: &str) -> u64 {
    // A page may be a second old. Every request is counted, so the first one that differs was written after this call.
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

/// Waits until the hub says this of Redis.
async fn until_degraded(hub: &TestHub, degraded: bool) {
    let said = async {
        while readiness(hub).await["degraded"].is_array() != degraded {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, said).await.expect("the hub notices what became of Redis");
}

/// Waits until a refusal was recalled, then sends fifty more: the database hears nothing of them.
async fn a_storm_costs_the_database_nothing(hub: &TestHub, context: &Value) {
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
async fn a_storm_is_refused_from_redis_and_from_the_database_while_redis_is_away() {
    let redis = RedisServer::start();
    let hub = TestHub::start_with(with_redis(&redis)).await;
    until_degraded(&hub, false).await;
    let ada = json!({"user_id": "ada"});
    let first = send(&hub, json!({"user_id": "ada", "idempotency_key": "first"})).await;
    for _ in 0..29 {
        assert_eq!(send(&hub, ada.clone()).await["success"], true);
    }
    a_storm_costs_the_database_nothing(&hub, &ada).await;
    let again = send(&hub, json!({"user_id": "ada", "idempotency_key": "first"})).await;
    assert_eq!(again["notification_id"], first["notification_id"], "a repeat gets its first answer");
    redis.kill();
    until_degraded(&hub, true).await;
    assert_eq!(figure(&hub, "bellwire_refusals_up").await, 0);
    assert_eq!(send(&hub, ada.clone()).await["action"], "rate_limited");
    assert_eq!(send(&hub, json!({"user_id": "bob"})).await["success"], true, "nobody else is refused");
    let redis = redis.replace();
    until_degraded(&hub, false).await;
    a_storm_costs_the_database_nothing(&hub, &ada).await;
    drop(redis);
}

#[tokio::test]
async fn a_hub_without_redis_remembers_refusals_itself_and_forgets_them_with_their_person() {
    let hub = TestHub::start().await;
    let ada = json!({"user_id": "ada"});
    for _ in 0..30 {
        assert_eq!(send(&hub, ada.clone()).await["success"], true);
    }
    a_storm_costs_the_database_nothing(&hub, &ada).await;
    let (status, _) = hub.call(&hub.admin, reqwest::Method::DELETE, "/v1/users/ada", None).await;
    assert!(status.is_success(), "{status}");
    assert_eq!(send(&hub, ada).await["success"], true);
}

#[tokio::test]
async fn a_storm_of_one_conversation_hears_its_news_and_takes_mail_no_more_than_once_a_second() {
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
async fn a_type_with_a_limit_of_its_own_has_it_in_the_configuration() {
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
async fn a_thousand_calls_of_fifty_http_clients_with_repeated_names_make_exactly_the_right_rows() {
    let mut config = Config::default();
    config.limits.notifications_per_hour = 10_000;
    let hub = TestHub::start_with(config).await;
    let clients = (0..50_u32).map(|client| {
        let (url, token) = (format!("{}/v1/tools/send_notification", hub.base), hub.admin.clone());
        tokio::spawn(async move {
            let own = Client::new();
            let mut answers = Vec::new();
            for call in 0..20_u32 {
                // Every name is used by two calls of this client, and by the same calls of its neighbour.
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
