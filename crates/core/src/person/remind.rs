use super::send::{message, message_argument, preview};
use super::{Argument, ToolArguments};
use crate::Time;

const AHEAD_MAX_MINUTES: i64 = Remind::AHEAD_MAX_MINUTES as i64;
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
    /// The latest reminder, in minutes from now: a year and a day.
    pub const AHEAD_MAX_MINUTES: u64 = 366 * 24 * 60;

    /// The tool's arguments. A call has exactly one of `at` and `in_minutes`.
    pub const ARGUMENTS: &[Argument] = &[
        message_argument("What to remind of, 1 to 500 characters."),
        Argument::moment("at", "When, at most a year ahead."),
        Argument::integer("in_minutes", 1, AHEAD_MAX_MINUTES, "In how many minutes."),
    ];

    /// Checks the arguments: unknown ones, message, then exactly one of `at` and `in_minutes`.
    pub fn parse(arguments: &ToolArguments, now: Time) -> Result<Self, String> {
        arguments.refuse_others(Self::ARGUMENTS)?;
        let message = message(arguments)?;
        let at = match (arguments.text("at")?, arguments.integer("in_minutes")?) {
            (Some(at), None) => at.trim().parse::<Time>().map_err(|error| format!("at: {error}"))?,
            (None, Some(minutes @ 1..=AHEAD_MAX_MINUTES)) => now.plus(minutes.unsigned_abs() * MINUTE_MS),
            (None, Some(minutes)) => {
                return Err(format!("in_minutes must be between 1 and {AHEAD_MAX_MINUTES}, not {minutes}"));
            }
            _ => return Err("Give exactly one of at (a time) and in_minutes (a number)".to_owned()),
        };
        Self::check_time(at, now).map_err(|problem| format!("at {problem}"))?;
        Ok(Self { message, at })
    }

    /// Checks that a reminder may be set for this time. The error follows the name of the field.
    pub fn check_time(at: Time, now: Time) -> Result<(), String> {
        let latest = now.plus(Self::AHEAD_MAX_MINUTES * MINUTE_MS);
        match at > now && at <= latest {
            true => Ok(()),
            false => Err(format!("must lie between now ({now}) and {latest}, not {at}")),
        }
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
