use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{ADA, Chat};

#[tokio::test]
async fn a_notification_goes_to_the_paired_chat_with_its_origin() {
    let chat = Chat::paired().await;
    chat.open("trip", Some("Trip to Rome")).await;
    chat.send("trip", "The train is late").await;
    let said = chat.said(ADA, 2).await;
    assert_eq!(said.text, "[butler] The train is late\n\nTrip to Rome");
    assert_eq!(said.entities[0], json!({"type": "bold", "offset": 0, "length": 8}));
    chat.until("sent").await;
}

#[tokio::test]
async fn messages_are_grouped_by_conversation() {
    let chat = Chat::paired().await;
    let quiet = json!({"quiet_hours": {"start": "00:00", "end": "23:59", "timezone": "UTC"}});
    let settings = "/v1/users/ada/settings";
    let (status, answer) = chat.hub.call(&chat.ada, Method::PATCH, settings, Some(quiet)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    for (conversation, message) in [("one", "1a"), ("two", "2a"), ("one", "1b")] {
        chat.send(conversation, message).await;
    }
    assert_eq!(chat.count(), 1, "quiet hours hold them");
    chat.hub.call(&chat.ada, Method::PATCH, settings, Some(json!({"quiet_hours": null}))).await;
    let mut texts: Vec<String> =
        chat.telegram.wait_for_sent(ADA, 3).await[1..].iter().map(|one| one.text.clone()).collect();
    texts.sort();
    assert_eq!(texts, ["[butler] \n1a\n\n[butler] \n1b", "[butler] 2a"]);
}

#[tokio::test]
async fn a_person_who_mutes_the_sender_or_stops_gets_nothing_more() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    chat.send("chat", "one").await;
    let first = chat.said(ADA, 2).await;
    chat.telegram.replies(ADA, first.message_id, "/mute");
    assert!(chat.said(ADA, 3).await.text.starts_with("Notifications from butler go only to your inbox"));
    chat.send("chat", "two").await;
    chat.telegram.types(ADA, "/mute");
    let listed = chat.said(ADA, 4).await.text;
    assert!(listed.contains("Muted: butler"), "{listed}");
    assert_eq!(chat.inbox().await.len(), 2);
    chat.telegram.types(ADA, "/help");
    assert!(chat.said(ADA, 5).await.text.contains("/mute as a reply"));
}

#[tokio::test]
async fn the_bot_keeps_its_pace() {
    let chat = Chat::paired_with(|config| config.telegram.chat_interval_ms = 150).await;
    chat.telegram.limit_chats(std::time::Duration::from_millis(100));
    for text in ["1", "2", "3", "4"] {
        chat.send(text, text).await;
    }
    chat.telegram.wait_for_sent(ADA, 5).await;
    let refused = chat.telegram.calls_of("sendMessage").iter().filter(|call| call.status == 429).count();
    assert_eq!(refused, 0);
}

#[tokio::test]
async fn readiness_tells_that_the_token_is_wrong() {
    let chat = Chat::start_with(|config| {
        config.telegram.token = Some(bellwire_server::config::Secret::new("1:wrong"));
    })
    .await;
    let is_degraded = || async {
        let (_, ready) = chat.hub.get(&chat.ada, "/readyz").await;
        ready["degraded"].to_string().contains("Telegram does not work")
    };
    crate::mailed::wait_for("the wrong token to be noticed", is_degraded).await;
}

#[tokio::test]
async fn a_hub_that_stops_sends_what_waited_for_its_slot_after_the_next_start() {
    let chat = Chat::paired_with(|config| config.telegram.chat_interval_ms = 15_000).await;
    chat.send("chat", "hello").await;
    crate::mailed::wait_for("its turn", || async { chat.deliveries().await[0]["state"] == "claimed" }).await;
    let before = std::time::Instant::now();
    let folder = chat.hub.stop().await;
    assert!(before.elapsed() < std::time::Duration::from_secs(5), "it does not wait for the slot");
    let chat = Chat::resume(chat.telegram, folder).await;
    assert_eq!(chat.said(ADA, 2).await.text, "[butler] hello");
    chat.until("sent").await;
}
