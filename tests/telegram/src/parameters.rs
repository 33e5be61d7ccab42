//! The parameters of a call: from the query, a form or a JSON object, as Telegram takes them.

use serde_json::{Map, Value};

use crate::answer::Answer;

/// The parameters of one call. A value from a form is a text; Telegram reads numbers and JSON out of texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(pub(crate) Map<String, Value>);

impl Parameters {
    pub(crate) fn read(query: Option<&str>, content_type: &str, body: &[u8]) -> Result<Self, Answer> {
        let mut map = Map::new();
        let mut add_form = |bytes: &[u8]| {
            for (name, value) in form_urlencoded::parse(bytes) {
                map.insert(name.into_owned(), Value::String(value.into_owned()));
            }
        };
        add_form(query.unwrap_or_default().as_bytes());
        if content_type.starts_with("application/x-www-form-urlencoded") {
            add_form(body);
        } else if content_type.starts_with("application/json") && !body.is_empty() {
            let Ok(Value::Object(object)) = serde_json::from_slice(body) else {
                return Err(Answer::bad_request("can't parse JSON object"));
            };
            map.extend(object);
        }
        Ok(Self(map))
    }

    /// A value, with the JSON inside a text parsed.
    pub(crate) fn json(&self, name: &str) -> Result<Option<Value>, Answer> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => serde_json::from_str(text)
                .map(Some)
                .map_err(|_| Answer::bad_request(&format!("can't parse {} JSON object", name.replace('_', " ")))),
            Some(value) => Ok(Some(value.clone())),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        integer(self.0.get(name)?)
    }

    pub(crate) fn chat_id(&self) -> Result<i64, Answer> {
        match self.0.get("chat_id") {
            None | Some(Value::Null) => Err(Answer::bad_request("chat_id is empty")),
            Some(Value::String(text)) if text.is_empty() => Err(Answer::bad_request("chat_id is empty")),
            Some(value) => integer(value).ok_or_else(|| Answer::bad_request("chat not found")),
        }
    }
}

/// A whole number, also from a text.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}
