use serde_json::json;

use super::argument::words_of;
use super::arguments::word;
use super::send::{message, message_argument, preview};
use super::{Argument, ToolArguments};
use crate::{Event, Severity, ValidationError};

const NEXT_TURN: &str = "next_turn";
const POINTS: [(&str, &str); 3] = [(NEXT_TURN, NEXT_TURN), ("after_tool", "after_tool"), ("turn_end", "turn_end")];

/// The arguments of `notify_self`: a note that an agent sends to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySelf {
    /// At most 500 characters, cleaned.
    pub message: String,
    /// The injection point at which the agent wants to read it; one of [`Self::POINTS`].
    pub deliver_at: &'static str,
}

impl NotifySelf {
    /// The type of a note's event.
    pub const EVENT_TYPE: &str = "agent.self.notify";
    /// The values of `deliver_at`.
    pub const POINTS: &[&str] = &words_of(&POINTS);
    /// The tool's arguments.
    pub const ARGUMENTS: &[Argument] = &[
        message_argument("What you want to be told, in 1 to 500 characters."),
        Argument::word("deliver_at", Self::POINTS, "When you want to read it.").or_word(NEXT_TURN),
    ];

    /// Checks the arguments: message, then deliver_at.
    pub fn parse(arguments: &ToolArguments) -> Result<Self, String> {
        arguments.refuse_others(Self::ARGUMENTS)?;
        let message = message(arguments)?;
        let deliver_at =
            arguments.text("deliver_at")?.map_or(Ok(NEXT_TURN), |text| word("deliver_at", text, &POINTS))?;
        Ok(Self { message, deliver_at })
    }

    /// The start of the message, for the tool's result.
    pub fn preview(&self) -> String {
        preview(&self.message)
    }

    /// The event to publish. The injection with the call id of the `notify_self` call does not take it, so that the note
    /// does not come back in the call's own result.
    pub fn into_event(self, call_id: &str) -> Result<Event, ValidationError> {
        let payload = json!({ "message": self.message, "deliver_at": self.deliver_at, "call_id": call_id });
        Event::new(Self::EVENT_TYPE, "agent", Severity::Info, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_delivered_at_the_next_turn_by_default() {
        let parse = |value| NotifySelf::parse(&ToolArguments::parse(value)?);
        let note = parse(json!({"message": "check the logs"})).map(|note| note.deliver_at);
        assert_eq!(note, Ok("next_turn"));
        assert!(
            parse(json!({"message": "x", "deliver_at": "now"})).is_err_and(|refused| refused.contains("next_turn"))
        );
        assert!(parse(json!({"message": "x"})).is_ok_and(|note| note.into_event("call_1").is_ok()));
    }
}
