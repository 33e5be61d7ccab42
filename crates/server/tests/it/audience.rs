//! Notifications for people: an event that matches a subscriber of audience `user` becomes one notification.

use bellwire_server::Config;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::email::peer::{MailServer, listener};
use crate::hub::TestHub;
use crate::mailed::{Post, header};
use crate::people::send;
use crate::person_stream::Listener;

fn asks(message: &str, severity: &str) -> Value {
    json!({
        "type": "agent.input.needed", "source": "butler", "severity": severity, "conversation_id": "chat",
        "payload": {"message": message}, "dedupe_key": message.chars().take(20).collect::<String>(),
    })
}

/// Publishes the event; returns its id and the verdicts of `needs_you`.
async fn publish(hub: &TestHub, token: &str, event: Value) -> (String, Vec<Value>) {
    let (status, answer) = hub.post(token, "/v1/events", event).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let event = &answer["events"][0];
    let mine = |one: &&Value| one["subscriber"] == "needs_you";
    let verdicts = event["verdicts"].as_array().unwrap().iter().filter(mine).cloned().collect();
    (event["id"].as_str().unwrap().to_owned(), verdicts)
}

async fn inbox(hub: &TestHub) -> Vec<Value> {
    let (_, list) = hub.get(&hub.admin, "/v1/users/ada/notifications?limit=100").await;
    list["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_waiting_agent_notifies_its_user_by_severity_and_within_500_characters() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let severities =
        [("debug", "info"), ("info", "info"), ("warning", "warning"), ("error", "warning"), ("critical", "warning")];
    for (severity, kind) in severities {
        let long = format!("{severity} {}", "é".repeat(600));
        let (_, verdicts) = publish(&hub, &agent, asks(&long, severity)).await;
        assert_eq!((verdicts.len(), &verdicts[0]["verdict"]), (1, &json!("queued")), "{verdicts:?}");
        assert_eq!((&verdicts[0]["conversation_id"], &verdicts[0]["agent"]), (&Value::Null, &Value::Null));
        assert_eq!(verdicts[0]["reason"], "goes to the person's inbox");
        let item = inbox(&hub).await.remove(0);
        assert_eq!(
            (&item["type"], &item["kind"], &item["id"]),
            (&json!(kind), &json!("message"), &verdicts[0]["notification_id"])
        );
        let said = item["message"].as_str().unwrap();
        assert!(said.starts_with(&format!("butler needs you: {severity} é")), "{said}");
        assert!(said.chars().count() <= 500 && said.ends_with('…'), "{said}");
        assert_eq!((&item["origin"], &item["conversation_id"]), (&json!("butler"), &json!("chat")));
    }
    let turn = json!({"point": "turn_start", "call_id": "turn"});
    let (_, block) = hub.post(&agent, "/v1/conversations/chat/inject", turn).await;
    assert_eq!(block["block"], "", "it is for the person and not for the agent that asks: {block}");
}

#[tokio::test]
async fn an_event_for_all_conversations_of_a_user_has_one_verdict_and_a_repeat_is_a_duplicate() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    for conversation in ["one", "two", "three"] {
        let body = json!({"user_id": "ada"});
        hub.call(&agent, reqwest::Method::PUT, &format!("/v1/conversations/{conversation}"), Some(body)).await;
    }
    let event = json!({
        "type": "agent.input.needed", "source": "butler", "severity": "info", "user_id": "ada",
        "payload": {"message": "May I?"},
    });
    let (_, first) = publish(&hub, &agent, event.clone()).await;
    assert_eq!((first.len(), &first[0]["verdict"]), (1, &json!("queued")), "{first:?}");
    let (_, again) = publish(&hub, &agent, event).await;
    assert_eq!((again.len(), &again[0]["verdict"]), (1, &json!("duplicate")), "{again:?}");
    assert_eq!(inbox(&hub).await.len(), 1);
}

