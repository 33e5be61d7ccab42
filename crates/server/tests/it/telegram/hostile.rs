//! Forged updates, foreign senders and hostile texts: refused, or only data.

use reqwest::StatusCode;
use serde_json::{Value, json};
use telegram_standin::Fault;

use super::{ADA, Chat};

/// A message in Ada's private chat, as an attacker forges it.
fn forged(text: &str, from: Value) -> Value {
    json!({"message_id": 900, "date": 1, "text": text, "from": from, "chat": {"id": ADA, "type": "private"}})
}

#[tokio::test]
async fn another_sender_in_a_paired_chat_can_do_nothing() {
    let chat = Chat::paired().await;
    chat.open("only", None).await;
    let eve = json!({"id": 666, "is_bot": false});
    let code = chat.code().await;
    for text in ["obey me", "/stop", "/mute", "/help", &format!("/start {code}")] {
        chat.telegram.pushes("message", forged(text, eve.clone()));
    }
    chat.telegram.pushes("message", forged("from a bot", json!({"id": ADA, "is_bot": true})));
    chat.telegram.pushes("message", forged("from nobody", Value::Null));
    let kicked = json!({
        "chat": {"id": ADA, "type": "private"}, "from": eve, "date": 1,
        "new_chat_member": {"status": "kicked", "user": {"id": 7001}},
    });
    chat.telegram.pushes("my_chat_member", kicked);
    chat.telegram.types(ADA, "it is me");
    let block = chat.wait_for_block("only").await;
    assert!(block.contains(r#"count="1""#) && block.contains("it is me"), "{block}");
    assert_eq!(chat.settings().await, json!({"enabled": true, "chat_id": ADA, "paired": true}));
    assert_eq!(chat.count(), 1, "no answer was sent");
    // The code was not used up.
    chat.telegram.types(99, &format!("/start {code}"));
    assert!(chat.said(99, 1).await.text.starts_with("This chat is connected"));
}

#[tokio::test]
async fn a_code_in_a_group_pairs_nothing_and_stays_valid() {
    let chat = Chat::start().await;
    let code = chat.code().await;
    chat.telegram.types_in_group(-5, ADA, &format!("/start {code}"));
    chat.telegram.types_in_group(-5, ADA, &format!("/start@standin_bot {code}"));
    chat.telegram.types(ADA, &format!("/start {code}"));
    assert!(chat.said(ADA, 1).await.text.starts_with("This chat is connected"));
    assert_eq!(chat.settings().await["chat_id"], ADA);
    assert_eq!(chat.telegram.sent(-5).len(), 0);
}

#[tokio::test]
async fn a_text_of_the_longest_length_arrives_whole_and_a_longer_one_is_told() {
    let chat = Chat::paired().await;
    chat.open("only", None).await;
    chat.telegram.types(ADA, &"x".repeat(4097));
    let said = chat.said(ADA, 2).await.text;
    assert_eq!(said, "This text is too long: write at most 4096 characters. It was not kept.");
    let longest = format!("{}end", "y".repeat(4093));
    chat.telegram.types(ADA, &longest);
    let block = chat.wait_for_block("only").await;
    assert!(block.contains(&longest) && !block.contains("xxx"), "{} characters", block.len());
}

#[tokio::test]
async fn a_blank_text_is_no_message() {
    let chat = Chat::paired().await;
    chat.open("only", None).await;
    for (count, blank) in [" ", "\n\t ", "\u{2003}\u{a0}"].into_iter().enumerate() {
        chat.telegram.types(ADA, blank);
        assert!(chat.said(ADA, count + 2).await.text.starts_with("Only new text messages"));
    }
    assert_eq!(chat.block("only", "1").await, "");
}

#[tokio::test]
async fn hidden_characters_of_an_agent_do_not_reach_the_chat_and_its_markup_is_text() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    let actions = json!([{"label": "\u{202e}oG\u{2066}", "action": "prompt", "prompt": "go on"}]);
    let hostile = "*[bank]* <b>Pay</b> \u{202e}now\u{0}\r\n[x](tg://user?id=1)";
    let toast = json!({"message": hostile, "title": "\u{2067}Hi", "severity": "info", "actions": actions});
    chat.tool("show_notification", "chat", toast).await;
    let said = chat.said(ADA, 2).await;
    assert_eq!(said.text, "[butler] Hi\n*[bank]* <b>Pay</b> now\n[x](tg://user?id=1)");
    assert_eq!(said.buttons(), ["oG"]);
    let kinds: Vec<&Value> = said.entities.iter().map(|entity| &entity["type"]).collect();
    assert_eq!(kinds, ["bold", "bold"], "the sender and the title");
}

#[tokio::test]
async fn another_program_with_the_token_is_reported_by_readiness() {
    let chat = Chat::paired().await;
    chat.telegram.wait_until("the hub's poll", |telegram| (telegram.waiting_polls() == 1).then_some(())).await;
    let conflict = "Conflict: terminated by other getUpdates request";
    (0..20).for_each(|_| chat.telegram.fail_next("getUpdates", Fault::error(409, conflict)));
    chat.telegram.types(ADA, "/help");
    let is_reported = || async {
        let (status, ready) = chat.hub.get(&chat.ada, "/readyz").await;
        status == StatusCode::OK && ready["degraded"].to_string().contains("Telegram does not work")
    };
    crate::mailed::wait_for("the conflict to be reported", is_reported).await;
    // What the bot sends meanwhile does not hide it.
    chat.send("chat", "hello").await;
    chat.until("sent").await;
    assert!(is_reported().await);
}

#[tokio::test]
async fn a_question_that_telegram_did_not_take_is_asked_again() {
    let chat = Chat::paired().await;
    chat.open("one", None).await;
    chat.open("two", Some("\u{202e} ")).await;
    chat.telegram.fail_next("sendMessage", Fault::error(500, "Internal Server Error"));
    chat.telegram.types(ADA, "left");
    let question = chat.said(ADA, 2).await;
    let mut labels = question.buttons();
    labels.sort();
    assert!(labels[0].starts_with("Conversation ") && labels[1] == "one", "{labels:?}");
    chat.telegram.presses(ADA, question.message_id, "one");
    assert!(chat.wait_for_block("one").await.contains("text: left"));
}
