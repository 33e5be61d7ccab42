//! The event types that Bellwire knows, with the payload fields that its bundled templates and detectors read.
//!
//! This table is the one source of docs/events.md, of `bellwire subscribers show`, and of the sample events on which
//! templates are tried. Other types are welcome: the set of types is open.

use serde_json::{Map, Value};

use super::{Event, Payload, Severity};
use crate::notify::RequestContext;

/// An event type that Bellwire knows.
#[derive(Debug)]
pub struct KnownType {
    /// The type.
    pub name: &'static str,
    /// What has happened, and who publishes it.
    pub meaning: &'static str,
    /// The source of the sample event.
    pub source: &'static str,
    /// The severity of the sample event.
    pub severity: Severity,
    /// The payload fields; others are allowed, and no bundled template shows them.
    pub fields: &'static [PayloadField],
}

/// A payload field of a known type.
#[derive(Debug, PartialEq)]
pub struct PayloadField {
    /// The key in the payload.
    pub name: &'static str,
    /// What the value is.
    pub meaning: &'static str,
    /// A value, as JSON.
    pub example: &'static str,
    /// Whether the bundled template shows it.
    pub shown: Shown,
}

/// When a bundled template shows a field.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// If it is there, as it usually is.
    Yes,
    /// If it is there, which is rare: samples do not have it.
    IfPresent,
    /// If none of these fields is there.
    Without(&'static [&'static str]),
    /// If it is there, instead of these fields.
    Instead(&'static [&'static str]),
    /// In an item of several events only.
    InBatch,
    /// Never: it has another use, or none.
    No,
}

impl Shown {
    /// The condition in words.
    pub fn describe(self) -> String {
        let list = |names: &[&str], last: &str| match names {
            [one] => (*one).to_owned(),
            [first, second] => format!("{first} {last} {second}"),
            names => names.join(", "),
        };
        match self {
            Self::Yes => "yes".to_owned(),
            Self::IfPresent => "if there is one".to_owned(),
            Self::Without(others) => format!("if there is no {}", list(others, "and no")),
            Self::Instead(others) => format!("instead of {}", list(others, "and")),
            Self::InBatch => "if several come together".to_owned(),
            Self::No => "no".to_owned(),
        }
    }
}

impl KnownType {
    /// The known type with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        KNOWN_TYPES.iter().find(|one| one.name == name)
    }

    /// A made-up event of this type with the fields that an event usually has. Samples with different numbers differ.
    pub fn sample(&self, number: usize) -> Event {
        self.event_with(self.fields.iter().filter(|field| field.is_usual()), number)
    }

    fn event_with<'a>(&self, fields: impl Iterator<Item = &'a PayloadField>, number: usize) -> Event {
        let payload: Map<String, Value> =
            fields.map(|field| (field.name.to_owned(), numbered(field.value(), number))).collect();
        if let (Self { name: "user.message", .. }, Some(text)) = (self, payload.get("text").and_then(Value::as_str)) {
            let context = payload.get("request_context").and_then(|context| RequestContext::parse(context).ok());
            let message = match context {
                Some(context) => Event::user_message_in(text, &context),
                None => Event::user_message(text),
            };
            return message.expect("the example is a message");
        }
        Event::internal(self.name, self.source, self.severity, Payload::known(payload))
    }
}

impl PayloadField {
    /// Whether an event of the type usually has it.
    fn is_usual(&self) -> bool {
        !matches!(self.shown, Shown::IfPresent | Shown::Without(_) | Shown::Instead(_))
    }

    /// The example as a JSON value.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.example).expect("examples are JSON")
    }
}

/// Texts of further samples end in their number.
fn numbered(value: Value, number: usize) -> Value {
    match value {
        Value::String(text) if number > 1 => Value::String(format!("{text} {number}")),
        value => value,
    }
}

const fn field(name: &'static str, meaning: &'static str, example: &'static str, shown: Shown) -> PayloadField {
    PayloadField { name, meaning, example, shown }
}

