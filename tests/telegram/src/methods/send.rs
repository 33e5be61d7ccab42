//! sendMessage.

use std::time::Instant;

use serde_json::Value;

use crate::answer::{Answer, Outcome};
use crate::parameters::{Parameters, integer};
use crate::world::{Message, World};
use crate::{Standin, keyboard, text};

pub(super) fn run(world: &mut World, parameters: &Parameters) -> Outcome {
    let chat = parameters.chat_id()?;
    let entities = parameters.json("entities")?;
    let text = text::check(parameters.text("text"), entities.as_ref())?;
    let reply_markup = keyboard::check(parameters.json("reply_markup")?)?;
    super::writable(world, chat)?;
    let reply_to = replied_to(world, chat, parameters)?;
    pace(world, chat)?;
    let entities = entities.and_then(|list| list.as_array().cloned()).unwrap_or_default();
    let message = Message { from: Standin::BOT_ID, text, entities, reply_to, reply_markup, ..Message::default() };
    let message = world.add_message(chat, message);
    Ok(world.message_json(chat, &message))
}

/// The message that is answered. One that does not exist refuses the call, unless the caller allows it to be missing.
fn replied_to(world: &World, chat: i64, parameters: &Parameters) -> Result<Option<i64>, Answer> {
    let Some(reply) = parameters.json("reply_parameters")? else { return Ok(None) };
    let Some(id) = reply.get("message_id").and_then(integer) else {
        return Err(Answer::bad_request("can't parse reply parameters: can't find field \"message_id\""));
    };
    let other_chat = reply.get("chat_id").and_then(integer).is_some_and(|other| other != chat);
    let known = !other_chat && world.chats.get(&chat).is_some_and(|chat| chat.messages.contains_key(&id));
    match known {
        true => Ok(Some(id)),
        false if reply.get("allow_sending_without_reply") == Some(&Value::Bool(true)) => Ok(None),
        false => Err(Answer::bad_request("message to be replied not found")),
    }
}

/// Refuses a message that comes too soon after the last one of its chat.
fn pace(world: &mut World, chat: i64) -> Result<(), Answer> {
    let (interval, now) = (world.chat_interval, Instant::now());
    let Some(chat) = world.chats.get_mut(&chat) else { return Ok(()) };
    if chat.last_sent.is_some_and(|last| now.duration_since(last) < interval) {
        return Err(Answer::too_many_requests(interval.as_secs().max(1)));
    }
    chat.last_sent = Some(now);
    Ok(())
}
