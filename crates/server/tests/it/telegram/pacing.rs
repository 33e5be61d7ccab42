//! Limits of Telegram: of a chat and of the whole bot, and in the middle of a long text.

use std::time::{Duration, Instant};

use bellwire_server::config::AllowedTarget;
use reqwest::{Method, StatusCode};
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

/// Twelve notifications of one conversation, of which Telegram has accepted the first message and then answered so.
async fn half_sent(fault: Fault) -> Chat {
    let chat = Chat::paired().await;
    chat.open("trip", Some("Rome")).await;
    chat.quiet().await;
    for number in 0..12 {
        chat.send("trip", &format!("<{number}> {}", "x".repeat(480))).await;
    }
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::ZERO));
    chat.telegram.fail_next("sendMessage", fault);
    chat.change(json!({"quiet_hours": null})).await;
    chat
}

impl Chat {
    /// The states and reasons of the twelve deliveries, oldest first.
    async fn states(&self) -> Vec<(String, Option<String>)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let deliveries = self.deliveries().await;
        let states = deliveries.iter().rev().map(|one| (text(&one["state"]).unwrap(), text(&one["reason"])));
        states.collect()
    }

    /// How often each of the twelve was sent.
    fn sent_counts(&self) -> Vec<usize> {
        let texts: String = self.telegram.sent(ADA).into_iter().map(|message| message.text).collect();
        (0..12).map(|number| texts.matches(&format!("<{number}>")).count()).collect()
    }

    /// How many of the twelve are in the first message.
    fn in_first_message(&self) -> usize {
        let first = &self.telegram.sent(ADA)[1].text;
        (0..12).filter(|number| first.contains(&format!("<{number}>"))).count()
    }

    async fn reads(&self, number: usize) {
        let inbox = self.inbox().await;
        let wanted = |item: &&Value| item["message"].as_str().unwrap().starts_with(&format!("<{number}>"));
        let id = inbox.iter().find(wanted).unwrap()["id"].as_str().unwrap();
        let path = format!("/v1/users/ada/notifications/{id}");
        let (status, answer) = self.hub.call(&self.ada, Method::PATCH, &path, Some(json!({"read": true}))).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
}

#[tokio::test]
async fn reading_one_notification_of_a_half_sent_group_leaves_the_rest_to_be_sent() {
    let chat = half_sent(Fault::error(500, "Internal Server Error")).await;
    chat.until("waiting").await;
    let first = chat.in_first_message();
    assert!((1..11).contains(&first), "{first}");
    let state_of = |states: &[(String, Option<String>)], number: usize| states[number].0.clone();
    let states = chat.states().await;
    for number in 0..12 {
        let expected = if number < first { "sent" } else { "waiting" };
        assert_eq!(state_of(&states, number), expected, "{number}: {states:?}");
    }
    // One that was sent, and one that was not.
    chat.reads(0).await;
    chat.reads(10).await;
    chat.until("sent").await;
    let states = chat.states().await;
    for number in (0..12).filter(|number| *number != 10) {
        assert_eq!(states[number], ("sent".to_owned(), None), "{number}: {states:?}");
    }
    assert_eq!(states[10], ("skipped".to_owned(), Some("it was read meanwhile".to_owned())));
    let expected: Vec<usize> = (0..12).map(|number| usize::from(number != 10)).collect();
    assert_eq!(chat.sent_counts(), expected);
    assert!(chat.inbox().await.iter().all(|item| item["kind"] != "note"), "nothing has failed");
}

#[tokio::test]
async fn the_rest_of_a_half_sent_group_shows_the_title_that_the_conversation_has_by_then() {
    let chat = half_sent(Fault::error(500, "Internal Server Error")).await;
    chat.until("waiting").await;
    chat.open("trip", Some("Paris")).await;
    chat.until("sent").await;
    assert_eq!(chat.sent_counts(), [1; 12]);
    assert!(chat.telegram.sent(ADA).last().unwrap().text.ends_with("Paris"));
}

#[tokio::test]
async fn what_was_sent_of_a_group_stays_sent_if_the_rest_is_refused_or_unknown() {
    for (fault, state) in [
        (Fault::error(400, "Bad Request: no"), "failed"),
        (Fault::error(403, "Forbidden: bot was blocked by the user"), "failed"),
        (Fault::CloseAfterAccepting, "unknown"),
    ] {
        let chat = half_sent(fault.clone()).await;
        let rest = chat.until(state).await;
        let first = chat.in_first_message();
        assert!(rest["reason"].as_str().unwrap().starts_with("1 of 2 parts were delivered"), "{rest}");
        let states = chat.states().await;
        let count = |wanted: &str| states.iter().filter(|(state, _)| state == wanted).count();
        assert_eq!((count("sent"), count(state)), (first, 12 - first), "{fault:?} {states:?}");
        let notes = chat.inbox().await.iter().filter(|item| item["kind"] == "note").count();
        assert_eq!(notes, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_long_429_between_the_parts_of_a_notify_is_obeyed_and_the_text_comes_whole() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(12));
    let answer = chat.notify("chat", json!({"message": "word ".repeat(1000)})).await;
    assert_eq!((&answer["status"], chat.count()), (&json!("ok"), 3), "{answer}");
}
