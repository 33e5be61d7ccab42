use serde_json::{Value, json};
use telegram_standin::ALLOWED_REACTIONS;

use crate::{ADA, refused, result, standin};

#[tokio::test]
async fn an_edit_must_change_something_of_the_bots_own_message() {
    let standin = standin();
    let buttons = json!({"inline_keyboard": [[{"text": "Yes", "callback_data": "1"}]]});
    let send = json!({"chat_id": ADA, "text": "Go?", "reply_markup": buttons});
    let id = result(&standin, "sendMessage", send).await["message_id"].clone();
    let removed = result(&standin, "editMessageReplyMarkup", json!({"chat_id": ADA, "message_id": id})).await;
    assert!(removed.get("reply_markup").is_none());
    let again = refused(&standin, "editMessageReplyMarkup", json!({"chat_id": ADA, "message_id": id})).await;
    assert!(again.0 == 400 && again.1.starts_with("Bad Request: message is not modified"), "{again:?}");
    let edit = |id: &Value, text: &str| json!({"chat_id": ADA, "message_id": id, "text": text});
    assert_eq!(result(&standin, "editMessageText", edit(&id, "Gone")).await["text"], "Gone");
    assert!(refused(&standin, "editMessageText", edit(&id, "Gone")).await.1.contains("not modified"));
    let missing = refused(&standin, "editMessageText", edit(&json!(999), "x")).await;
    assert_eq!(missing, (400, "Bad Request: message to edit not found".to_owned()));
    let theirs = json!(standin.types(ADA, "mine"));
    assert_eq!(
        refused(&standin, "editMessageText", edit(&theirs, "x")).await.1,
        "Bad Request: message can't be edited"
    );
}

#[tokio::test]
async fn only_the_allowed_emoji_are_reactions() {
    let standin = standin();
    let id = standin.types(ADA, "done?");
    let react =
        |emoji: &str| json!({"chat_id": ADA, "message_id": id, "reaction": [{"type": "emoji", "emoji": emoji}]});
    for emoji in ALLOWED_REACTIONS {
        result(&standin, "setMessageReaction", react(emoji)).await;
        assert_eq!(standin.messages(ADA)[0].reaction.as_deref(), Some(emoji));
    }
    for emoji in ["✅", "❌", "❤\u{fe0f}", "x", ""] {
        let said = refused(&standin, "setMessageReaction", react(emoji)).await;
        assert_eq!(said, (400, "Bad Request: REACTION_INVALID".to_owned()), "{emoji}");
    }
    let elsewhere = json!({"chat_id": ADA, "message_id": 999, "reaction": [{"type": "emoji", "emoji": "👍"}]});
    let said = refused(&standin, "setMessageReaction", elsewhere).await;
    assert_eq!(said, (400, "Bad Request: message to react not found".to_owned()));
    result(&standin, "setMessageReaction", json!({"chat_id": ADA, "message_id": id, "reaction": []})).await;
    assert_eq!(standin.messages(ADA)[0].reaction, None);
}

#[tokio::test]
async fn a_callback_query_is_answered_once() {
    let standin = standin();
    let buttons = json!({"inline_keyboard": [[{"text": "Yes", "callback_data": "token"}]]});
    let send = json!({"chat_id": ADA, "text": "Go?", "reply_markup": buttons});
    let id = result(&standin, "sendMessage", send).await["message_id"].as_i64().expect("an id");
    let query = standin.presses(ADA, id, "Yes");
    let updates = result(&standin, "getUpdates", json!({})).await;
    assert_eq!(updates[0]["callback_query"]["data"], "token");
    assert_eq!(updates[0]["callback_query"]["message"]["message_id"], id);
    assert!(!standin.is_answered(&query));
    let long = json!({"callback_query_id": query, "text": "x".repeat(201)});
    assert_eq!(refused(&standin, "answerCallbackQuery", long).await.0, 400);
    result(&standin, "answerCallbackQuery", json!({"callback_query_id": query, "text": "x".repeat(200)})).await;
    assert!(standin.is_answered(&query));
    let again = refused(&standin, "answerCallbackQuery", json!({"callback_query_id": query})).await;
    assert_eq!(
        again,
        (400, "Bad Request: query is too old and response timeout expired or query ID is invalid".to_owned())
    );
    // A query of a message that is gone still arrives.
    standin.forges_press(ADA, 999, "guess");
    let updates = result(&standin, "getUpdates", json!({"offset": -1})).await;
    assert_eq!(updates[0]["callback_query"]["message"]["date"], 0);
}
