//! What users do, as calls for other processes and for trying it by hand:
//!
//! - `POST /standin/type {user, text, reply_to?}` and `POST /standin/press {user, message_id, label}` answer when the bot
//!   has read it, or after five seconds;
//! - `POST /standin/chat {user, at_least?}` prints the chat, one line per message, once it has that many.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Shared;
use crate::world::{Message, World};
use crate::{Standin, user};

/// How long a call waits for the bot.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Carries out one call; the answer is a text.
pub(crate) async fn run(shared: &Shared, action: &str, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let user = body["user"].as_i64().unwrap_or_default();
    let message_id = body["message_id"].as_i64().unwrap_or_default();
    match action {
        "type" => {
            let (text, reply_to) = (body["text"].as_str().unwrap_or_default(), body["reply_to"].as_i64());
            let id = shared.change(|world| user::type_text(world, user, user, text, reply_to));
            wait(shared, |world| world.updates.is_empty()).await;
            json!({"message_id": id}).to_string()
        }
        "press" => {
            let label = body["label"].as_str().unwrap_or_default();
            let id = shared.change(|world| user::press(world, user, message_id, label));
            wait(shared, |world| world.updates.is_empty()).await;
            json!({"callback_query_id": id}).to_string()
        }
        "chat" => {
            let at_least = body["at_least"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
            wait(shared, |world| world.messages(user).len() >= at_least).await;
            shared.read(|world| world.messages(user).iter().map(line).collect())
        }
        _ => "there are type {user, text, reply_to?}, press {user, message_id, label} and chat {user, at_least?}\n"
            .into(),
    }
}

async fn wait(shared: &Shared, is_so: impl Fn(&World) -> bool) {
    let mut changes = shared.changes();
    let waiting = async {
        while !shared.read(&is_so) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    // The caller sees that it did not happen.
    let _ = tokio::time::timeout(WAIT_MAX, waiting).await;
}

/// A message as one line: its id, who wrote it, the text, what it answers, its buttons and its reaction.
fn line(message: &Message) -> String {
    let who = if message.from == Standin::BOT_ID { "bot" } else { "user" };
    let text: Vec<&str> = message.text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut line = format!("{} {who}: {}", message.message_id, text.join(" / "));
    if let Some(answered) = message.reply_to {
        line.push_str(&format!(" (answers {answered})"));
    }
    for button in message.buttons() {
        line.push_str(&format!(" [{button}]"));
    }
    if let Some(reaction) = &message.reaction {
        line.push_str(&format!(" ({reaction})"));
    }
    line + "\n"
}
