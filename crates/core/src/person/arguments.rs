use serde_json::{Map, Value};

use super::Argument;
use crate::event::excerpt;

/// The arguments of a tool call, as a model sent them.
#[derive(Clone, Debug, Default)]
pub struct ToolArguments(Map<String, Value>);

impl ToolArguments {
    /// Accepts an object, or a string that contains one as JSON.
    pub fn parse(value: Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Object(arguments) => Ok(Self(arguments)),
            Value::String(_) => object(&value).map(Self).ok_or_else(|| "arguments must be an object".to_owned()),
            other => Err(format!("arguments must be an object, not {}", value_kind(&other))),
        }
    }

    /// Refuses unknown arguments by name.
    pub(crate) fn refuse_others(&self, known: &[Argument]) -> Result<(), String> {
        let allowed: Vec<&str> = known.iter().map(|argument| argument.name).collect();
        match self.0.keys().find(|name| !allowed.contains(&name.as_str())) {
            Some(name) if known.is_empty() => {
                Err(format!("Unknown argument '{}'. This tool takes none", excerpt(name)))
            }
            Some(name) => Err(format!("Unknown argument '{}'. Allowed: {}", excerpt(name), allowed.join(", "))),
            None => Ok(()),
        }
    }

    /// A string; null counts as absent.
    pub fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("{name} must be text, not {}", value_kind(other))),
        }
    }

    /// An integer, also as a string or with a zero fraction (`5.0`).
    pub fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64);
        let read = match self.value(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_i64().or_else(|| number.as_f64().and_then(whole)),
            Some(Value::String(text)) => {
                let text = text.trim();
                text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
            }
            Some(_) => None,
        };
        let came = self.value(name).map(|value| excerpt(&value.to_string())).unwrap_or_default();
        read.map(Some).ok_or_else(|| format!("{name} must be a whole number, not {came}"))
    }

    /// A list, or a string that contains one as JSON.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<Value>>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list.clone())),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(list)) => Ok(Some(list)),
                _ => Err(format!("{name} must be a list")),
            },
            Some(other) => Err(format!("{name} must be a list, not {}", value_kind(other))),
        }
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

/// One of a set of strings, or a refusal that lists them.
pub(super) fn word<T: Copy>(what: &str, text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("Invalid {what} '{}'. Must be one of: {}", excerpt(text), allowed.join(", "))
    })
}

/// The map of an object, or of a string that contains one as JSON.
pub(crate) fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields.clone()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        },
        _ => None,
    }
}

/// The kind of a JSON value, for error messages.
pub(crate) fn value_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn integer(value: Value) -> Result<Option<i64>, String> {
        ToolArguments::parse(json!({ "n": value })).and_then(|arguments| arguments.integer("n"))
    }

    #[test]
    fn quoted_numbers_and_objects_are_parsed() {
        assert_eq!(integer(json!("5000")), Ok(Some(5000)));
        assert_eq!(integer(json!(5000.0)), Ok(Some(5000)));
        assert_eq!(integer(json!(" 5e3 ")), Ok(Some(5000)));
        assert_eq!(integer(json!(null)), Ok(None));
        assert!(ToolArguments::parse(json!("{\"n\": 1}")).is_ok());
        assert!(ToolArguments::parse(json!("nonsense")).is_err());
        for wrong in [json!(1.5), json!("soon"), json!(true), json!([1]), json!(1e300)] {
            assert!(integer(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_argument_is_named() {
        let arguments = ToolArguments::parse(json!({"message": "x", "colour": "red"})).unwrap_or_default();
        let known = [Argument::text("message", 1, 9, ""), Argument::word("type", &[], "")];
        let refused = arguments.refuse_others(&known);
        assert_eq!(refused, Err("Unknown argument 'colour'. Allowed: message, type".to_owned()));
    }
}
