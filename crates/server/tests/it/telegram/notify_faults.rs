//! What goes wrong at Telegram during a call of `notify`, and what its caller is told: only what can be proven.

use serde_json::{Value, json};
use telegram_standin::Fault;
use tokio::net::TcpListener;

use super::{ADA, Chat, config};
use crate::hub::TestHub;

fn hello() -> Value {
    json!({"message": "hello"})
}

/// The class of a failed attempt, and whether it can be made again.
fn failure(answer: &Value) -> (&str, bool) {
    let error = &answer["error"];
    let class = error["class"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (class, error["retryable"].as_bool().unwrap())
}

#[tokio::test]
async fn a_429_is_told_with_its_retry_after_and_the_chat_is_left_alone_until_then() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(7));
    let answer = chat.notify_once("key", hello()).await;
    assert_eq!((failure(&answer), &answer["retry_after_seconds"]), (("target_unavailable", true), &json!(7)));
    let again = chat.notify_once("key", hello()).await;
    assert_eq!(failure(&again), ("overload_rejected", true), "{again}");
    assert!(again["retry_after_seconds"].as_u64().is_some_and(|seconds| (6..=7).contains(&seconds)), "{again}");
    // The pairing's answer, and the refused one.
    assert_eq!(chat.telegram.calls_of("sendMessage").len(), 2);
}

#[tokio::test]
async fn after_a_short_429_a_repeat_is_sent_once() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(1));
    assert_eq!(failure(&chat.notify_once("key", hello()).await), ("target_unavailable", true));
    // It waits for the second that Telegram asked for.
    assert_eq!(chat.notify_once("key", hello()).await["status"], "ok");
    assert_eq!(chat.count(), 2);
}

#[tokio::test]
async fn a_400_is_a_refusal_and_final() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::error(400, "Bad Request: message is too long"));
    let answer = chat.notify_once("key", hello()).await;
    assert_eq!(failure(&answer), ("validation_error", false));
    assert!(answer["error"]["message"].as_str().unwrap().contains("message is too long"), "{answer}");
    assert_eq!(chat.notify_once("key", hello()).await["error"], answer["error"]);
    assert_eq!((chat.count(), &chat.settings().await["enabled"]), (1, &json!(true)));
}

#[tokio::test]
async fn a_person_who_blocked_the_bot_is_told_in_the_inbox_and_the_channel_is_off() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::error(403, "Forbidden: bot was blocked by the user"));
    let answer = chat.notify_once("key", hello()).await;
    assert_eq!(failure(&answer), ("validation_error", false));
    assert_eq!(chat.settings().await["enabled"], false);
    let inbox = chat.inbox().await;
    let notes: Vec<&Value> = inbox.iter().filter(|one| one["kind"] == "note").collect();
    assert_eq!(notes.len(), 1, "{inbox:?}");
    assert!(notes[0]["message"].as_str().unwrap().contains("Telegram"), "{notes:?}");
    let refused = chat.notify("chat", hello()).await;
    assert!(refused["error"].as_str().is_some_and(|said| said.contains("switched telegram off")), "{refused}");
}

#[tokio::test]
async fn a_500_is_not_attempted_and_a_repeat_is_sent_once() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::error(500, "Internal Server Error"));
    assert_eq!(failure(&chat.notify_once("key", hello()).await), ("target_unavailable", true));
    assert_eq!(chat.notify_once("key", hello()).await["status"], "ok");
    assert_eq!(chat.count(), 2);
    assert_eq!(chat.inbox().await.len(), 1, "a repeat adds no second item");
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_final() {
    let faults = [Fault::CloseAfterAccepting, Fault::CloseUnread, Fault::Garbage, Fault::error(502, "Bad Gateway")];
    for fault in faults {
        let chat = Chat::paired().await;
        chat.telegram.fail_next("sendMessage", fault.clone());
        let answer = chat.notify_once("key", hello()).await;
        assert_eq!(failure(&answer), ("timeout", false), "{fault:?}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.starts_with("Delivery outcome unknown"), "{said}");
        let calls = chat.telegram.calls_of("sendMessage").len();
        assert_eq!(chat.notify_once("key", hello()).await["error"], answer["error"]);
        assert_eq!(chat.telegram.calls_of("sendMessage").len(), calls, "it is not sent again");
    }
}

#[tokio::test]
async fn a_slow_answer_is_awaited_and_one_that_is_too_slow_is_unknown() {
    let chat = Chat::paired_with(|config| config.telegram.answer_seconds = 1).await;
    let slow = std::time::Duration::from_millis(300);
    chat.telegram.fail_next("sendMessage", Fault::Delay(slow));
    assert_eq!(chat.notify_once("slow", hello()).await["status"], "ok");
    let _gate = chat.telegram.hold("sendMessage");
    let answer = chat.notify_once("too slow", hello()).await;
    assert_eq!(failure(&answer), ("timeout", false), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("did not answer within 1 s"), "{answer}");
    assert_eq!(chat.notify_once("too slow", hello()).await["error"], answer["error"]);
    assert_eq!(chat.count(), 3);
}

#[tokio::test]
async fn a_telegram_that_is_away_is_not_attempted() {
    let chat = Chat::paired().await;
    let folder = chat.hub.stop().await;
    let telegram = chat.telegram;
    // Nobody listens at this port any more.
    let away = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let elsewhere = config(&telegram, |config| config.telegram.api_url = Some(format!("http://{away}")));
    let chat = Chat::of(telegram, TestHub::start_as(elsewhere, folder).await).await;
    let answer = chat.notify_once("key", hello()).await;
    assert_eq!(failure(&answer), ("target_unavailable", true), "{answer}");
    let folder = chat.hub.stop().await;
    let chat = Chat::resume(chat.telegram, folder).await;
    assert_eq!(chat.notify_once("key", hello()).await["status"], "ok");
    assert_eq!(chat.telegram.sent(ADA).len(), 2);
}

#[tokio::test]
async fn a_wrong_token_is_not_attempted_and_readiness_says_so() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::error(401, "Unauthorized"));
    let answer = chat.notify_once("key", hello()).await;
    assert_eq!(failure(&answer), ("target_unavailable", true), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("telegram.token"), "{answer}");
}

#[tokio::test]
async fn a_reaction_fails_like_a_message() {
    let chat = Chat::paired().await;
    let asked = chat.writes("chat", "we leave at noon").await;
    for (emoji, fault, expected) in [
        ("🔥", Fault::error(400, "Bad Request: message to react not found"), ("validation_error", false)),
        ("🎉", Fault::error(500, "Internal Server Error"), ("target_unavailable", true)),
        ("👍", Fault::CloseAfterAccepting, ("timeout", false)),
    ] {
        chat.telegram.fail_next("setMessageReaction", fault.clone());
        let react = json!({"intent": "react", "emoji": emoji});
        assert_eq!(failure(&chat.notify("chat", react).await), expected, "{fault:?}");
    }
    let reacted = chat.telegram.messages(ADA).into_iter().find(|one| one.message_id == asked).unwrap();
    assert_eq!(reacted.reaction.as_deref(), Some("👍"), "the last one was carried out");
}
