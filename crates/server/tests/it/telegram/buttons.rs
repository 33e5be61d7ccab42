use reqwest::{Method, StatusCode};
use telegram_standin::{Message, Standin};

use super::{ADA, Chat};

/// Waits until the bot has edited its message to this.
async fn edited_to(chat: &Chat, end: &str) -> Message {
    let found =
        |telegram: &Standin| telegram.sent(ADA).into_iter().find(|one| one.edits > 0 && one.text.ends_with(end));
    chat.telegram.wait_until(&format!("a message that says {end:?}"), found).await
}

#[tokio::test]
async fn a_button_pressed_in_the_chat_reaches_the_agent_once() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    chat.ask("chat").await;
    let asked = chat.said(ADA, 2).await;
    assert_eq!(asked.text, "[butler] Deploy\nShall I?");
    assert_eq!(asked.buttons(), ["Go", "Later"]);
    let markup = asked.reply_markup.clone().unwrap().to_string();
    assert!(!markup.contains("go on"), "the prompt is not in the message: {markup}");
    let data = asked.reply_markup.as_ref().unwrap()["inline_keyboard"][0][0]["callback_data"].as_str().unwrap();
    let query = chat.telegram.presses(ADA, asked.message_id, "Go");
    let edited = edited_to(&chat, "Pressed: Go").await;
    assert_eq!((edited.buttons().len(), edited.message_id), (0, asked.message_id));
    assert_eq!(edited.text, "[butler] Deploy\nShall I?\n\nPressed: Go");
    chat.telegram.wait_until("an answer to the press", |telegram| telegram.is_answered(&query).then_some(())).await;
    // A replayed callback changes nothing and is answered.
    let replayed = chat.telegram.forges_press(ADA, asked.message_id, data);
    chat.telegram.wait_until("an answer to the replay", |telegram| telegram.is_answered(&replayed).then_some(())).await;
    let said = chat.telegram.calls_of("answerCallbackQuery").pop().unwrap().parameters["text"].clone();
    assert_eq!(said, "This button was used before.");
    let block = chat.block("chat", "1").await;
    assert_eq!(block.matches(r#"pressed \"Go\" (offered by butler): go on"#).count(), 1, "{block}");
    let item = &chat.inbox().await[0];
    assert_eq!(item["actions_taken"].as_array().map(Vec::len).unwrap_or(1), 1, "{item}");
}

#[tokio::test]
async fn a_button_pressed_in_the_inbox_shows_in_the_chat() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    let id = chat.ask("chat").await;
    let asked = chat.said(ADA, 2).await;
    let path = format!("/v1/users/ada/notifications/{id}/actions/0");
    let (status, answer) = chat.hub.call(&chat.ada, Method::POST, &path, None).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(edited_to(&chat, "Pressed: Go").await.message_id, asked.message_id);
    // What the client still shows is answered with what was pressed.
    let data = asked.reply_markup.as_ref().unwrap()["inline_keyboard"][1][0]["callback_data"].as_str().unwrap();
    let query = chat.telegram.forges_press(ADA, asked.message_id, data);
    chat.telegram.wait_until("an answer to the press", |telegram| telegram.is_answered(&query).then_some(())).await;
    let said = chat.telegram.calls_of("answerCallbackQuery").pop().unwrap().parameters["text"].clone();
    assert_eq!(said, "Already done. Pressed: Go");
}

#[tokio::test]
async fn a_dismissed_notification_loses_its_buttons() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    let id = chat.ask("chat").await;
    chat.said(ADA, 2).await;
    let path = format!("/v1/users/ada/notifications/{id}");
    let (status, _) = chat.hub.call(&chat.ada, Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::OK);
    assert!(edited_to(&chat, "Dismissed").await.buttons().is_empty());
}

#[tokio::test]
async fn a_forged_token_and_a_foreign_sender_are_refused() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    chat.ask("chat").await;
    let asked = chat.said(ADA, 2).await;
    let forged = chat.telegram.forges_press(ADA, asked.message_id, "AAAAAAAAAAAAAAAAAAAAAA");
    let foreign = chat.telegram.presses_as(666, ADA, asked.message_id, "Go");
    for query in [forged, foreign] {
        chat.telegram.wait_until("an answer to the press", |telegram| telegram.is_answered(&query).then_some(())).await;
    }
    assert_eq!(chat.block("chat", "1").await, "");
    let said: Vec<String> = chat
        .telegram
        .calls_of("answerCallbackQuery")
        .iter()
        .map(|call| call.parameters["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(said.contains(&"This button no longer works.".to_owned()), "{said:?}");
    assert!(said.contains(&"This button is not for you.".to_owned()), "{said:?}");
}