const TOOL_NAME: &str = "the tool";
const USAGE: PayloadField = field(
    "usage",
    "used amounts and limits of budgets, for the budget detector",
    r#"{"tokens_used": 41000, "token_limit": 50000}"#,
    Shown::No,
);
const ARGUMENTS: PayloadField =
    field("arguments", "the arguments of the call, for the loop detector", r#"{"query": "release 2"}"#, Shown::No);
const CALL: [PayloadField; 3] = [field("tool_name", TOOL_NAME, r#""vault_search""#, Shown::No), ARGUMENTS, USAGE];
const SEEN: PayloadField = field(
    crate::Event::SEEN_FIELD,
    "whether the agent has read the result itself: then `tool_failure` and `turn_summary` skip it",
    "false",
    Shown::No,
);
const SUCCESS: [PayloadField; 5] = [
    field("tool_name", TOOL_NAME, r#""vault_search""#, Shown::No),
    field("duration_ms", "how long the call took", "812", Shown::No),
    ARGUMENTS,
    USAGE,
    SEEN,
];
const FAILURE: [PayloadField; 8] = [
    field("tool_name", TOOL_NAME, r#""vault_search""#, Shown::Yes),
    field("error_type", "the kind of error, in one word", r#""HTTPError""#, Shown::Yes),
    field("error_message", "what went wrong", r#""502 from the search service""#, Shown::Yes),
    field("timeout_ms", "after how long the call was given up", "5000", Shown::Without(&["error_message"])),
    field("duration_ms", "how long the call took", "812", Shown::No),
    ARGUMENTS,
    USAGE,
    SEEN,
];
const BUDGET_WARNING: [PayloadField; 5] = [
    field("percentage", "how much of the budget is used", "84", Shown::Yes),
    field("current", "the used amount", "42000", Shown::Yes),
    field("limit", "the budget", "50000", Shown::Yes),
    field("remaining", "the amount that is left", "8000", Shown::InBatch),
    field("budget_type", "which budget: token, iteration or timeout", r#""token""#, Shown::InBatch),
];
const BUDGET_EXCEEDED: [PayloadField; 3] = [
    field("current", "the used amount", "50210", Shown::Yes),
    field("limit", "the budget", "50000", Shown::Yes),
    field("message", "a text of your own", r#""the day's budget is used up""#, Shown::Instead(&["current", "limit"])),
];
const TURN: [PayloadField; 1] = [USAGE];
const NOTE: [PayloadField; 2] = [
    field("message", "the note, shown whole", r#""re-run the tests before summing up""#, Shown::Yes),
    field("deliver_at", "at which point to show it: next_turn, after_tool or turn_end", r#""next_turn""#, Shown::No),
];
const NAME: PayloadField = field("name", "what it is called", r#""build 17""#, Shown::Yes);
const TASK_ID: PayloadField =
    field("task_id", "its id, by which repeats are found", r#""task-9f2""#, Shown::Without(&["name"]));
const COMPLETE: [PayloadField; 4] = [
    NAME,
    TASK_ID,
    field("result_summary", "the result, in a sentence", r#""all 80 tests passed""#, Shown::Yes),
    field("message", "a text of your own", r#""done without warnings""#, Shown::Without(&["result_summary"])),
];
const SUBAGENT_FAILED: [PayloadField; 4] = [
    NAME,
    TASK_ID,
    field("error_message", "what went wrong", r#""3 of 80 tests failed""#, Shown::Yes),
    field("message", "a text of your own", r#""stopped early""#, Shown::Without(&["error_message"])),
];
const TASK_FAILED: [PayloadField; 5] = [
    NAME,
    TASK_ID,
    field("error_message", "what went wrong", r#""3 of 80 tests failed""#, Shown::Yes),
    field("message", "a text of your own", r#""stopped early""#, Shown::Without(&["error_message"])),
    field(
        "result_summary",
        "the result, in a sentence",
        r#""77 tests passed""#,
        Shown::Without(&["error_message", "message"]),
    ),
];

/// Every known type, in the order of the documentation.
pub const KNOWN_TYPES: &[KnownType] = &[
    KnownType {
        name: "tool.call.pending",
        meaning: "a tool call begins. No bundled subscriber listens for it",
        source: "tool_executor",
        severity: Severity::Debug,
        fields: &CALL,
    },
    KnownType {
        name: "tool.call.success",
        meaning: "a tool call ended well; `observed` of an injection publishes it",
        source: "tool_executor",
        severity: Severity::Info,
        fields: &SUCCESS,
    },
    KnownType {
        name: "tool.call.failure",
        meaning: "a tool call failed; `observed` of an injection publishes it",
        source: "tool_executor",
        severity: Severity::Error,
        fields: &FAILURE,
    },
    KnownType {
        name: "tool.call.timeout",
        meaning: "a tool call got no answer in time; `observed` of an injection publishes it",
        source: "tool_executor",
        severity: Severity::Warning,
        fields: &FAILURE,
    },
    KnownType {
        name: "tool.batch.complete",
        meaning: "several tool calls have ended",
        source: "tool_executor",
        severity: Severity::Info,
        fields: &[
            field("tool_count", "how many calls there were", "12", Shown::No),
            field("success_count", "how many ended well", "9", Shown::No),
            field("failure_count", "how many failed", "3", Shown::No),
        ],
    },
    KnownType {
        name: "budget.token.warning",
        meaning: "a token budget runs low; the budget detector publishes it",
        source: "budget_monitor",
        severity: Severity::Warning,
        fields: &BUDGET_WARNING,
    },
    KnownType {
        name: "budget.token.exceeded",
        meaning: "a token budget is used up; the budget detector publishes it",
        source: "budget_monitor",
        severity: Severity::Critical,
        fields: &BUDGET_EXCEEDED,
    },
    KnownType {
        name: "budget.iteration.warning",
        meaning: "a budget of model calls runs low; the budget detector publishes it",
        source: "budget_monitor",
        severity: Severity::Warning,
        fields: &BUDGET_WARNING,
    },
    KnownType {
        name: "budget.iteration.exceeded",
        meaning: "a budget of model calls is used up; the budget detector publishes it",
        source: "budget_monitor",
        severity: Severity::Critical,
        fields: &BUDGET_EXCEEDED,
    },
    KnownType {
        name: "budget.timeout.warning",
        meaning: "a time budget runs low, in milliseconds; the budget detector publishes it",
        source: "budget_monitor",
        severity: Severity::Warning,
        fields: &BUDGET_WARNING,
    },
    KnownType {
        name: "context.limit.warning",
        meaning: "the context window fills up; the budget detector publishes it",
        source: "budget_monitor",
        severity: Severity::Warning,
        fields: &[
            field("percentage", "how much of the context is used", "72", Shown::Yes),
            field("remaining", "the tokens that are left", "56000", Shown::Yes),
            field("current", "the used tokens", "144000", Shown::No),
            field("limit", "the size of the context", "200000", Shown::No),
        ],
    },
    KnownType {
        name: "agent.turn.start",
        meaning: "the agent works from now on. No bundled subscriber listens for it",
        source: "harness",
        severity: Severity::Info,
        fields: &TURN,
    },
    KnownType {
        name: "agent.turn.end",
        meaning: "the agent is idle from now on. No bundled subscriber listens for it",
        source: "harness",
        severity: Severity::Info,
        fields: &TURN,
    },
    KnownType {
        name: "agent.loop.detected",
        meaning: "the agent repeats the same calls; the loop detector publishes it",
        source: "loop_detector",
        severity: Severity::Critical,
        fields: &[
            field("pattern", "the tools of one round", r#""search → parse""#, Shown::Yes),
            field("repetitions", "how many rounds there were", "3", Shown::Yes),
            field("window_seconds", "within how many seconds", "47", Shown::Yes),
        ],
    },
    KnownType {
        name: "agent.self.notify",
        meaning: "a note of the agent to itself; the tool `notify_self` publishes it",
        source: "agent",
        severity: Severity::Info,
        fields: &NOTE,
    },
    KnownType {
        name: "agent.self.remind",
        meaning: "a reminder that the agent set itself",
        source: "agent",
        severity: Severity::Info,
        fields: &NOTE,
    },
    KnownType {
        name: "agent.input.needed",
        meaning: "an agent waits for its person. The person is told, not the agent",
        source: "butler",
        severity: Severity::Warning,
        fields: &[
            field("message", "what the agent asks", r#""May I delete the old backups?""#, Shown::Yes),
            field("text", "the same, in other clients", r#""Shall I go on?""#, Shown::Without(&["message"])),
            field(
                "question",
                "the same, in other clients",
                r#""Which of the two?""#,
                Shown::Without(&["message", "text"]),
            ),
        ],
    },
    KnownType {
        name: "subagent.complete",
        meaning: "a sub-agent has ended its task",
        source: "scout-1",
        severity: Severity::Info,
        fields: &COMPLETE,
    },
    KnownType {
        name: "subagent.failed",
        meaning: "a sub-agent has failed",
        source: "scout-1",
        severity: Severity::Error,
        fields: &SUBAGENT_FAILED,
    },
    KnownType {
        name: "cli.event",
        meaning: "something that a command line tool reports",
        source: "cli",
        severity: Severity::Info,
        fields: &[field("event_name", "what happened", r#""deploy""#, Shown::No)],
    },
    KnownType {
        name: "source.file.changed",
        meaning: "a file changed outside the conversation",
        source: "file_watcher",
        severity: Severity::Info,
        fields: &[
            field("path", "the file", r#""src/main.rs""#, Shown::Yes),
            field("message", "a text of your own", r#""the whole folder""#, Shown::Without(&["path"])),
        ],
    },
    KnownType {
        name: "task.background.complete",
        meaning: "a background task has ended",
        source: "ci",
        severity: Severity::Info,
        fields: &COMPLETE,
    },
    KnownType {
        name: "task.background.failed",
        meaning: "a background task has failed",
        source: "ci",
        severity: Severity::Error,
        fields: &TASK_FAILED,
    },
    KnownType {
        name: "session.resumed",
        meaning: "an earlier session goes on",
        source: "harness",
        severity: Severity::Info,
        fields: &[
            field("exchanges", "how many exchanges there were before", "14", Shown::Yes),
            field("last_question", "what the person asked last", r#""where were we?""#, Shown::Yes),
        ],
    },
    KnownType {
        name: "task.checkpoint",
        meaning: "the agent reached a step of its task",
        source: "planner",
        severity: Severity::Info,
        fields: &[
            field("message", "what is done", r#""the tests pass""#, Shown::Yes),
            field("turn", "the number of the turn", "7", Shown::Yes),
        ],
    },
    KnownType {
        name: "delivery.failed",
        meaning: "a message to a person could not be delivered; the hub publishes it",
        source: super::HUB,
        severity: Severity::Warning,
        fields: &[
            field("channel", "the way out of the hub", r#""email""#, Shown::Yes),
            field("notification", "the first characters of the message", r#""Tonight's backup""#, Shown::Yes),
            field("error_message", "what went wrong", r#""550 no such mailbox""#, Shown::Yes),
            field("error_class", "refused or unknown_outcome", r#""refused""#, Shown::InBatch),
            field("message", "a text of your own", r#""try the phone""#, Shown::Without(&["error_message"])),
            field(
                "notification_id",
                "the notification in the inbox",
                r#""019b8478-5d80-7101-9c00-0ba09d39c683""#,
                Shown::No,
            ),
        ],
    },
    KnownType {
        name: "user.message",
        meaning: "the person says something to a working agent; only the messages and actions calls publish it",
        source: super::PERSON,
        severity: Severity::Info,
        fields: &[
            field("text", "the message, shown whole", r#""what about this other approach?""#, Shown::Yes),
            field(
                "request_context",
                "for a message that came by a channel such as Telegram: what `notify` needs to reply or react",
                r#"{"request_id":"018f2f6e-4c9a-7b61-9a53-0d0c3a3a7c11","source_channel":"telegram","source_endpoint_identity":"telegram:42","source_sender_identity":"1815","source_thread_identity":"1815:7","received_at":"2026-05-03T09:30:00Z"}"#,
                Shown::IfPresent,
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::EventType;
    use crate::render::Boundary;
    use crate::subscriber::{Audience, Subscriber, Subscribers};

    /// The text that the bundled subscriber of the type makes of these fields of so many events.
    fn shown(known: &KnownType, subscriber: &Subscriber, fields: &[&PayloadField], events: usize) -> String {
        let event = |number| Arc::new(known.event_with(fields.iter().copied(), number));
        let events: Vec<_> = (1..=events).map(event).collect();
        match subscriber.output.audience {
            Audience::User => subscriber.dry_run_for_person(&events),
            _ => subscriber.dry_run(&events, &Boundary::from_seed(1)).map(|document| document.to_toon()),
        }
        .unwrap_or_else(|error| panic!("{}: {error}", known.name))
    }

    /// Whether the text shows the field's example, and not only as a part of a word.
    fn is_in(field: &PayloadField, text: &str) -> bool {
        match field.value() {
            // The template shows the parts of an object, not its JSON.
            Value::Object(parts) => parts.values().all(|part| has_word(text, part)),
            value => has_word(text, &value),
        }
    }

    fn has_word(text: &str, value: &Value) -> bool {
        let value = match value {
            Value::String(value) => value.clone(),
            value => value.to_string(),
        };
        let same = |one: Option<char>, other: Option<char>| {
            let both = |is: fn(char) -> bool| one.is_some_and(is) && other.is_some_and(is);
            both(char::is_alphabetic) || both(char::is_numeric)
        };
        text.match_indices(&value).any(|(at, found)| {
            let (before, behind) = (&text[..at], &text[at + found.len()..]);
            !same(before.chars().next_back(), value.chars().next())
                && !same(value.chars().next_back(), behind.chars().next())
        })
    }

    #[test]
    fn the_bundled_templates_show_exactly_the_fields_that_the_table_says() {
        let subscribers = Subscribers::bundled();
        for known in KNOWN_TYPES {
            let kind = EventType::parse(known.name).unwrap_or_else(|refused| panic!("{refused}"));
            let Some(subscriber) = subscribers.listening(&kind).next() else {
                assert!(known.meaning.contains("No bundled subscriber"), "{}", known.name);
                assert!(known.fields.iter().all(|field| field.shown == Shown::No), "{}", known.name);
                continue;
            };
            assert!(known.severity >= subscriber.severity_filter, "{}: the sample is filtered", known.name);
            let usual: Vec<_> = known.fields.iter().filter(|field| field.is_usual()).collect();
            let (one, two) = (shown(known, subscriber, &usual, 1), shown(known, subscriber, &usual, 2));
            for field in known.fields {
                let what = format!("{}.{} in {one:?} and {two:?}", known.name, field.name);
                let only = |others: &[&str]| -> Vec<_> {
                    let kept = known.fields.iter().filter(|one| !others.contains(&one.name));
                    kept.filter(|one| usual.contains(one) || one.name == field.name).collect()
                };
                match field.shown {
                    Shown::Yes => assert!(is_in(field, &one), "{what}"),
                    Shown::IfPresent => {
                        let with = shown(known, subscriber, &only(&[]), 1);
                        assert!(!is_in(field, &one) && is_in(field, &with), "{what}: {with:?}");
                    }
                    Shown::No => assert!(!is_in(field, &one) && !is_in(field, &two), "{what}"),
                    Shown::InBatch => assert!(!is_in(field, &one) && is_in(field, &two), "{what}"),
                    Shown::Without(others) => {
                        let with = shown(known, subscriber, &only(&[]), 1);
                        let without = shown(known, subscriber, &only(others), 1);
                        assert!(!is_in(field, &with) && is_in(field, &without), "{what}: {without:?}");
                    }
                    Shown::Instead(others) => {
                        let text = shown(known, subscriber, &only(&[]), 1);
                        assert!(is_in(field, &text), "{what}: {text:?}");
                        let hidden = known.fields.iter().filter(|one| others.contains(&one.name));
                        hidden.for_each(|other| assert!(!is_in(other, &text), "{what}: {text:?}"));
                    }
                }
            }
        }
    }

    #[test]
    fn every_field_that_a_bundled_template_reads_is_in_the_table() {
        for subscriber in Subscribers::bundled().iter() {
            let types = KNOWN_TYPES
                .iter()
                .filter(|known| EventType::parse(known.name).is_ok_and(|kind| subscriber.listens_for(&kind)));
            let known: Vec<&str> = types.flat_map(|known| known.fields).map(|field| field.name).collect();
            for field in subscriber.shown_fields().iter().flat_map(|fields| fields.iter()) {
                // An event's message is one of three fields; the table names those that the type usually has.
                let is_message = Payload::MESSAGE_FIELDS.contains(&&**field);
                assert!(is_message || known.contains(&&**field), "{} reads {field}", subscriber.id);
            }
        }
    }

    #[test]
    fn types_and_fields_are_named_once_and_every_bundled_type_is_known() {
        for (at, known) in KNOWN_TYPES.iter().enumerate() {
            assert!(KNOWN_TYPES[..at].iter().all(|one| one.name != known.name), "{}", known.name);
            for (at, field) in known.fields.iter().enumerate() {
                assert!(known.fields[..at].iter().all(|one| one.name != field.name), "{}.{}", known.name, field.name);
            }
        }
        for pattern in Subscribers::bundled().iter().flat_map(|one| &one.types) {
            let known =
                KNOWN_TYPES.iter().any(|one| EventType::parse(one.name).is_ok_and(|kind| pattern.matches(&kind)));
            assert!(known, "{pattern}");
        }
    }
}
