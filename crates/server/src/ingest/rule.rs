//! `[[ingest.NAME.event]]`: the event that a JSON body becomes. Values are taken from the body by JSON Pointers in braces,
//! as in `"deploy {/version}"`.

use bellwire_core::Severity;
use bellwire_core::event::EventType;
use serde_json::{Map, Value};
use toml::Table;

use super::{BodyProblem, WebhookEvent, clip};
use crate::http::{ID_MAX, check_single_line};

/// Which bodies it matches, and the event that they become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    when: Vec<Condition>,
    unless: Vec<Condition>,
    kind: FieldText,
    severity: FieldText,
    /// By which a repeated call is recognized.
    id: Option<FieldText>,
    conversation: Option<FieldText>,
    payload: Vec<(String, FieldText)>,
}

/// A value of the body that must be one of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    pointer: String,
    /// As texts; `*` = any value but null.
    allowed: Vec<String>,
}

/// A text with values of the body in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldText(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// A JSON Pointer (RFC 6901).
    Pointer(String),
}

/// An invalid field of a rule, and the message.
type RuleMistake = (String, String);

const FIELDS: [&str; 7] = ["when", "unless", "type", "severity", "id", "conversation", "payload"];
/// In characters: the longest text that becomes part of a payload.
const TEXT_MAX: usize = 4000;
/// Any value but null.
const ANY: &str = "*";

impl Rule {
    /// Parses a table of the configuration; an error has the name of the field.
    pub(crate) fn parse(value: &toml::Value) -> Result<Self, RuleMistake> {
        let table = value.as_table().ok_or((String::new(), "is no table".to_owned()))?;
        if let Some(unknown) = table.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            return Err((unknown.clone(), format!("is no setting of an event; there are {}", FIELDS.join(", "))));
        }
        let missing = || ("type".to_owned(), "is missing, such as \"task.background.failed\"".to_owned());
        let kind = text(table, "type")?.ok_or_else(missing)?;
        if let Some(wrong) = kind.literal().filter(|kind| EventType::parse(kind).is_err()) {
            return Err((
                "type".into(),
                format!("is '{wrong}'; two to six lower-case parts joined by dots are allowed"),
            ));
        }
        let severity = text(table, "severity")?.unwrap_or_else(|| FieldText(vec![Part::Literal("info".into())]));
        if let Some(wrong) = severity.literal().filter(|text| severity_of(text).is_none()) {
            let message = format!("is '{wrong}'; debug, info, warning, error or critical is allowed");
            return Err(("severity".into(), message));
        }
        Ok(Self {
            when: conditions(table, "when")?,
            unless: conditions(table, "unless")?,
            kind,
            severity,
            id: text(table, "id")?,
            conversation: text(table, "conversation")?,
            payload: payload(table)?,
        })
    }

    /// The rule in the form of a configuration file, for `bellwire config`.
    pub(crate) fn to_toml(&self) -> Table {
        let list = |texts: &[String]| toml::Value::Array(texts.iter().cloned().map(toml::Value::String).collect());
        let conditions = |all: &[Condition]| {
            let entries = all.iter().map(|one| (one.pointer.clone(), list(&one.allowed)));
            toml::Value::Table(entries.collect())
        };
        let text = |text: &FieldText| toml::Value::String(text.to_string());
        let mut table = Table::new();
        for (name, all) in [("when", &self.when), ("unless", &self.unless)] {
            if !all.is_empty() {
                table.insert(name.into(), conditions(all));
            }
        }
        table.insert("type".into(), text(&self.kind));
        table.insert("severity".into(), text(&self.severity));
        for (name, value) in [("id", &self.id), ("conversation", &self.conversation)] {
            value.as_ref().map(|value| table.insert(name.into(), text(value)));
        }
        if !self.payload.is_empty() {
            let entries = self.payload.iter().map(|(name, value)| (name.clone(), text(value)));
            table.insert("payload".into(), toml::Value::Table(entries.collect()));
        }
        table
    }

    /// Whether the body has all values of `when` and none of `unless`.
    pub(super) fn matches(&self, body: &Value) -> bool {
        self.when.iter().all(|one| one.is_met(body)) && !self.unless.iter().any(|one| one.is_met(body))
    }

    /// The event that a body becomes.
    pub(super) fn event(&self, body: &Value) -> Result<WebhookEvent, BodyProblem> {
        let needed = |name: &str, text: &FieldText| {
            text.fill(body).map_err(|pointer| {
                BodyProblem::new(&pointer, format!("is missing in the body, but {name} of the event needs it"))
            })
        };
        let severity = needed("severity", &self.severity)?;
        let kind = type_form(&needed("type", &self.kind)?);
        // What begins and what ends often have one id; they are two events.
        let id = self.id.as_ref().map(|id| needed("id", id)).transpose()?.map(|id| format!("{kind} {id}"));
        let conversation = self.conversation.as_ref().map(|id| needed("conversation", id)).transpose()?;
        if let Some(problem) = conversation.as_deref().and_then(|id| check_single_line(id, ID_MAX).err()) {
            return Err(BodyProblem::new("conversation", problem));
        }
        let mut payload = Map::new();
        for (name, text) in &self.payload {
            // A field whose value is missing is left out, like an optional field of an event.
            if let Some(value) = text.value(body) {
                payload.insert(name.clone(), value);
            }
        }
        Ok(WebhookEvent {
            id,
            content: None,
            kind,
            severity: severity_of(&severity).unwrap_or(Severity::Info),
            conversation,
            payload: Value::Object(payload),
        })
    }
}

