//! `notify` on Telegram: send, reply and react.

use std::time::Duration;

use serde_json::{Value, json};
use telegram_standin::Fault;

use super::{ADA, Chat};

fn text_of(answer: &Value) -> &str {
    answer["error"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn a_send_arrives_with_its_origin_in_bold_and_adds_one_inbox_item() {
    let chat = Chat::paired().await;
    let answer = chat.notify("chat", json!({"message": "*Hello* <b>Ada</b> _x_ \u{202e}", "subject": "Hi"})).await;
    let sent = chat.said(ADA, 2).await;
    assert_eq!(answer["delivery"], json!({"channel": "telegram", "delivery_id": sent.message_id.to_string()}));
    assert_eq!(sent.text, "[butler] Hi\n*Hello* <b>Ada</b> _x_");
    assert_eq!(sent.entities[0], json!({"type": "bold", "offset": 0, "length": 8}));
    assert!(!chat.telegram.calls_of("sendMessage")[1].parameters.contains_key("parse_mode"));
    assert_eq!((chat.inbox().await.len(), chat.deliveries().await.len()), (1, 0));
}

#[tokio::test]
async fn an_answer_to_a_send_finds_the_conversation_of_its_agent() {
    let chat = Chat::paired().await;
    chat.open("trip", None).await;
    chat.open("other", None).await;
    chat.notify("trip", json!({"message": "We leave at noon"})).await;
    let sent = chat.said(ADA, 2).await;
    chat.telegram.replies(ADA, sent.message_id, "can we leave later?");
    assert!(chat.wait_for_block("trip").await.contains("can we leave later?"));
    assert_eq!((chat.block("other", "other").await.as_str(), chat.count()), ("", 2));
}

#[tokio::test]
async fn a_long_text_comes_in_parts_in_order() {
    let chat = Chat::paired().await;
    let long: String = (0..900).map(|number| format!("word {number}, ")).collect();
    let answer = chat.notify("chat", json!({ "message": long })).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let parts = chat.telegram.wait_for_sent(ADA, 4).await.split_off(1);
    assert_eq!(parts.len(), 3);
    assert_eq!(answer["delivery"]["delivery_id"], json!(parts[0].message_id.to_string()));
    let whole: String = parts.iter().flat_map(|part| part.text.split_whitespace()).collect();
    assert_eq!(whole, format!("[butler] {long}").split_whitespace().collect::<String>());
    assert!(parts[1..].iter().all(|part| !part.text.contains("[butler]")), "only the first has a label");
}

#[tokio::test]
async fn if_a_later_part_fails_the_caller_learns_how_many_arrived_and_a_repeat_sends_nothing() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::error(400, "Bad Request: something"));
    let long = json!({"message": "word ".repeat(2000)});
    let answer = chat.notify_once("key", long.clone()).await;
    let sent = chat.said(ADA, 2).await;
    assert_eq!(
        answer["error"],
        json!({
            "class": "internal_error", "retryable": false,
            "message": "1 of 3 parts delivered: Telegram answered 400: Bad Request: something",
        })
    );
    assert_eq!(answer["delivery"]["delivery_id"], json!(sent.message_id.to_string()));
    assert_eq!(chat.notify_once("key", long).await["error"], answer["error"]);
    assert_eq!(chat.count(), 2);
}

#[tokio::test]
async fn a_429_of_a_later_part_is_obeyed_and_the_text_comes_whole() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(1));
    let before = std::time::Instant::now();
    let answer = chat.notify("chat", json!({"message": "word ".repeat(2000)})).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    assert!(before.elapsed() >= Duration::from_secs(1), "{:?}", before.elapsed());
    assert_eq!(chat.count(), 4);
}

#[tokio::test]
async fn a_reply_answers_the_message_and_belongs_to_its_conversation() {
    let chat = Chat::paired().await;
    let asked = chat.writes("trip", "when do we leave?").await;
    let answer = chat.notify("trip", json!({"intent": "reply", "message": "At noon"})).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let reply = chat.said(ADA, 2).await;
    assert_eq!((reply.text.as_str(), reply.reply_to), ("[butler] At noon", Some(asked)));
    let call = chat.telegram.calls_of("sendMessage").pop().unwrap();
    assert_eq!(call.parameters["reply_parameters"], json!({ "message_id": asked }));
    assert_eq!(chat.inbox().await.len(), 0, "an answer is no notification");
    // With two open conversations, an answer to the reply finds its own.
    chat.open("other", None).await;
    chat.telegram.replies(ADA, reply.message_id, "and the train?");
    assert!(chat.wait_for_block("trip").await.contains("and the train?"));
}

#[tokio::test]
async fn only_the_first_part_of_a_long_reply_answers_the_message() {
    let chat = Chat::paired().await;
    let asked = chat.writes("trip", "tell me all").await;
    chat.notify("trip", json!({"intent": "reply", "message": "word ".repeat(1000)})).await;
    let parts = chat.telegram.wait_for_sent(ADA, 3).await.split_off(1);
    assert_eq!(parts.iter().map(|part| part.reply_to).collect::<Vec<_>>(), [Some(asked), None]);
}

