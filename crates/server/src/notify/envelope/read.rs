use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::json_tree::{JsonTree, TreeError};

/// In bytes: the longest string that is read as JSON where an object belongs. A message of the greatest length fits, even
/// if each of its characters is escaped.
const EMBEDDED_MAX: usize = 512 * 1024;
/// In characters: how much of a refused value an error repeats.
const ECHO_MAX: usize = 200;

/// Why an envelope was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvelopeError {
    /// The path of the field, such as `notify_request.delivery.intent`; empty for the whole envelope.
    pub(crate) path: String,
    /// What is wrong.
    pub(crate) message: String,
}

impl EnvelopeError {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: clipped(&path.into()), message: clipped(&message.into()) }
    }
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// An object on the wire.
pub(crate) trait Envelope: DeserializeOwned {
    /// The paths of all fields that contain objects.
    const OBJECTS: &'static [&'static str];

    /// Reads it strictly, except that an object may be written as a string of JSON.
    fn read(value: Value) -> Result<Self, EnvelopeError> {
        let fields = unpack(value, String::new(), Self::OBJECTS)?;
        let read = JsonTree::from(Value::Object(fields)).read();
        read.map_err(|TreeError { path, message }| EnvelopeError::new(path.unwrap_or_default(), message))
    }
}

/// The fields of the object at `path`, with every string at one of the paths in `objects` replaced by the object it
/// contains. Objects elsewhere are not read, so the depth is bounded by that list.
fn unpack(value: Value, path: String, objects: &[&str]) -> Result<Map<String, Value>, EnvelopeError> {
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::String(text) if text.len() <= EMBEDDED_MAX => match serde_json::from_str(&text) {
            Ok(Value::Object(fields)) => fields,
            _ => return Err(EnvelopeError::new(path, "must be an object, not text")),
        },
        other => return Err(EnvelopeError::new(path, format!("must be an object, not {}", kind(&other)))),
    };
    for (name, value) in fields.iter_mut().filter(|(_, value)| !value.is_null()) {
        let path = joined(&path, name);
        if objects.contains(&path.as_str()) {
            *value = Value::Object(unpack(value.take(), path, objects)?);
        }
    }
    Ok(fields)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "such a long text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn joined(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
