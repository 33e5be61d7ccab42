//! What users do, as calls for other processes: `POST /standin/type`, `/standin/press`, `/standin/messages`.

use serde_json::{Value, json};

use crate::server::Shared;
use crate::user;

/// Carries out one call; the answer is JSON.
pub(crate) fn run(shared: &Shared, action: &str, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let user = body["user"].as_i64().unwrap_or_default();
    let (text, message_id) = (body["text"].as_str().unwrap_or_default(), body["message_id"].as_i64());
    let answer = match action {
        "type" => {
            let reply_to = body["reply_to"].as_i64();
            json!({"message_id": shared.change(|world| user::type_text(world, user, user, text, reply_to))})
        }
        "press" => {
            let label = body["label"].as_str().unwrap_or_default();
            let id = shared.change(|world| user::press(world, user, message_id.unwrap_or_default(), label));
            json!({"callback_query_id": id})
        }
        "messages" => shared.read(|world| {
            let messages = world.messages(user);
            let shown = messages.iter().map(|message| {
                let mut shown = world.message_json(user, message);
                shown["reaction"] = json!(message.reaction);
                shown
            });
            Value::Array(shown.collect())
        }),
        _ => {
            json!({"error": "there are type {user, text, reply_to?}, press {user, message_id, label} and messages {user}"})
        }
    };
    answer.to_string()
}
