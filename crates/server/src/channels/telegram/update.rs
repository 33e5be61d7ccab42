//! Understands an update: who sent it, and what it asks for. Unknown fields and kinds are ignored.

use bellwire_core::notify::ChatThread;
use bellwire_store::{ChatSender, InboundText, UpdateAction};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::auth;

/// How many conversations a question offers.
const CHOICES_MAX: usize = 5;

/// An update as it is understood.
pub(super) struct Understood {
    /// The chat and its sender; none = it is of no private chat with a person.
    pub(super) from: Option<ChatSender>,
    /// What it asks for.
    pub(super) action: UpdateAction,
    /// Where an answer goes.
    pub(super) answer_to: AnswerTo,
}

/// Where an answer goes.
#[derive(Default)]
pub(super) struct AnswerTo {
    /// The chat.
    pub(super) chat_id: Option<i64>,
    /// The query of a pressed button, which must be answered.
    pub(super) query_id: Option<String>,
    /// The message of the pressed button.
    pub(super) message_id: Option<i64>,
    /// The tokens of buttons that a question offers; their hashes are in the action.
    pub(super) choices: Vec<String>,
}

#[derive(Deserialize)]
struct Update {
    message: Option<TelegramMessage>,
    edited_message: Option<TelegramMessage>,
    callback_query: Option<CallbackQuery>,
    my_chat_member: Option<MemberUpdate>,
}

