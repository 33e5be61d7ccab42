//! The methods of the API. Names are matched without regard to case, and unknown parameters are ignored, as Telegram does.

mod edit;
mod query;
mod react;
mod send;
pub(crate) mod updates;
mod webhook_settings;

pub use react::ALLOWED_REACTIONS;

use serde_json::Value;

use crate::answer::{Answer, Outcome};
use crate::parameters::Parameters;
use crate::world::{Chat, World, user_json};

/// Carries out one call. `getUpdates` may wait and is not here.
pub(crate) fn run(world: &mut World, method: &str, parameters: &Parameters) -> Outcome {
    match method {
        "getme" => Ok(me()),
        "sendmessage" => send::run(world, parameters),
        "editmessagetext" => edit::text(world, parameters),
        "editmessagereplymarkup" => edit::markup(world, parameters),
        "setmessagereaction" => react::run(world, parameters),
        "answercallbackquery" => query::answer(world, parameters),
        "setwebhook" => webhook_settings::set(world, parameters),
        "deletewebhook" => webhook_settings::delete(world, parameters),
        "getwebhookinfo" => Ok(webhook_settings::info(world)),
        _ => Err(Answer::error(404, "Not Found: method not found")),
    }
}

fn me() -> Value {
    let mut me = user_json(crate::Standin::BOT_ID);
    me["can_join_groups"] = true.into();
    me["can_read_all_group_messages"] = false.into();
    me["supports_inline_queries"] = false.into();
    me
}

/// A chat that the bot may write to. A bot cannot write first: the chat exists once its user has written.
fn writable(world: &mut World, chat: i64) -> Result<&mut Chat, Answer> {
    match world.chats.get_mut(&chat) {
        None => Err(Answer::bad_request("chat not found")),
        Some(chat) if chat.blocked => Err(Answer::error(403, "Forbidden: bot was blocked by the user")),
        Some(chat) => Ok(chat),
    }
}
