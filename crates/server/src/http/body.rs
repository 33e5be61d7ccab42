//! JSON bodies: read into the type a handler asks for, or refused with the path of the field at fault.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};

use super::{ApiError, intake};

/// How many values one body may have, or one of its events. A payload, of at most 64 KiB, has fewer.
const VALUES_MAX: usize = 65_536;
/// How many characters of a body an error repeats at most.
const ECHO_MAX: usize = 300;

/// A JSON body.
#[derive(Clone, Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        check_json(request.headers())?;
        Ok(Self(read_object(&intake::whole(request).await?.1)?))
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

/// Refuses a text with more JSON values than any call needs, before anything is built from it: a value of two bytes becomes
/// thirty or more in memory.
pub(super) fn check_values(json: &[u8]) -> Result<(), ApiError> {
    // No value is shorter than two bytes with what separates it from the next.
    if json.len() / 2 < VALUES_MAX || values_most(json) <= VALUES_MAX {
        return Ok(());
    }
    let message = format!("has more than {VALUES_MAX} JSON values; send less at once");
    Err(ApiError::invalid("body", message))
}

/// How many values a JSON text has at most, keys included: each but the first follows one of these characters.
fn values_most(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b':' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// Reads JSON. An error names the field at fault by its path, such as `observed.outcome` or `unseen[2]`.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    check_values(json)?;
    // Keeping track of the path costs time, so only a body that is refused is read that way.
    serde_json::from_slice(json).or_else(|_| read_with_path(json))
}

fn read_with_path<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    if json.trim_ascii().is_empty() {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "validation_error", "the body is empty; send JSON"));
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(at_path)?;
    reader.end().map_err(|error| ApiError::syntax(&error))?;
    Ok(value)
}

/// The error of a value that was read with its path.
pub(super) fn at_path(error: serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let path = Some(error.path()).filter(|path| path.iter().next().is_some()).map(ToString::to_string);
    let error = error.into_inner();
    if !error.is_data() {
        return ApiError::syntax(&error);
    }
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = text.strip_suffix(&position).unwrap_or(&text);
    let field = match (path, field_of_object(message)) {
        (Some(object), Some(name)) => Some(format!("{object}.{name}")),
        (path, name) => path.or(name.map(str::to_owned)),
    };
    let field = field.map(|field| clipped(&field));
    ApiError { field, ..ApiError::new(StatusCode::BAD_REQUEST, "validation_error", clipped(message)) }
}

/// A key or value of the body that an error repeats may be as long as the body.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The field that an error about a whole object names. Serde's derived code reports a missing or repeated field at the
/// object and has no other place for the name than its message, whose form serde documents.
fn field_of_object(message: &str) -> Option<&str> {
    let name = message.strip_prefix("missing field `").or_else(|| message.strip_prefix("duplicate field `"))?;
    name.strip_suffix('`')
}

#[cfg(test)]
mod tests {
    use super::super::field::SingleLineText;
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its form matters")]
    struct Outer {
        name: String,
        #[serde(default)]
        list: Vec<u8>,
        #[serde(default)]
        lines: Vec<SingleLineText<3>>,
        line: Option<SingleLineText<3>>,
        inner: Option<Object<Inner>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its form matters")]
    struct Inner {
        size: u8,
        line: Option<SingleLineText<3>>,
        deep: Option<Object<Box<Self>>>,
    }

    #[test]
    fn every_invalid_field_is_named_by_its_path() {
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
    fn an_error_repeats_only_a_part_of_a_long_key_or_text() {
        let long = "x".repeat(1_000_000);
        for json in [format!(r#"{{"{long}": 1}}"#), format!(r#"{{"name": "a", "list": "{long}"}}"#)] {
            let error = read::<Object<Outer>>(json.as_bytes()).expect_err("it is wrong");
            let field = error.field.expect("it names the field");
            assert!(field.len() < 310 && error.message.len() < 310, "{} {}", field.len(), error.message.len());
        }
    }

    #[test]
    fn a_text_with_too_many_values_is_refused_and_one_that_only_looks_so_is_not() {
        let list = |value: &str, count: usize| format!("[{}]", vec![value; count].join(","));
        assert!(check_values(list("0", VALUES_MAX - 1).as_bytes()).is_ok());
        for value in ["0", "[]", r#"{"a":1}"#, r#""\\""#, r#""a\"b""#] {
            assert!(check_values(list(value, VALUES_MAX).as_bytes()).is_err(), "{value}");
        }
        let text = format!(r#"["{}"]"#, r#",\"[{:"#.repeat(VALUES_MAX));
        assert_eq!(values_most(text.as_bytes()), 2);
        assert!(read::<Vec<String>>(text.as_bytes()).is_ok());
    }

    #[test]
    fn invalid_json_names_no_field() {
        for json in ["", " ", "{nonsense", "[1", "\"\\ud800\"", "5", "[\"a\", [], null]"] {
            assert_eq!(read::<Object<Outer>>(json.as_bytes()).expect_err("it is wrong").field, None, "{json}");
        }
    }
}
