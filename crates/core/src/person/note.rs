use serde_json::json;

use super::Arguments;
use super::arguments::word;
use super::send::{message, preview};
use crate::{Event, Invalid, Severity};

/// A note an agent leaves itself: `notify_self`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySelf {
    /// What it says.
    pub message: String,
    /// When it wants to read it.
    pub deliver_at: &'static str,
}

impl NotifySelf {
    /// Checks the arguments: message, then deliver_at.
    pub fn parse(arguments: &Arguments) -> Result<Self, String> {
        const POINTS: [(&str, &str); 3] =
            [("next_turn", "next_turn"), ("after_tool", "after_tool"), ("turn_end", "turn_end")];
        let message = message(arguments)?;
        let deliver_at =
            arguments.text("deliver_at")?.map_or(Ok("next_turn"), |text| word("deliver_at", text, &POINTS))?;
        arguments.refuse_others(&["message", "deliver_at"])?;
        Ok(Self { message, deliver_at })
    }

    /// The beginning of the message, for a result.
    pub fn preview(&self) -> String {
        preview(&self.message)
    }

    /// The event it becomes.
    pub fn into_event(self) -> Result<Event, Invalid> {
        let payload = json!({ "message": self.message, "deliver_at": self.deliver_at });
        Event::new("agent.self.notify", "agent", Severity::Info, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_at_the_next_turn_unless_it_says_otherwise() {
        let parse = |value| NotifySelf::parse(&Arguments::parse(value)?);
        let note = parse(json!({"message": "check the logs"})).map(|note| note.deliver_at);
        assert_eq!(note, Ok("next_turn"));
        assert!(
            parse(json!({"message": "x", "deliver_at": "now"})).is_err_and(|refused| refused.contains("next_turn"))
        );
        assert!(parse(json!({"message": "x"})).is_ok_and(|note| note.into_event().is_ok()));
    }
}
