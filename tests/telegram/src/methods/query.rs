//! answerCallbackQuery.

use serde_json::Value;

use crate::answer::{Answer, Outcome};
use crate::parameters::Parameters;
use crate::world::World;

/// The longest answer that a client shows, in characters.
const TEXT_MAX: usize = 200;

/// A query is answered once; later, and for ids that do not exist, Telegram calls it too old.
pub(super) fn answer(world: &mut World, parameters: &Parameters) -> Outcome {
    if parameters.text("text").is_some_and(|text| text.chars().count() > TEXT_MAX) {
        return Err(Answer::bad_request("MESSAGE_TOO_LONG"));
    }
    let id = parameters.text("callback_query_id").unwrap_or_default();
    match world.queries.remove(id) {
        Some(_) => Ok(Value::Bool(true)),
        None => Err(Answer::bad_request("query is too old and response timeout expired or query ID is invalid")),
    }
}
