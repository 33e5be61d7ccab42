//! editMessageText and editMessageReplyMarkup.

use serde_json::Value;

use crate::answer::{Answer, Outcome};
use crate::parameters::Parameters;
use crate::world::{Message, World};
use crate::{Standin, keyboard, text};

pub(super) fn text(world: &mut World, parameters: &Parameters) -> Outcome {
    let entities = parameters.json("entities")?;
    let text = text::check(parameters.text("text"), entities.as_ref())?;
    let reply_markup = keyboard::check(parameters.json("reply_markup")?)?;
    let entities: Vec<Value> = entities.and_then(|list| list.as_array().cloned()).unwrap_or_default();
    change(world, parameters, |message| Message { text, entities, reply_markup, ..message })
}

pub(super) fn markup(world: &mut World, parameters: &Parameters) -> Outcome {
    let reply_markup = keyboard::check(parameters.json("reply_markup")?)?;
    change(world, parameters, |message| Message { reply_markup, ..message })
}

/// Applies an edit. An edit that changes nothing is refused, as is one of a message that is not the bot's.
fn change(world: &mut World, parameters: &Parameters, edit: impl FnOnce(Message) -> Message) -> Outcome {
    let chat_id = parameters.chat_id()?;
    let id = parameters.integer("message_id").unwrap_or_default();
    let chat = super::writable(world, chat_id)?;
    let old = chat.messages.get(&id).ok_or_else(|| Answer::bad_request("message to edit not found"))?.clone();
    if old.from != Standin::BOT_ID {
        return Err(Answer::bad_request("message can't be edited"));
    }
    let new = edit(old.clone());
    if (&new.text, &new.entities, &new.reply_markup) == (&old.text, &old.entities, &old.reply_markup) {
        return Err(Answer::bad_request(
            "message is not modified: specified new message content and reply markup are exactly the same as a \
             current content and reply markup of the message",
        ));
    }
    let new = Message { edits: old.edits + 1, ..new };
    chat.messages.insert(id, new.clone());
    Ok(world.message_json(chat_id, &new))
}