#[tokio::test]
async fn over_the_hourly_limit_it_waits_and_the_trace_has_the_due_time() {
    let mut config = Config::default();
    config.limits.notifications_per_hour = 2;
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    for text in ["first", "second"] {
        assert_eq!(send(&hub, &agent, text).await["success"], true);
    }
    let (id, verdicts) = publish(&hub, &agent, asks("May I?", "warning")).await;
    assert_eq!(verdicts[0]["verdict"], "queued", "it is taken and not lost: {verdicts:?}");
    assert_eq!(inbox(&hub).await.len(), 2);
    let (_, trace) = hub.get(&agent, &format!("/v1/events/{id}")).await;
    let told = &trace["told"][0];
    assert_eq!((&told["notification"], &told["deliveries"]), (&Value::Null, &json!([])), "{trace}");
    let due: bellwire_core::Time = told["due_at"].as_str().unwrap().parse().unwrap();
    let accepted: bellwire_core::Time = trace["accepted_at"].as_str().unwrap().parse().unwrap();
    assert!((3_000_000..=3_600_000).contains(&due.millis_since(accepted)), "{trace}");
    let (_, reminders) = hub.get(&hub.admin, "/v1/reminders").await;
    assert_eq!(reminders["items"], json!([]), "nobody asked for a reminder");
}

#[tokio::test]
async fn the_trace_has_the_inbox_item_and_the_email_and_the_stream_shows_it() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = Post::open(&server, "x").await;
    let mut stream = Listener::open(&post.hub, &post.ada, None).await;
    stream.hear("unread").await;
    let (id, verdicts) = publish(&post.hub, &post.agent, asks("May I?", "warning")).await;
    assert_eq!(stream.hear("notification").await.data["message"], "butler needs you: May I?");
    post.until("sent", 1).await;
    let mail = server.received("x").remove(1);
    assert_eq!(header(&mail, "Subject"), "[butler] Warning: butler needs you: May I?");
    let item = format!("/v1/users/ada/notifications/{}", verdicts[0]["notification_id"].as_str().unwrap());
    post.hub.call(&post.ada, reqwest::Method::PATCH, &item, Some(json!({"read": true}))).await;
    let (_, trace) = post.hub.get(&post.ada, &format!("/v1/events/{id}")).await;
    let told = &trace["told"][0];
    assert_eq!(told["notification"]["id"], verdicts[0]["notification_id"], "{trace}");
    assert!(told["notification"]["read_at"].is_string() && told["due_at"].is_null(), "{trace}");
    let delivery = &told["deliveries"][0];
    assert_eq!((&delivery["state"], &delivery["target"]), (&json!("sent"), &json!("ada@example.org")), "{trace}");
    assert!(delivery["ended_at"].is_string(), "{trace}");
    // An agent sees that its user was notified, not the address and not whether they have read it.
    let (_, trace) = post.hub.get(&post.agent, &format!("/v1/events/{id}")).await;
    assert_eq!(trace["told"][0]["deliveries"][0]["state"], "sent", "{trace}");
    assert!(trace["told"][0]["notification"]["read_at"].is_null(), "{trace}");
    assert!(!trace.to_string().contains("ada@example.org"), "{trace}");
    let bob = post.hub.token("agent", "bob").await;
    assert_eq!(post.hub.get(&bob, &format!("/v1/events/{id}")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_user_who_disabled_the_subscriber_is_not_notified() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let off = json!({"disabled_subscribers": ["needs_you"]});
    hub.call(&hub.admin, reqwest::Method::PATCH, "/v1/users/ada/settings", Some(off)).await;
    let (_, verdicts) = publish(&hub, &agent, asks("May I?", "warning")).await;
    assert_eq!(verdicts[0]["verdict"], "filtered", "{verdicts:?}");
    assert!(inbox(&hub).await.is_empty());
}

#[tokio::test]
async fn the_person_sees_the_authenticated_origin_whatever_the_source() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let mut forged = asks("Type your password into the chat", "warning");
    forged["source"] = json!("gardener");
    publish(&hub, &agent, forged.clone()).await;
    assert_eq!(inbox(&hub).await[0]["origin"], "butler");
    forged["dedupe_key"] = json!("another");
    publish(&hub, &hub.admin, forged).await;
    assert_eq!(inbox(&hub).await[0]["origin"], "operator");
}
