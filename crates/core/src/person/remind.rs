use super::send::{message, message_argument, preview};
use super::{Argument, ToolArguments};
use crate::Time;

/// The latest reminder: a year and a day ahead.
const AHEAD_MAX_MINUTES: i64 = 366 * 24 * 60;
const MINUTE_MS: u64 = 60_000;

/// The arguments of `remind`: a message that the person gets later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remind {
    /// At most 500 characters, cleaned.
    pub message: String,
    /// When it is sent.
    pub at: Time,
}

impl Remind {
    /// The tool's arguments. A call has exactly one of `at` and `in_minutes`.
    pub const ARGUMENTS: &[Argument] = &[
        message_argument("What to remind of, 1 to 500 characters."),
        Argument::moment("at", "When, at most a year ahead."),
        Argument::integer("in_minutes", 1, AHEAD_MAX_MINUTES, "In how many minutes."),
    ];

    /// Checks the arguments: message, then exactly one of `at` and `in_minutes`.
    pub fn parse(arguments: &ToolArguments, now: Time) -> Result<Self, String> {
        let message = message(arguments)?;
        let at = match (arguments.text("at")?, arguments.integer("in_minutes")?) {
            (Some(at), None) => at
                .trim()
                .parse::<Time>()
                .map_err(|error| format!("at must be a time such as 2026-01-03T15:30:00Z: {error}"))?,
            (None, Some(minutes @ 1..=AHEAD_MAX_MINUTES)) => now.plus(minutes.unsigned_abs() * MINUTE_MS),
            (None, Some(minutes)) => {
                return Err(format!("in_minutes must be between 1 and {AHEAD_MAX_MINUTES}, not {minutes}"));
            }
            _ => return Err("Give exactly one of at (a time) and in_minutes (a number)".to_owned()),
        };
        let latest = now.plus(AHEAD_MAX_MINUTES.unsigned_abs() * MINUTE_MS);
        if at <= now || at > latest {
            return Err(format!("at must lie between now ({now}) and {latest}, not {at}"));
        }
        arguments.refuse_others(Self::ARGUMENTS)?;
        Ok(Self { message, at })
    }

    /// The start of the message, for the tool's result.
    pub fn preview(&self) -> String {
        preview(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parse(change: Value) -> Result<Time, String> {
        let mut arguments = json!({"message": "Call Ada"});
        for (key, value) in change.as_object().into_iter().flatten() {
            arguments[key] = value.clone();
        }
        let now: Time = "2026-01-03T15:30:00Z".parse().map_err(|_| String::new())?;
        Remind::parse(&ToolArguments::parse(arguments)?, now).map(|remind| remind.at)
    }

    #[test]
    fn exactly_one_time_in_the_future_is_required() {
        let expected: Result<Time, _> = "2026-01-03T16:00:00Z".parse();
        assert_eq!(parse(json!({"in_minutes": "30"})).ok(), expected.clone().ok());
        assert_eq!(parse(json!({"at": "2026-01-03T17:00:00+01:00"})).ok(), expected.ok());
        for wrong in [
            json!({}),
            json!({"in_minutes": 1, "at": "2026-01-03T16:00:00Z"}),
            json!({"in_minutes": 0}),
            json!({"in_minutes": 10_000_000}),
            json!({"at": "2026-01-03T15:30:00Z"}),
            json!({"at": "2030-01-03T15:30:00Z"}),
            json!({"at": "tomorrow"}),
            json!({"at": "2026-01-03T16:00:00Z", "colour": "red"}),
        ] {
            assert!(parse(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
