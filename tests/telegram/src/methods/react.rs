//! setMessageReaction.

use serde_json::Value;

use crate::answer::{Answer, Outcome};
use crate::parameters::Parameters;
use crate::world::World;

/// The emoji that a bot may react with, without variation selectors.
pub const ALLOWED_REACTIONS: [&str; 73] = [
    "❤",
    "👍",
    "👎",
    "🔥",
    "🥰",
    "👏",
    "😁",
    "🤔",
    "🤯",
    "😱",
    "🤬",
    "😢",
    "🎉",
    "🤩",
    "🤮",
    "💩",
    "🙏",
    "👌",
    "🕊",
    "🤡",
    "🥱",
    "🥴",
    "😍",
    "🐳",
    "❤\u{200d}🔥",
    "🌚",
    "🌭",
    "💯",
    "🤣",
    "⚡",
    "🍌",
    "🏆",
    "💔",
    "🤨",
    "😐",
    "🍓",
    "🍾",
    "💋",
    "🖕",
    "😈",
    "😴",
    "😭",
    "🤓",
    "👻",
    "👨\u{200d}💻",
    "👀",
    "🎃",
    "🙈",
    "😇",
    "😨",
    "🤝",
    "✍",
    "🤗",
    "🫡",
    "🎅",
    "🎄",
    "☃",
    "💅",
    "🤪",
    "🗿",
    "🆒",
    "💘",
    "🙉",
    "🦄",
    "😘",
    "💊",
    "🙊",
    "😎",
    "👾",
    "🤷\u{200d}♂",
    "🤷",
    "🤷\u{200d}♀",
    "😡",
];

pub(super) fn run(world: &mut World, parameters: &Parameters) -> Outcome {
    let chat = parameters.chat_id()?;
    let id = parameters.integer("message_id").unwrap_or_default();
    let reactions = parameters.json("reaction")?.unwrap_or(Value::Array(Vec::new()));
    let reactions = reactions.as_array().ok_or_else(|| Answer::bad_request("expected an Array of ReactionType"))?;
    let message = super::writable(world, chat)?.messages.get_mut(&id);
    let message = message.ok_or_else(|| Answer::bad_request("message to react not found"))?;
    message.reaction = match reactions.as_slice() {
        [] => None,
        [one] => Some(emoji(one)?),
        // Bots, unlike premium users, may set one.
        _ => return Err(Answer::bad_request("REACTIONS_TOO_MANY")),
    };
    Ok(Value::Bool(true))
}

fn emoji(reaction: &Value) -> Result<String, Answer> {
    let emoji = reaction["emoji"].as_str().filter(|_| reaction["type"] == "emoji").unwrap_or_default();
    let allowed = ALLOWED_REACTIONS.contains(&emoji).then(|| emoji.to_owned());
    allowed.ok_or_else(|| Answer::bad_request("REACTION_INVALID"))
}