impl Condition {
    fn is_met(&self, body: &Value) -> bool {
        let Some(found) = body.pointer(&self.pointer).filter(|value| !value.is_null()) else { return false };
        self.allowed.iter().any(|allowed| allowed == ANY || *allowed == plain(found))
    }
}

impl FieldText {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{/") {
            let (pointer, after) = after.split_once('}').ok_or_else(|| format!("has '{{/{after}' without a '}}'"))?;
            if !before.is_empty() {
                parts.push(Part::Literal(before.to_owned()));
            }
            parts.push(Part::Pointer(format!("/{pointer}")));
            rest = after;
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// The text, if nothing in it comes from the body.
    fn literal(&self) -> Option<&str> {
        match &*self.0 {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The text with the values of the body; an error is the pointer of a missing value.
    fn fill(&self, body: &Value) -> Result<String, String> {
        let part = |part: &Part| match part {
            Part::Literal(text) => Ok(text.clone()),
            Part::Pointer(pointer) => {
                let found = body.pointer(pointer).filter(|value| !value.is_null());
                found.map(plain).ok_or_else(|| pointer.clone())
            }
        };
        self.0.iter().map(part).collect::<Result<String, String>>().map(|text| clip(&text, TEXT_MAX))
    }

    /// The same as a value of a payload: a single pointer keeps the type of its value.
    fn value(&self, body: &Value) -> Option<Value> {
        match &*self.0 {
            [Part::Pointer(pointer)] => match body.pointer(pointer)? {
                Value::Null => None,
                Value::String(text) => Some(clip(text, TEXT_MAX).into()),
                other => Some(other.clone()),
            },
            _ => self.fill(body).ok().map(Value::String),
        }
    }
}

impl std::fmt::Display for FieldText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Literal(text) => f.write_str(text),
            Part::Pointer(pointer) => write!(f, "{{{pointer}}}"),
        })
    }
}

fn text(table: &Table, field: &str) -> Result<Option<FieldText>, RuleMistake> {
    match table.get(field) {
        None => Ok(None),
        Some(toml::Value::String(text)) => {
            FieldText::parse(text).map(Some).map_err(|message| (field.to_owned(), message))
        }
        Some(_) => Err((field.to_owned(), "is no text; a text such as \"{/name}\" is allowed".to_owned())),
    }
}

fn payload(table: &Table) -> Result<Vec<(String, FieldText)>, RuleMistake> {
    let fields = match table.get("payload") {
        None => return Ok(Vec::new()),
        Some(toml::Value::Table(fields)) => fields,
        Some(_) => return Err(("payload".into(), "is no table, such as { name = \"{/title}\" }".into())),
    };
    fields
        .keys()
        .map(|name| match text(fields, name) {
            Ok(text) => Ok((name.clone(), text.unwrap_or(FieldText(Vec::new())))),
            Err((_, message)) => Err((format!("payload.{name}"), message)),
        })
        .collect()
}

fn conditions(table: &Table, field: &str) -> Result<Vec<Condition>, RuleMistake> {
    let wrong = |message: String| (field.to_owned(), message);
    let entries = match table.get(field) {
        None => return Ok(Vec::new()),
        Some(toml::Value::Table(entries)) => entries,
        Some(_) => return Err(wrong("is no table, such as { \"/action\" = \"completed\" }".to_owned())),
    };
    let scalar = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(yes) => Some(yes.to_string()),
        _ => None,
    };
    let one = |(pointer, value): (&String, &toml::Value)| {
        if !pointer.starts_with('/') {
            return Err(wrong(format!("has '{pointer}'; a JSON Pointer such as \"/action\" is allowed")));
        }
        let allowed: Option<Vec<String>> = match value {
            toml::Value::Array(list) => list.iter().map(scalar).collect(),
            value => scalar(value).map(|one| vec![one]),
        };
        let allowed = allowed.ok_or_else(|| wrong(format!("has no text, number or list of them for '{pointer}'")))?;
        Ok(Condition { pointer: pointer.clone(), allowed })
    };
    entries.iter().map(one).collect()
}

