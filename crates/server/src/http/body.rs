//! JSON bodies: read into the type a handler asks for, or refused with the path of the field at fault.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{LengthLimitError, Limited};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};

use super::ApiError;

/// A JSON body.
#[derive(Clone, Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        check_json(request.headers())?;
        Ok(Self(read_object(&bytes(request.into_body()).await?)?))
    }
}

/// Refuses a body that is said to be something else than JSON.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = media_type(headers);
    match is_json(&kind) {
        true => Ok(()),
        false => Err(unsupported(&kind, "application/json")),
    }
}

/// Reads a JSON object.
pub(super) fn read_object<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    read(json).map(|Object(body)| body)
}

/// A JSON object and nothing else: on its own, serde would take a list for a struct.
#[derive(Clone, Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData)).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for Object<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The request with a body that ends in an error where it is larger than this; one that says so itself is refused at once.
pub(super) fn limited(request: Request, max: usize) -> Result<Request, ApiError> {
    let said = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match said {
        Some(length) if length > max as u64 => Err(ApiError::of_status(StatusCode::PAYLOAD_TOO_LARGE)),
        // As long as it says: nothing has to be counted.
        Some(_) => Ok(request),
        None => Ok(request.map(|body| axum::body::Body::new(Limited::new(body, max)))),
    }
}

/// The body as it came, no larger than it was let in.
pub(super) async fn bytes(body: axum::body::Body) -> Result<Bytes, ApiError> {
    let read = axum::body::to_bytes(body, usize::MAX).await;
    read.map_err(|error| {
        let first: &(dyn Error + 'static) = &error;
        let mut causes = std::iter::successors(Some(first), |cause| (*cause).source());
        match causes.any(|cause| cause.is::<LengthLimitError>()) {
            true => ApiError::of_status(StatusCode::PAYLOAD_TOO_LARGE),
            false => ApiError::new(StatusCode::BAD_REQUEST, "validation_error", "the body ended before its end"),
        }
    })
}

/// What kind of thing a body is said to be, in lower case and without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Cow<'_, str> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim();
    match kind.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => kind.to_ascii_lowercase().into(),
        false => kind.into(),
    }
}

/// Whether a body of this kind is read as JSON. Where nothing is said it is, and so it is where `curl -d` says on its
/// own that the body is a form: no form was ever meant for us.
pub(super) fn is_json(kind: &str) -> bool {
    matches!(kind, "" | "application/json" | "application/x-www-form-urlencoded")
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

pub(super) fn unsupported(kind: &str, accepted: &str) -> ApiError {
    let message = format!("a body of type {kind} is not understood here; send {accepted}");
    let field = Some("Content-Type".to_owned());
    ApiError { field, ..ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message) }
}

/// Reads JSON; what is wrong is named by its path.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(json).map_err(|error| {
        if json.trim_ascii().is_empty() {
            return ApiError::new(StatusCode::BAD_REQUEST, "validation_error", "the body is empty; send JSON");
        }
        if !error.is_data() {
            return ApiError::body(&error);
        }
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        let field = field_at_fault(json, offset(json, error.line(), error.column()), message);
        let field = Some(field).filter(|field| !field.is_empty());
        ApiError { field, ..ApiError::new(StatusCode::BAD_REQUEST, "validation_error", message) }
    })
}

fn field_at_fault(json: &[u8], end: usize, message: &str) -> String {
    // A field that is missing has no place; the object that misses it has.
    if let Some(name) = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        let object = path_before(json, end);
        let dot = if object.is_empty() { "" } else { "." };
        return format!("{object}{dot}{name}");
    }
    // Serde speaks of a wrong type where the value is. A rule of ours speaks up behind it, when the reader has passed
    // the comma or the closing bracket too.
    let mut end = end;
    if !message.starts_with("invalid type") {
        end = json[..end].trim_ascii_end().len();
        end -= usize::from(json[..end].ends_with(b",") || json[..end].ends_with(b"}") || json[..end].ends_with(b"]"));
    }
    path_before(json, end)
}

/// How many bytes come before a place that is given by line and column.
fn offset(json: &[u8], line: usize, column: usize) -> usize {
    let lines = json.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1));
    (lines.map(<[u8]>::len).sum::<usize>() + column).min(json.len())
}

enum Level {
    Object(Option<String>),
    Array(usize),
}