#[derive(Deserialize)]
struct TelegramMessage {
    message_id: i64,
    from: Option<User>,
    chat: Chat,
    text: Option<String>,
    reply_to_message: Option<RepliedMessage>,
    forward_origin: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RepliedMessage {
    message_id: i64,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
    r#type: String,
}

#[derive(Deserialize)]
struct CallbackQuery {
    id: String,
    from: User,
    message: Option<QueryMessage>,
    data: Option<String>,
}

#[derive(Deserialize)]
struct QueryMessage {
    message_id: i64,
    chat: Chat,
}

#[derive(Deserialize)]
struct MemberUpdate {
    chat: Chat,
    from: User,
    new_chat_member: Member,
}

#[derive(Deserialize)]
struct Member {
    status: String,
}

/// The id of an update.
pub(super) fn id(body: &str) -> Option<i64> {
    #[derive(Deserialize)]
    struct Id {
        update_id: i64,
    }
    serde_json::from_str::<Id>(body).ok().map(|update| update.update_id)
}

/// Understands an update for this bot.
pub(super) fn understand(body: &str, bot_id: i64) -> Understood {
    let nothing = |why| Understood { from: None, action: UpdateAction::Ignore(why), answer_to: AnswerTo::default() };
    match serde_json::from_str::<Update>(body) {
        Ok(Update { message: Some(message), .. }) => of_message(message, bot_id),
        Ok(Update { edited_message: Some(message), .. }) => {
            Understood { action: UpdateAction::NotText, ..of_message(message, bot_id) }
        }
        Ok(Update { callback_query: Some(query), .. }) => of_query(query),
        Ok(Update { my_chat_member: Some(member), .. }) => of_member(member),
        Ok(_) => nothing("unknown kind"),
        Err(_) => nothing("unreadable"),
    }
}

fn of_message(message: TelegramMessage, bot_id: i64) -> Understood {
    let from = message.from.as_ref().and_then(|from| sender(from, &message.chat));
    let chat_id = message.chat.id;
    let reply_to = message.reply_to_message.map(|replied| replied.message_id);
    let mut answer_to = AnswerTo { chat_id: Some(chat_id), ..AnswerTo::default() };
    let text = message.text.filter(|text| message.forward_origin.is_none() && !text.trim().is_empty());
    let action = match text {
        None => UpdateAction::NotText,
        Some(text) => match command(&text) {
            Some(("/start", "")) => UpdateAction::Start,
            Some(("/start", code)) => UpdateAction::Pair(auth::hash(code)),
            Some(("/stop", _)) => UpdateAction::Stop,
            Some(("/mute", _)) => UpdateAction::Mute(reply_to),
            Some(("/help", _)) => UpdateAction::Help,
            _ => {
                answer_to.choices = (0..CHOICES_MAX).map(|_| auth::new_code()).collect();
                let thread = ChatThread { chat_id, message_id: message.message_id }.to_string();
                UpdateAction::Text(Box::new(InboundText {
                    message_id: message.message_id,
                    text,
                    reply_to,
                    endpoint: format!("telegram:{bot_id}"),
                    thread,
                    choices: answer_to.choices.iter().map(|token| auth::hash(token)).collect(),
                }))
            }
        },
    };
    Understood { from, action, answer_to }
}

fn of_query(query: CallbackQuery) -> Understood {
    let from = query.message.as_ref().and_then(|message| sender(&query.from, &message.chat));
    let answer_to = AnswerTo {
        chat_id: query.message.as_ref().map(|message| message.chat.id),
        query_id: Some(query.id),
        message_id: query.message.map(|message| message.message_id),
        choices: Vec::new(),
    };
    let action = query.data.map_or(UpdateAction::Ignore("no data"), |data| UpdateAction::Press(auth::hash(&data)));
    Understood { from, action, answer_to }
}

fn of_member(member: MemberUpdate) -> Understood {
    let from = sender(&member.from, &member.chat);
    let action = match member.new_chat_member.status.as_str() {
        "kicked" => UpdateAction::Blocked,
        _ => UpdateAction::Ignore("member"),
    };
    Understood { from, action, answer_to: AnswerTo::default() }
}

/// The sender of a private chat, which has the id of its person. Another sender in it is forged.
fn sender(user: &User, chat: &Chat) -> Option<ChatSender> {
    let is_person = chat.r#type == "private" && chat.id == user.id && !user.is_bot;
    is_person.then(|| ChatSender { target: chat.id.to_string(), sender: user.id.to_string() })
}

/// A command and its argument: `/start@the_bot CODE` is `/start` and `CODE`.
fn command(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let name = word.split('@').next().unwrap_or(word);
    name.starts_with('/').then_some((name, rest.trim()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(fields: Value) -> Value {
        let mut message = json!({
            "message_id": 5, "date": 1, "from": {"id": 7, "is_bot": false}, "chat": {"id": 7, "type": "private"},
        });
        for (name, value) in fields.as_object().expect("an object") {
            message[name] = value.clone();
        }
        json!({"update_id": 1, "message": message})
    }

    fn understood(update: &Value) -> (Option<String>, String) {
        let Understood { from, action, .. } = understand(&update.to_string(), 7001);
        let action = format!("{action:?}");
        (from.map(|from| format!("{} in {}", from.sender, from.target)), action)
    }

    #[test]
    fn commands_are_told_from_texts() {
        let action = |text: &str| understood(&message(json!({"text": text}))).1;
        assert_eq!(action("/start"), "Start");
        assert_eq!(action("/start@standin_bot"), "Start");
        assert_eq!(action("/start  CODE "), format!("{:?}", UpdateAction::Pair(auth::hash("CODE"))));
        assert_eq!(action("/stop"), "Stop");
        assert_eq!(action("/mute"), "Mute(None)");
        assert_eq!(action("/help me"), "Help");
        for text in ["hello", "/deploy now", "a /stop", "/"] {
            assert!(action(text).starts_with("Text("), "{text}");
        }
        let muted = message(json!({"text": "/mute", "reply_to_message": {"message_id": 3}}));
        assert_eq!(understood(&muted).1, "Mute(Some(3))");
    }

    #[test]
    fn only_new_texts_of_people_in_private_chats_count() {
        assert_eq!(understood(&message(json!({"text": "x"}))).0.as_deref(), Some("7 in 7"));
        for not_text in [json!({"photo": []}), json!({"text": "x", "forward_origin": {}}), json!({"text": " \n"})] {
            assert_eq!(understood(&message(not_text)).1, "NotText");
        }
        let mut edited = message(json!({"text": "x"}));
        edited["edited_message"] = edited["message"].take();
        assert_eq!(understood(&edited).1, "NotText");
        for foreign in [
            json!({"text": "x", "chat": {"id": -5, "type": "group"}}),
            json!({"text": "x", "from": {"id": 9, "is_bot": true}}),
            json!({"text": "x", "from": {"id": 8}}),
            json!({"text": "x", "from": null}),
        ] {
            assert_eq!(understood(&message(foreign)).0, None);
        }
    }

    #[test]
    fn a_text_has_its_thread_and_tokens_for_a_question() {
        let update = message(json!({"text": "hi", "reply_to_message": {"message_id": 4}})).to_string();
        let Understood { action: UpdateAction::Text(text), answer_to, .. } = understand(&update, 7001) else {
            panic!("it is a text")
        };
        assert_eq!((text.thread.as_str(), text.endpoint.as_str(), text.reply_to), ("7:5", "telegram:7001", Some(4)));
        let hashes: Vec<Vec<u8>> = answer_to.choices.iter().map(|token| auth::hash(token)).collect();
        assert_eq!(text.choices, hashes);
        assert!(answer_to.choices.iter().all(|token| token.len() == 22));
    }

    #[test]
    fn a_pressed_button_comes_with_its_query_and_garbage_is_ignored() {
        let query = json!({"update_id": 1, "callback_query": {
            "id": "q", "from": {"id": 7}, "data": "token",
            "message": {"message_id": 9, "date": 0, "chat": {"id": 7, "type": "private"}},
        }});
        let Understood { from, action, answer_to } = understand(&query.to_string(), 7001);
        assert_eq!(from.map(|from| from.sender).as_deref(), Some("7"));
        assert!(matches!(action, UpdateAction::Press(token) if token == auth::hash("token")));
        assert_eq!((answer_to.query_id.as_deref(), answer_to.message_id), (Some("q"), Some(9)));
        let blocked = json!({"update_id": 1, "my_chat_member": {
            "chat": {"id": 7, "type": "private"}, "from": {"id": 7}, "date": 1,
            "new_chat_member": {"status": "kicked", "user": {"id": 7001}},
        }});
        assert_eq!(understood(&blocked).1, "Blocked");
        for garbage in ["", "{}", "[]", r#"{"update_id":1,"message":7}"#, r#"{"update_id":1,"poll":{}}"#] {
            let Understood { from, action, .. } = understand(garbage, 7001);
            assert!(from.is_none() && matches!(action, UpdateAction::Ignore(_)), "{garbage}");
        }
        assert_eq!((id(r#"{"update_id":5}"#), id("{}"), id("")), (Some(5), None, None));
    }
}
