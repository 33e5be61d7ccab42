use std::time::Duration;

use serde_json::json;

use crate::{ADA, call, client, refused, result, standin};

#[tokio::test]
async fn a_text_has_at_most_4096_utf_16_units() {
    let standin = standin();
    // 2048 emoji are 4096 units, and 8192 bytes.
    let fits = "🔔".repeat(2048);
    assert_eq!(result(&standin, "sendMessage", json!({"chat_id": ADA, "text": fits})).await["text"], fits);
    let long = format!("{fits}x");
    let said = refused(&standin, "sendMessage", json!({"chat_id": ADA, "text": long})).await;
    assert_eq!(said, (400, "Bad Request: message is too long".to_owned()));
    for (text, why) in [("", "message text is empty"), (" \n ", "text must be non-empty")] {
        let said = refused(&standin, "sendMessage", json!({"chat_id": ADA, "text": text})).await;
        assert_eq!(said, (400, format!("Bad Request: {why}")));
    }
}

#[tokio::test]
async fn an_entity_lies_inside_its_text_and_splits_no_surrogate_pair() {
    let standin = standin();
    let with = |offset: i64, length: i64| json!({"chat_id": ADA, "text": "a🔔b", "entities": [{"type": "bold", "offset": offset, "length": length}]});
    for (offset, length) in [(0, 4), (1, 2), (3, 1)] {
        assert_eq!(result(&standin, "sendMessage", with(offset, length)).await["entities"][0]["length"], length);
    }
    for (offset, length, why) in [
        (0, 5, "ends after the end"),
        (0, 2, "in a middle of a UTF-16 symbol"),
        (2, 2, "in a middle of a UTF-16 symbol"),
        (-1, 2, "incorrect offset"),
        (0, 0, "incorrect offset or length"),
    ] {
        let (status, said) = refused(&standin, "sendMessage", with(offset, length)).await;
        assert!(status == 400 && said.contains(why), "{offset} {length}: {said}");
    }
    let unknown = json!({"chat_id": ADA, "text": "a", "entities": [{"type": "huge", "offset": 0, "length": 1}]});
    assert_eq!(refused(&standin, "sendMessage", unknown).await.0, 400);
}

#[tokio::test]
async fn a_reply_needs_a_message_of_that_chat() {
    let standin = standin();
    let asked = standin.types(ADA, "well?");
    standin.open_chat(7);
    let elsewhere = standin.types(7, "other");
    let reply = |to: i64| json!({"chat_id": ADA, "text": "well", "reply_parameters": {"message_id": to}});
    assert_eq!(result(&standin, "sendMessage", reply(asked)).await["reply_to_message"]["message_id"], asked);
    for missing in [elsewhere, 999] {
        let said = refused(&standin, "sendMessage", reply(missing)).await;
        assert_eq!(said, (400, "Bad Request: message to be replied not found".to_owned()));
    }
    let lenient = json!({"chat_id": ADA, "text": "x", "reply_parameters": {"message_id": 999, "allow_sending_without_reply": true}});
    assert!(result(&standin, "sendMessage", lenient).await.get("reply_to_message").is_none());
}

#[tokio::test]
async fn a_bot_cannot_write_first_nor_to_someone_who_blocked_it() {
    let standin = standin();
    let send = |chat: i64| json!({"chat_id": chat, "text": "x"});
    assert_eq!(refused(&standin, "sendMessage", send(5)).await, (400, "Bad Request: chat not found".to_owned()));
    assert_eq!(refused(&standin, "sendMessage", json!({"text": "x"})).await.1, "Bad Request: chat_id is empty");
    standin.blocks(ADA);
    let said = refused(&standin, "sendMessage", send(ADA)).await;
    assert_eq!(said, (403, "Forbidden: bot was blocked by the user".to_owned()));
    standin.unblocks(ADA);
    result(&standin, "sendMessage", send(ADA)).await;
}

#[tokio::test]
async fn callback_data_has_1_to_64_bytes() {
    let standin = standin();
    let with = |data: &str| json!({"chat_id": ADA, "text": "x", "reply_markup": {"inline_keyboard": [[{"text": "Yes", "callback_data": data}]]}});
    result(&standin, "sendMessage", with(&"d".repeat(64))).await;
    let said = refused(&standin, "sendMessage", with(&"d".repeat(65))).await;
    assert_eq!(said, (400, "Bad Request: BUTTON_DATA_INVALID".to_owned()));
    assert_eq!(refused(&standin, "sendMessage", with("")).await.0, 400);
    assert_eq!(standin.sent(ADA)[0].buttons(), ["Yes"]);
}

#[tokio::test]
async fn a_chat_that_is_sent_too_much_answers_429_with_retry_after() {
    let standin = standin();
    standin.limit_chats(Duration::from_secs(3));
    result(&standin, "sendMessage", json!({"chat_id": ADA, "text": "1"})).await;
    let (status, body) = call(&standin, "sendMessage", json!({"chat_id": ADA, "text": "2"})).await;
    assert_eq!((status, &body["parameters"]["retry_after"]), (429, &json!(3)));
    standin.open_chat(7);
    result(&standin, "sendMessage", json!({"chat_id": 7, "text": "another chat"})).await;
}

#[tokio::test]
async fn parameters_come_as_json_form_or_query_and_names_of_methods_in_any_case() {
    let standin = standin();
    let base = format!("{}/bot{}", standin.url(), standin.token());
    let http = client();
    let form = [("chat_id", "1815"), ("text", "a form"), ("entities", r#"[{"type":"bold","offset":0,"length":1}]"#)];
    let response = http.post(format!("{base}/SENDMESSAGE")).form(&form).send().await.expect("an answer");
    assert!(response.status().is_success(), "{}", response.text().await.expect("a body"));
    let response = client().get(format!("{base}/sendmessage?chat_id={ADA}&text=a+query&unknown=1")).send().await;
    assert!(response.expect("an answer").status().is_success());
    let texts: Vec<String> = standin.sent(ADA).into_iter().map(|message| message.text).collect();
    assert_eq!(texts, ["a form", "a query"]);
    assert_eq!(standin.sent(ADA)[0].entities[0]["type"], "bold");
}

#[tokio::test]
async fn a_wrong_token_and_an_unknown_method_are_refused() {
    let standin = standin();
    assert_eq!(refused(&standin, "sendFax", json!({})).await, (404, "Not Found: method not found".to_owned()));
    let wrong = client().get(format!("{}/bot1:x/getMe", standin.url())).send().await.expect("an answer");
    assert_eq!(wrong.status(), 401);
    let nothing = client().get(format!("{}/getMe", standin.url())).send().await.expect("an answer");
    assert_eq!(nothing.status(), 404);
    assert_eq!(result(&standin, "getMe", json!({})).await["username"], "standin_bot");
}
