use reqwest::{Method, StatusCode};
use serde_json::json;
use telegram_standin::Standin;

use super::{ADA, Chat};
use crate::hub::TestHub;

#[tokio::test]
async fn a_code_pairs_a_private_chat_once() {
    let chat = Chat::start().await;
    let (status, answer) = chat.hub.call(&chat.ada, Method::POST, "/v1/users/ada/telegram/pair", None).await;
    assert_eq!(status, StatusCode::CREATED);
    let code = answer["code"].as_str().unwrap();
    assert_eq!(answer["link"], json!(format!("https://t.me/{}?start={code}", Standin::USERNAME)));
    assert_eq!(code.len(), 22);
    chat.telegram.types(ADA, &format!("/start {code}"));
    let said = chat.said(ADA, 1).await.text;
    assert!(said.starts_with("This chat is connected: notifications for ada"), "{said}");
    assert_eq!(chat.settings().await, json!({"enabled": true, "chat_id": ADA, "paired": true}));
    // Nobody else can use it.
    chat.telegram.types(7, &format!("/start {code}"));
    assert!(chat.said(7, 1).await.text.starts_with("This code is not valid"));
}

#[tokio::test]
async fn a_guessed_pairing_code_is_refused_and_five_are_enough() {
    let chat = Chat::start().await;
    let code = chat.code().await;
    for guess in 0..5 {
        chat.telegram.types(7, &format!("/start {guess}"));
    }
    chat.telegram.types(7, &format!("/start {code}"));
    assert!(chat.said(7, 1).await.text.starts_with("This code is not valid"));
    // Whatever came later is handled when this is answered.
    chat.pair(ADA).await;
    assert_eq!((chat.telegram.sent(7).len(), &chat.settings().await["chat_id"]), (1, &json!(ADA)));
}

#[tokio::test]
async fn a_stranger_who_had_the_answer_of_the_day_gets_none_for_a_wrong_code_and_connects_with_the_right_one() {
    let chat = Chat::start().await;
    chat.telegram.types(ADA, "/start");
    assert!(chat.said(ADA, 1).await.text.starts_with("This is the bot of a Bellwire hub"));
    chat.telegram.types(ADA, "/start wrong");
    chat.telegram.types(ADA, &format!("/start {}", chat.code().await));
    assert!(chat.said(ADA, 2).await.text.starts_with("This chat is connected"));
}

#[tokio::test]
async fn a_new_chat_replaces_the_old_one_which_is_told() {
    let chat = Chat::paired().await;
    chat.pair(99).await;
    let told = chat.said(ADA, 2).await.text;
    assert!(told.contains("another chat was connected instead"), "{told}");
    assert_eq!(chat.settings().await["chat_id"], 99);
    chat.send("chat", "hello").await;
    assert!(chat.said(99, 2).await.text.contains("hello"));
    assert_eq!(chat.count(), 2);
}

#[tokio::test]
async fn a_chat_of_another_person_is_refused_until_stop() {
    let chat = Chat::paired().await;
    let (_, answer) = chat.hub.call(&chat.hub.admin, Method::POST, "/v1/users/bob/telegram/pair", None).await;
    let code = answer["code"].as_str().unwrap();
    chat.telegram.types(ADA, &format!("/start {code}"));
    assert!(chat.said(ADA, 2).await.text.contains("connected to another person"));
    chat.telegram.types(ADA, "/stop");
    assert!(chat.said(ADA, 3).await.text.contains("no longer connected"));
    assert_eq!(chat.settings().await, json!({"enabled": false, "chat_id": null, "paired": false}));
    chat.telegram.types(ADA, &format!("/start {code}"));
    assert!(chat.said(ADA, 4).await.text.contains("notifications for bob"));
}

#[tokio::test]
async fn a_stranger_gets_one_polite_answer_a_day_and_a_group_none() {
    let chat = Chat::start().await;
    for text in ["hi", "hello?", "/help", "/stop"] {
        chat.telegram.types(7, text);
    }
    chat.telegram.types_in_group(-5, 7, "/start");
    assert!(chat.said(7, 1).await.text.starts_with("This is the bot of a Bellwire hub"));
    chat.confirmed().await;
    // Whatever came later is handled when this is answered.
    chat.pair(ADA).await;
    assert_eq!((chat.telegram.sent(7).len(), chat.telegram.sent(-5).len()), (1, 0));
}

#[tokio::test]
async fn a_hub_without_a_bot_says_so() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let (status, answer) = hub.call(&ada, Method::POST, "/v1/users/ada/telegram/pair", None).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(answer["error"]["message"].as_str().unwrap().contains("telegram.token_file"), "{answer}");
    let (status, _) = hub.call(&ada, Method::POST, "/v1/users/ada/email/pair", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = hub.call(&ada, Method::POST, "/v1/users/bob/telegram/pair", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
