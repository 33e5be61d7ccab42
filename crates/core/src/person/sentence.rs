//! A plain sentence about events, for a person: used where a subscriber has no text for people. It contains no TOON, no
//! JSON, and names of payload fields only where the payload has no message.

use serde_json::Value;

use crate::event::{Event, cut};
use crate::render::TemplateEvent;

/// Payload fields that say what an event is about, the first one found.
const SUBJECTS: [&str; 9] = ["name", "title", "tool_name", "service", "job", "path", "file", "url", "task_id"];
/// Payload fields that are a sentence already, the first one found.
const MESSAGES: [&str; 8] =
    ["message", "error_message", "text", "question", "result_summary", "summary", "reason", "description"];
/// How many other fields are listed where there is no message.
const FIELDS_MAX: usize = 5;
/// In characters: how much of one field is shown.
const FIELD_MAX: usize = 80;
/// How many events of a batch are described.
const EVENTS_MAX: usize = 5;

/// Describes the events; the text is empty without any.
pub(super) fn sentence(events: &[TemplateEvent]) -> String {
    let [first, others @ ..] = events else { return String::new() };
    let title = title(&first.event);
    if others.is_empty() {
        return joined(&title, &details(&first.event));
    }
    let same = others.iter().all(|one| one.event.kind() == first.event.kind());
    let described = events.iter().take(EVENTS_MAX).map(|one| match same {
        true => details(&one.event),
        false => joined(&self::title(&one.event), &details(&one.event)),
    });
    let mut list: Vec<String> = described.filter(|text| !text.is_empty()).collect();
    if events.len() > EVENTS_MAX && !list.is_empty() {
        list.push(format!("{} more", events.len() - EVENTS_MAX));
    }
    let count = events.len();
    joined(&if same { format!("{title}, {count} times") } else { format!("{count} events") }, &list.join("; "))
}

fn joined(title: &str, details: &str) -> String {
    if details.is_empty() { title.to_owned() } else { format!("{title}: {details}") }
}

/// The type as words: `ci.build.failed` is `Ci build failed`.
fn title(event: &Event) -> String {
    let words = event.kind().as_str().replace(['.', '_'], " ");
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// The event's subject and message; without a message, the subject and the other fields of the payload.
fn details(event: &Event) -> String {
    let text =
        |key: &&str| event.payload().get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
    let value = |key: &str| event.payload().get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let subject = SUBJECTS.into_iter().find(text);
    match (subject, MESSAGES.into_iter().find(text)) {
        (Some(subject), Some(message)) => format!("{} - {}", cut(value(subject), FIELD_MAX), value(message)),
        (None, Some(message)) => value(message).to_owned(),
        (subject, None) => {
            let subject_text = subject.map(|key| cut(value(key), FIELD_MAX));
            subject_text.into_iter().chain(other_fields(event, subject)).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The fields with a plain value, as `branch main`. Nested values are left out.
fn other_fields(event: &Event, except: Option<&str>) -> Vec<String> {
    let payload = event.payload().as_map().iter().filter(|(key, _)| Some(key.as_str()) != except);
    let plain = payload.filter_map(|(key, value)| {
        let value = match value {
            Value::String(text) if !text.trim().is_empty() => cut(text.trim(), FIELD_MAX),
            Value::Number(number) => number.to_string(),
            Value::Bool(bit) => if *bit { "yes" } else { "no" }.to_owned(),
            _ => return None,
        };
        Some(format!("{} {value}", cut(key, FIELD_MAX).replace('_', " ")))
    });
    let mut fields: Vec<String> = plain.take(FIELDS_MAX + 1).collect();
    if fields.len() > FIELDS_MAX {
        fields.truncate(FIELDS_MAX);
        fields.push("and more".to_owned());
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Severity;

    fn said(events: &[(&str, Value)]) -> String {
        let event = |(kind, payload): &(&str, Value)| {
            let event = Event::new(kind, "ci", Severity::Info, payload.clone());
            TemplateEvent { event: event.unwrap_or_else(|refused| panic!("{refused}")).into(), repeats: 0 }
        };
        sentence(&events.iter().map(event).collect::<Vec<_>>())
    }

    #[test]
    fn events_are_described_in_plain_words() {
        let long = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6});
        let build = |job: &str| ("ci.build.failed", json!({"job": job, "branch": "main"}));
        let lines = [
            said(&[(
                "tool.call.failure",
                json!({"tool_name": "grep", "error_type": "timeout", "error_message": "no answer"}),
            )]),
            said(&[("agent.input.needed", json!({"question": "May I?"}))]),
            said(&[("deploy.service.finished", json!({"service": "api", "version": "1.4.2", "is_canary": true}))]),
            said(&[("source.file.changed", json!({"path": "src/lib.rs"}))]),
            said(&[("cli.event", json!({}))]),
            said(&[("cli.event", json!({"nested": {"a": 1}, "list": [1, 2], "none": null, "blank": " "}))]),
            said(&[("cli.event", long)]),
            said(&[build("tests"), build("lint")]),
            said(&[build("tests"), ("ci.build.passed", json!({"job": "lint"}))]),
            said(&[build("a"), build("b"), build("c"), build("d"), build("e"), build("f"), build("g")]),
            said(&[("ci.build.failed", json!({})), ("ci.build.failed", json!({}))]),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }
}
