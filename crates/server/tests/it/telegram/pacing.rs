//! Limits of Telegram: of a chat and of the whole bot, and in the middle of a long text.

use std::time::{Duration, Instant};

use bellwire_server::config::AllowedTarget;
use serde_json::{Value, json};
use telegram_standin::Fault;

use super::{ADA, Chat};

/// A chat that is nobody's, to which the agent may write.
const OTHER: i64 = 99;

async fn paired_beside_another_chat() -> Chat {
    Chat::paired_with(|config| {
        let target = AllowedTarget::parse(&format!("telegram:{OTHER}")).unwrap();
        config.notify.allow.insert("butler".into(), vec![target]);
    })
    .await
}

fn to_other(text: &str) -> Value {
    json!({"message": text, "recipient": OTHER.to_string()})
}

#[tokio::test]
async fn a_429_in_a_chat_that_got_nothing_before_holds_the_whole_bot() {
    let chat = paired_beside_another_chat().await;
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(7));
    let limited = chat.notify("chat", to_other("hello")).await;
    assert_eq!(limited["error"]["class"], "target_unavailable", "{limited}");
    let held = chat.notify("chat", json!({"message": "hello"})).await;
    assert_eq!(held["error"]["class"], "overload_rejected", "{held}");
    assert!(held["retry_after_seconds"].as_u64().is_some_and(|seconds| (6..=7).contains(&seconds)), "{held}");
    // The pairing's answer, and the refused one.
    assert_eq!(chat.telegram.calls_of("sendMessage").len(), 2);
}

#[tokio::test]
async fn a_429_in_a_chat_that_got_a_message_just_before_holds_only_that_chat() {
    let chat = paired_beside_another_chat().await;
    chat.telegram.types(OTHER, "hi");
    chat.said(OTHER, 1).await;
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(7));
    let limited = chat.notify("chat", json!({"message": "hello"})).await;
    assert_eq!(limited["error"]["class"], "target_unavailable", "{limited}");
    assert_eq!(chat.notify("chat", to_other("hello")).await["status"], "ok");
}

#[tokio::test]
async fn the_rest_of_a_long_message_comes_after_a_long_429_even_after_a_restart_and_no_part_comes_twice() {
    let chat = Chat::paired().await;
    chat.quiet().await;
    let text = "word ".repeat(2000);
    assert_eq!(chat.notify("chat", json!({ "message": text })).await["status"], "deferred");
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(11));
    let limited_at = Instant::now();
    chat.change(json!({"quiet_hours": null})).await;
    let waiting = chat.until("waiting").await;
    let why = waiting["reason"].as_str().unwrap();
    assert!(why.starts_with("1 of 3 parts were delivered"), "{why}");
    let folder = chat.hub.stop().await;
    let chat = Chat::resume(chat.telegram, folder).await;
    let parts = chat.telegram.wait_for_sent(ADA, 4).await.split_off(1);
    assert!(limited_at.elapsed() >= Duration::from_secs(11), "{:?}", limited_at.elapsed());
    let whole: String = parts.iter().flat_map(|part| part.text.split_whitespace()).collect();
    assert_eq!(whole, format!("[butler]{}", text.split_whitespace().collect::<String>()));
    chat.until("sent").await;
    assert_eq!(chat.count(), 4);
}

#[tokio::test]
async fn the_rest_of_a_message_whose_text_has_changed_is_not_sent() {
    let chat = Chat::paired().await;
    chat.open("trip", Some("Rome")).await;
    chat.quiet().await;
    for number in 0..12 {
        chat.send("trip", &format!("{number} {}", "x".repeat(480))).await;
    }
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::error(500, "Internal Server Error"));
    chat.change(json!({"quiet_hours": null})).await;
    chat.until("waiting").await;
    chat.open("trip", Some("Paris")).await;
    let failed = chat.until("failed").await;
    assert_eq!(failed["reason"], "1 of its parts were delivered, and the text has changed since");
    assert_eq!(chat.count(), 2);
}

#[tokio::test]
async fn a_long_429_between_the_parts_of_a_notify_is_obeyed_and_the_text_comes_whole() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(12));
    let answer = chat.notify("chat", json!({"message": "word ".repeat(1000)})).await;
    assert_eq!((&answer["status"], chat.count()), (&json!("ok"), 3), "{answer}");
}