/// A value of a body within a text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text from outside as part of a type: lower case, and `_` instead of other characters.
fn type_form(text: &str) -> String {
    let form = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '_' | '.') => c,
        _ => '_',
    };
    text.chars().map(form).collect()
}

/// The severity, also by the words of other systems.
pub(super) fn severity_of(text: &str) -> Option<Severity> {
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "debug" | "trace" => Severity::Debug,
        "info" | "information" | "informational" | "notice" | "ok" | "none" => Severity::Info,
        "warning" | "warn" | "minor" => Severity::Warning,
        "error" | "err" | "major" | "high" => Severity::Error,
        "critical" | "fatal" | "page" | "emergency" | "disaster" => Severity::Critical,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(toml: &str) -> Result<Rule, RuleMistake> {
        Rule::parse(&toml::Value::Table(toml.parse().expect("valid TOML")))
    }

    const FAILED: &str = r#"
        when = { "/state" = ["failed", "error"], "/attempt" = 2 }
        unless = { "/branch" = "dependabot", "/draft" = "*" }
        type = "task.background.{/state}"
        severity = "{/level}"
        id = "{/run/id}-{/attempt}"
        payload = { name = "deploy {/version}", attempt = "{/attempt}", note = "see {/absent}", url = "{/url}" }
    "#;

    #[test]
    fn the_first_values_of_a_body_decide_whether_a_rule_matches() {
        let rule = rule(FAILED).expect("a rule");
        for (body, matches) in [
            (json!({"state": "failed", "attempt": 2}), true),
            (json!({"state": "error", "attempt": "2", "draft": null}), true),
            (json!({"state": "failed", "attempt": 3}), false),
            (json!({"state": "failed"}), false),
            (json!({"state": "failed", "attempt": 2, "branch": "dependabot"}), false),
            (json!({"state": "failed", "attempt": 2, "draft": false}), false),
            (json!([1, 2]), false),
            (json!("failed"), false),
        ] {
            assert_eq!(rule.matches(&body), matches, "{body}");
        }
    }

    #[test]
    fn a_body_fills_the_event_and_missing_values_leave_fields_out() {
        let rule = rule(FAILED).expect("a rule");
        let body = json!({"state": "Not Ok!", "level": "FATAL", "run": {"id": 7}, "attempt": 2, "version": "1.2"});
        let event = rule.event(&body).expect("an event");
        assert_eq!(
            (event.id.as_deref(), &*event.kind),
            (Some("task.background.not_ok_ 7-2"), "task.background.not_ok_")
        );
        assert_eq!((event.severity, event.payload), (Severity::Critical, json!({"name": "deploy 1.2", "attempt": 2})));
        let missing = rule.event(&json!({"state": "failed", "level": "info"})).expect_err("it has no id");
        assert_eq!(
            (&*missing.field, &*missing.message),
            ("/run/id", "is missing in the body, but id of the event needs it")
        );
    }

    #[test]
    fn a_conversation_that_no_one_could_name_is_refused() {
        let rule = rule("type = 'a.b'\nconversation = '{/chat}'").expect("a rule");
        assert_eq!(rule.event(&json!({"chat": "main"})).expect("an event").conversation.as_deref(), Some("main"));
        for chat in [json!(""), json!("a\nb"), json!("x".repeat(200))] {
            assert_eq!(rule.event(&json!({ "chat": chat })).expect_err("it has no such id").field, "conversation");
        }
    }

    #[test]
    fn a_mistake_in_a_rule_is_named_by_its_field() {
        for (toml, field) in [
            ("", "type"),
            ("type = 'one'", "type"),
            ("type = 'a.b'\ncolour = 'red'", "colour"),
            ("type = 'a.b'\nseverity = 'loud'", "severity"),
            ("type = 'a.{/open'", "type"),
            ("type = 'a.b'\nid = 7", "id"),
            ("type = 'a.b'\npayload = 'x'", "payload"),
            ("type = 'a.b'\npayload = { name = 7 }", "payload.name"),
            ("type = 'a.b'\nwhen = { action = 'x' }", "when"),
            ("type = 'a.b'\nunless = { '/action' = { x = 1 } }", "unless"),
        ] {
            assert_eq!(rule(toml).expect_err(toml).0, field, "{toml}");
        }
    }

    #[test]
    fn a_rule_is_shown_as_it_is_written() {
        let written = rule(FAILED).expect("a rule");
        assert_eq!(Rule::parse(&toml::Value::Table(written.to_toml())), Ok(written));
    }
}
