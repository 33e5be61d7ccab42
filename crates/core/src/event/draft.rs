use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    AgentName, DEDUPE_KEY_MAX, Event, EventType, NAME_MAX, Payload, Severity, Source, ValidationError, bounded_text,
    refuse_reserved,
};
use crate::{EventId, Ids, Time};

/// An event as its sender wrote it, not yet validated.
///
/// ```
/// use bellwire_core::{EventDraft, Ids, Time};
///
/// let draft: EventDraft = serde_json::from_str(
///     r#"{"type": "source.file.changed", "source": "file_watcher", "severity": "info", "payload": {"path": "src/lib.rs"}}"#,
/// )
/// .unwrap();
/// let event = draft.admit(Time::from_millis(5), &mut Ids::seeded(1)).unwrap();
/// assert_eq!(event.timestamp(), Time::from_millis(5));
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventDraft {
    /// The sender's id, a UUID; assigned if absent.
    pub id: Option<String>,
    /// The type, such as `tool.call.failure`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The component it came from.
    pub source: Option<String>,
    /// The severity.
    pub severity: Option<String>,
    /// When it happened, RFC 3339; the time of arrival if absent.
    pub timestamp: Option<String>,
    /// The payload.
    pub payload: Option<Value>,
    /// A dedupe key that overrides the subscriber's.
    pub dedupe_key: Option<String>,
    /// The conversation it is for.
    pub conversation_id: Option<String>,
    /// The agent inside the conversation; `main` if absent.
    pub agent: Option<String>,
    /// The person whose open conversations it is for.
    pub user_id: Option<String>,
    /// The correlation id.
    pub correlation_id: Option<String>,
}

impl EventDraft {
    /// Validates every field; assigns id and timestamp if they are absent.
    pub fn admit(self, now: Time, ids: &mut Ids) -> Result<Event, ValidationError> {
        let kind = EventType::parse(&required("type", self.kind)?)?;
        let source = Source::parse(&required("source", self.source)?)?;
        refuse_reserved(&kind, &source)?;
        let severity = Severity::parse(&required("severity", self.severity)?)?;
        let payload = Payload::from_json(required("payload", self.payload)?)?;
        let mut event = Event::from_parts(kind, source, severity, payload);
        event.timestamp = self.timestamp.map_or(Ok(now), |text| parse_time(&text))?;
        event.id = self.id.map_or_else(|| Ok(ids.event(now)), |text| parse_id(&text))?;
        event.agent = self.agent.map_or_else(|| Ok(AgentName::main()), |text| AgentName::parse(&text))?;
        event.dedupe_key = bounded("dedupe_key", self.dedupe_key, DEDUPE_KEY_MAX)?;
        event.conversation_id = bounded("conversation_id", self.conversation_id, NAME_MAX)?;
        event.user_id = bounded("user_id", self.user_id, NAME_MAX)?;
        event.correlation_id = bounded("correlation_id", self.correlation_id, NAME_MAX)?;
        Ok(event)
    }
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ValidationError> {
    value.ok_or_else(|| ValidationError::new(field, "is missing; every event needs type, source, severity and payload"))
}

fn bounded(field: &'static str, text: Option<String>, max: usize) -> Result<Option<Box<str>>, ValidationError> {
    text.map(|text| bounded_text(field, &text, max).map(Into::into)).transpose()
}

fn parse_time(text: &str) -> Result<Time, ValidationError> {
    text.parse().map_err(|error: crate::time::TimeError| ValidationError::new("timestamp", error.to_string()))
}

fn parse_id(text: &str) -> Result<EventId, ValidationError> {
    Uuid::try_parse(text).map(EventId).map_err(|_| {
        ValidationError::new("id", format!("'{}' must be a UUID; leave it out to get one", super::excerpt(text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn admit(change: Value) -> Result<Event, String> {
        let mut draft = json!({"type": "cli.event", "source": "shell", "severity": "info", "payload": {}});
        for (key, value) in change.as_object().unwrap() {
            draft[key] = value.clone();
        }
        let draft: EventDraft = serde_json::from_value(draft).map_err(|error| error.to_string())?;
        draft.admit(Time::ZERO, &mut Ids::seeded(1)).map_err(|error| error.to_string())
    }

    #[test]
    fn every_invalid_field_is_named_with_what_is_allowed() {
        let wrong = [
            json!({"type": "Tool.Call.Failure"}),
            json!({"type": "tool"}),
            json!({"type": "a.b.c.d.e.f.g"}),
            json!({"type": "tool..call"}),
            json!({"source": "<b>"}),
            json!({"source": " x"}),
            json!({"source": "User"}),
            json!({"type": "user.message"}),
            json!({"severity": "fatal"}),
            json!({"timestamp": "yesterday"}),
            json!({"payload": "text"}),
            json!({"payload": null}),
            json!({"id": "42"}),
            json!({"agent": ""}),
            json!({"dedupe_key": "a\u{0}b"}),
            json!({"colour": "red"}),
        ];
        let errors: Vec<String> = wrong.into_iter().map(|change| admit(change).unwrap_err()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn reserved_names_are_forbidden() {
        let admit = |source: &str| {
            let draft = EventDraft {
                kind: Some("cli.event".into()),
                source: Some(source.into()),
                severity: Some("info".into()),
                payload: Some(json!({})),
                ..EventDraft::default()
            };
            draft.admit(Time::ZERO, &mut Ids::seeded(1))
        };
        for borrowed in ["USER", "user x7", "User  x12 x3", "bellwire", "Operator", "SWITCHBOARD", "messenger x2"] {
            assert!(admit(borrowed).unwrap_err().forbidden, "{borrowed}");
        }
        assert!(admit("user x7b").is_ok());
    }
}
