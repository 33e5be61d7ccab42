//! Messages of `notify` that quiet hours hold: sent when those end, alone and whole.

use serde_json::{Value, json};
use telegram_standin::Fault;

use super::{ADA, Chat};

/// The agent `butler` calls `notify` in Ada's quiet hours.
async fn hold(chat: &Chat, conversation: &str, arguments: Value) {
    chat.quiet().await;
    let answer = chat.notify(conversation, arguments).await;
    assert_eq!(answer["status"], "deferred", "{answer}");
}

#[tokio::test]
async fn a_held_message_is_sent_alone_and_whole_and_an_answer_finds_its_conversation() {
    let chat = Chat::paired().await;
    chat.open("trip", Some("Trip to Rome")).await;
    chat.open("other", None).await;
    let long = format!("{}\n\nthe end", "Pack the bags. ".repeat(300));
    hold(&chat, "trip", json!({"message": long, "subject": "Packing"})).await;
    chat.send("trip", "The train is late").await;
    assert_eq!(chat.count(), 1, "quiet hours hold both");
    chat.change(json!({"quiet_hours": null})).await;
    let sent = chat.telegram.wait_for_sent(ADA, 4).await.split_off(1);
    let (news, parts): (Vec<_>, Vec<_>) = sent.into_iter().partition(|one| one.text.contains("train"));
    assert_eq!(news[0].text, "[butler] The train is late\n\nTrip to Rome");
    assert_eq!(parts.len(), 2, "{parts:?}");
    assert!(parts[0].text.starts_with("[butler] Packing\nPack the bags."), "{}", parts[0].text);
    let whole: String = parts.iter().flat_map(|part| part.text.split_whitespace()).collect();
    let expected: String = format!("[butler] Packing {long}").split_whitespace().collect();
    assert_eq!(whole, expected);
    chat.until("sent").await;
    // Each part belongs to the conversation.
    for (number, part) in parts.iter().enumerate() {
        chat.telegram.replies(ADA, part.message_id, &format!("answer {number}"));
    }
    let first = chat.wait_for_block("trip").await;
    let both = match first.contains("answer 1") {
        true => first,
        false => first + &chat.wait_for_block("trip").await,
    };
    assert!(both.contains("answer 0") && both.contains("answer 1"), "{both}");
    assert_eq!(chat.block("other", "other").await, "");
    // The inbox shows the beginning, once.
    assert_eq!(chat.inbox().await.iter().filter(|one| one["title"] == "Packing").count(), 1);
}

#[tokio::test]
async fn a_held_message_obeys_a_429_and_comes_once() {
    let chat = Chat::paired().await;
    hold(&chat, "chat", json!({"message": "Drink water"})).await;
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(1));
    chat.change(json!({"quiet_hours": null})).await;
    chat.until("waiting").await;
    assert_eq!(chat.said(ADA, 2).await.text, "[butler] Drink water");
    chat.until("sent").await;
    assert_eq!(chat.count(), 2);
}

#[tokio::test]
async fn a_held_message_for_someone_who_blocked_the_bot_switches_the_channel_off() {
    let chat = Chat::paired().await;
    hold(&chat, "chat", json!({"message": "Drink water"})).await;
    chat.telegram.fail_next("sendMessage", Fault::error(403, "Forbidden: bot was blocked by the user"));
    chat.change(json!({"quiet_hours": null})).await;
    chat.until("failed").await;
    assert_eq!(chat.settings().await["enabled"], false);
    let inbox = chat.inbox().await;
    assert!(inbox.iter().any(|one| one["kind"] == "note"), "{inbox:?}");
}

#[tokio::test]
async fn if_a_later_part_fails_the_delivery_says_how_many_arrived_and_is_not_repeated() {
    let chat = Chat::paired().await;
    hold(&chat, "chat", json!({"message": "word ".repeat(1000)})).await;
    chat.telegram.fail_next("sendMessage", Fault::Delay(std::time::Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::error(400, "Bad Request: something"));
    chat.change(json!({"quiet_hours": null})).await;
    let failed = chat.until("failed").await;
    let said = failed["reason"].as_str().unwrap();
    assert!(said.starts_with("1 of 2 parts were delivered: Telegram answered 400"), "{said}");
    assert_eq!(chat.count(), 2);
}