/// The path of the value that ends or begins at `end`, such as `observed.outcome` or `unseen[2]`.
fn path_before(json: &[u8], end: usize) -> String {
    let mut levels: Vec<Level> = Vec::new();
    let mut at = 0;
    while at < end {
        match json[at] {
            b'"' => {
                let close = string_end(json, at);
                if let Some(Level::Object(key @ None)) = levels.last_mut() {
                    *key = serde_json::from_slice(&json[at..close]).ok();
                }
                at = close;
                continue;
            }
            b'{' => levels.push(Level::Object(None)),
            b'[' => levels.push(Level::Array(0)),
            b'}' | b']' => drop(levels.pop()),
            b',' if at + 1 < end => match levels.last_mut() {
                Some(Level::Object(key)) => *key = None,
                Some(Level::Array(index)) => *index += 1,
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    let mut path = String::new();
    for level in &levels {
        match level {
            Level::Object(Some(key)) if path.is_empty() => path.push_str(key),
            Level::Object(Some(key)) => path.extend([".", key]),
            Level::Object(None) => {}
            Level::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// Where the string that opens at `start` is over.
fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < json.len() && json[at] != b'"' {
        at += if json[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(json.len())
}

#[cfg(test)]
mod tests {
    use super::super::field::Line;
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its form matters")]
    struct Outer {
        name: String,
        #[serde(default)]
        list: Vec<u8>,
        #[serde(default)]
        lines: Vec<Line<3>>,
        line: Option<Line<3>>,
        inner: Option<Object<Inner>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its form matters")]
    struct Inner {
        size: u8,
        line: Option<Line<3>>,
        deep: Option<Object<Box<Self>>>,
    }

    #[test]
    fn whatever_is_wrong_is_named_by_its_path() {
        let wrong = [
            (r#"{"name": 5, "list": []}"#, "name"),
            (r#"{"list": [], "name": 5}"#, "name"),
            (r#"{"name": {"a": 1}}"#, "name"),
            (r#"{"name": ["a"]}"#, "name"),
            (r#"{"name": null}"#, "name"),
            (r#"{"name": "a \"b\", {c", "list": [1, 2, 300]}"#, "list[2]"),
            (r#"{"name": "a", "list": [1, "2", 3]}"#, "list[1]"),
            (r#"{"name": "a", "list": {}}"#, "list"),
            ("{\"name\": \"a\",\n \"inner\": {\"size\": 1,\n \"deep\": {\"size\": true}}}", "inner.deep.size"),
            (r#"{"name": "a", "inner": {"size": 1, "colour": "red"}}"#, "inner.colour"),
            (r#"{"name": "a", "colour": "red"}"#, "colour"),
            (r#"{"list": []}"#, "name"),
            (r#"{"name": "a", "inner": {"deep": null}}"#, "inner.size"),
            (r#"{"name": "a", "name": "b"}"#, "name"),
            (r#"{"name": "a", "inner": [1, null]}"#, "inner"),
            (r#"{"name": "a", "list": [1, {}]}"#, "list[1]"),
            (r#"{"name": "a", "list": [1, [2], 3]}"#, "list[1]"),
            (r#"{"line": ""}"#, "line"),
            (r#"{"line": "", "name": "a"}"#, "line"),
            (r#"{"line": "" , "name": "a"}"#, "line"),
            (r#"{"lines": ["a", "b", "long"]}"#, "lines[2]"),
            (r#"{"lines": ["a", "long", "b"], "name": "a"}"#, "lines[1]"),
            (r#"{"name": "a", "inner": {"size": 1, "line": ""}}"#, "inner.line"),
            (r#"{"name": "a", "inner": {"line": "", "size": 1}}"#, "inner.line"),
        ];
        for (json, field) in wrong {
            let error = read::<Object<Outer>>(json.as_bytes()).expect_err("it is wrong");
            assert_eq!(error.field.as_deref(), Some(field), "{json}: {}", error.message);
        }
    }

    #[test]
    fn what_is_no_json_has_no_field() {
        for json in ["", " ", "{nonsense", "[1", "\"\\ud800\"", "5", "[\"a\", [], null]"] {
            assert_eq!(read::<Object<Outer>>(json.as_bytes()).expect_err("it is wrong").field, None, "{json}");
        }
    }
}