#[tokio::test]
async fn a_reply_to_a_deleted_message_is_refused_and_never_sent_elsewhere() {
    let chat = Chat::paired().await;
    chat.writes("trip", "when do we leave?").await;
    chat.telegram.fail_next("sendMessage", Fault::error(400, "Bad Request: message to be replied not found"));
    let answer = chat.notify("trip", json!({"intent": "reply", "message": "At noon"})).await;
    assert_eq!(
        (&answer["error"]["class"], &answer["error"]["retryable"]),
        (&json!("validation_error"), &json!(false)),
        "{answer}"
    );
    assert_eq!(chat.count(), 1);
}

#[tokio::test]
async fn a_reaction_arrives_at_the_message() {
    let chat = Chat::paired().await;
    let asked = chat.writes("trip", "we leave at noon").await;
    let answer = chat.notify("trip", json!({"intent": "react", "emoji": "❤\u{fe0f}"})).await;
    assert_eq!(answer["delivery"]["delivery_id"], json!(asked.to_string()), "{answer}");
    let reacted = chat.telegram.messages(ADA).into_iter().find(|one| one.message_id == asked).unwrap();
    assert_eq!(reacted.reaction.as_deref(), Some("❤"));
    assert_eq!(chat.count(), 1);
}

#[tokio::test]
async fn a_reaction_that_telegram_does_not_allow_is_refused_before_anything_is_sent() {
    let chat = Chat::paired().await;
    chat.writes("trip", "we leave at noon").await;
    let answer = chat.notify("trip", json!({"intent": "react", "emoji": "✅"})).await;
    assert_eq!(answer["error_class"], "validation_error", "{answer}");
    assert!(text_of(&answer).starts_with("Invalid emoji '✅': Telegram does not allow it"), "{answer}");
    assert!(chat.telegram.calls_of("setMessageReaction").is_empty());
    // What the chat itself does not allow, only Telegram knows.
    chat.telegram.fail_next("setMessageReaction", Fault::error(400, "Bad Request: REACTION_INVALID"));
    let answer = chat.notify("trip", json!({"intent": "react", "emoji": "👍"})).await;
    let error = &answer["error"];
    assert_eq!((&error["class"], &error["retryable"]), (&json!("validation_error"), &json!(false)), "{answer}");
}

#[tokio::test]
async fn an_answer_needs_a_message_that_the_agent_may_read() {
    let chat = Chat::paired().await;
    let asked = chat.writes("trip", "when do we leave?").await;
    let context = |thread: String| {
        json!({
            "request_id": "019b8478-7b18-7c3e-8a44-21d3f5a70c11", "source_channel": "telegram",
            "source_endpoint_identity": "telegram:7001", "source_sender_identity": ADA.to_string(),
            "source_thread_identity": thread,
        })
    };
    let reply = |thread: String| json!({"intent": "reply", "message": "At noon", "request_context": context(thread)});
    // One of the bot's own messages, one that does not exist, and what is no message.
    for thread in [format!("{ADA}:2"), format!("{ADA}:{}", asked + 100), ADA.to_string(), format!("{ADA}:x")] {
        let answer = chat.notify("trip", reply(thread.clone())).await;
        assert!(text_of(&answer).contains("'source_thread_identity'"), "{thread}: {answer}");
    }
    let bobs = chat.hub.token("agent", "bob").await;
    let mut arguments = reply(format!("{ADA}:{asked}"));
    arguments["channel"] = json!("telegram");
    let (_, answer) = chat.hub.post(&bobs, "/v1/tools/notify", json!({ "arguments": arguments })).await;
    assert!(text_of(&answer).contains("no message of a conversation that you may read"), "{answer}");
    assert_eq!(chat.count(), 1);
    assert_eq!(chat.notify("trip", reply(format!("{ADA}:{asked}"))).await["status"], "ok");
}

#[tokio::test]
async fn a_message_waits_at_most_five_seconds_for_its_slot() {
    let chat = Chat::paired_with(|config| config.telegram.chat_interval_ms = 60_000).await;
    let before = std::time::Instant::now();
    let answer = chat.notify_once("key", json!({"message": "too soon"})).await;
    let error = &answer["error"];
    assert_eq!((&error["class"], &error["retryable"]), (&json!("overload_rejected"), &json!(true)), "{answer}");
    let seconds = answer["retry_after_seconds"].as_u64().unwrap();
    assert!((50..=60).contains(&seconds), "{answer}");
    assert!(before.elapsed() < Duration::from_secs(5), "it is told at once");
    assert_eq!(chat.count(), 1);
}

#[tokio::test]
async fn messages_of_one_chat_wait_for_their_turn() {
    let chat = Chat::paired_with(|config| config.telegram.chat_interval_ms = 300).await;
    chat.telegram.limit_chats(Duration::from_millis(250));
    let send = |number: u32| chat.notify("chat", json!({"message": format!("message {number}")}));
    let answers = futures_util::future::join_all((0..4).map(send)).await;
    assert!(answers.iter().all(|answer| answer["status"] == "ok"), "{answers:?}");
    let refused = chat.telegram.calls_of("sendMessage").iter().filter(|call| call.status == 429).count();
    assert_eq!((refused, chat.count()), (0, 5));
}
