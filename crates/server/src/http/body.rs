//! JSON request bodies: deserialized into the handler's type, or refused with the path of the invalid field.

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
use crate::json_tree::{JsonTree, TreeError};

/// The maximum number of JSON values in one body, or in one event of a batch. A valid payload (64 KiB) has fewer.
const VALUES_MAX: usize = 65_536;
/// The maximum number of JSON values in all events of one batch. A value takes about 72 bytes in memory, so those of one
/// batch take at most 72 MiB.
const BATCH_VALUES_MAX: usize = 1024 * 1024;
/// The maximum number of characters of the body that an error message quotes.
const ECHO_MAX: usize = 300;

/// An extractor for a JSON object of type `T`.
#[derive(Clone, Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        check_json(request.headers())?;
        Ok(Self(read_object(&intake::whole(request).await?.1)?))
    }
}

/// Refuses a body whose `Content-Type` is not JSON.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = media_type(headers);
    match is_json(&kind) {
        true => Ok(()),
        false => Err(unsupported(&kind, "application/json")),
    }
}

/// Deserializes a JSON object; any other JSON value is refused.
pub(super) fn read_object<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    read(json).map(|Object(body)| body)
}

/// Deserializes `T` from a JSON object only. Serde's derived code would also accept an array for a struct.
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

/// The media type of `Content-Type`, in lower case and without parameters; empty if the header is missing.
pub(super) fn media_type(headers: &HeaderMap) -> Cow<'_, str> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim();
    match kind.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => kind.to_ascii_lowercase().into(),
        false => kind.into(),
    }
}

/// Whether a body of this media type is read as JSON. A missing type counts as JSON, and so does the form type, which
/// `curl -d` sends by default: the API has no forms.
pub(super) fn is_json(kind: &str) -> bool {
    matches!(kind, "" | "application/json" | "application/x-www-form-urlencoded")
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

pub(super) fn unsupported(kind: &str, accepted: &str) -> ApiError {
    let message = format!("a body of type {kind} is not understood here; send {accepted}");
    let field = Some("Content-Type".to_owned());
    ApiError { field, ..ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message) }
}

/// Refuses a body with more than [`VALUES_MAX`] JSON values before it is deserialized: a value of two bytes takes thirty
/// or more in memory.
pub(super) fn check_values(json: &[u8]) -> Result<(), ApiError> {
    check_values_within(json, VALUES_MAX)
}

/// Refuses a batch with more than [`BATCH_VALUES_MAX`] JSON values before any of its events is deserialized.
pub(super) fn check_batch_values(json: &[u8]) -> Result<(), ApiError> {
    check_values_within(json, BATCH_VALUES_MAX)
}

fn check_values_within(json: &[u8], max: usize) -> Result<(), ApiError> {
    // A value and its separator take at least two bytes, so a short body needs no count.
    if json.len() / 2 < max || values_upper_bound(json) <= max {
        return Ok(());
    }
    let message = format!("has more than {max} JSON values; send less at once");
    Err(ApiError::invalid("body", message))
}

/// An upper bound for the number of values in a JSON text, keys included: every value but the first follows one of the
/// characters `,` `:` `[` `{` outside of a string.
fn values_upper_bound(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Deserializes JSON. An error has the path of the invalid field, such as `observed.outcome` or `unseen[2]`.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    check_values(json)?;
    // A tree and tracking the path cost time, so only a body that failed is deserialized again with them.
    serde_json::from_slice(json).or_else(|_| read_with_path(json))
}

fn read_with_path<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    if json.trim_ascii().is_empty() {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "validation_error", "the body is empty; send JSON"));
    }
    from_tree(serde_json::from_slice(json).map_err(|error| ApiError::syntax(&error))?)
}

/// Deserializes a tree. An error has the path of the invalid field.
pub(super) fn from_tree<T: DeserializeOwned>(tree: JsonTree) -> Result<T, ApiError> {
    tree.read().map_err(|TreeError { path, message }| {
        let field = path.map(|path| clipped(&path));
        ApiError { field, ..ApiError::new(StatusCode::BAD_REQUEST, "validation_error", clipped(&message)) }
    })
}

/// Truncates to [`ECHO_MAX`] characters: a key or value that an error quotes may be as long as the body.
pub(super) fn clipped(text: &str) -> String {
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
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
            let error = read::<Object<Outer>>(json.as_bytes()).expect_err("the body is invalid");
            assert_eq!(error.field.as_deref(), Some(field), "{json}: {}", error.message);
        }
    }

    #[test]
    fn an_error_repeats_only_a_part_of_a_long_key_or_text() {
        let long = "x".repeat(1_000_000);
        for json in [format!(r#"{{"{long}": 1}}"#), format!(r#"{{"name": "a", "list": "{long}"}}"#)] {
            let error = read::<Object<Outer>>(json.as_bytes()).expect_err("the body is invalid");
            let field = error.field.expect("the error has a field");
            assert!(field.len() < 310 && error.message.len() < 310, "{} {}", field.len(), error.message.len());
        }
    }

    #[test]
    fn too_many_values_are_refused_and_separators_inside_strings_do_not_count() {
        let list = |value: &str, count: usize| format!("[{}]", vec![value; count].join(","));
        assert!(check_values(list("0", VALUES_MAX - 1).as_bytes()).is_ok());
        for value in ["0", "[]", r#"{"a":1}"#, r#""\\""#, r#""a\"b""#] {
            assert!(check_values(list(value, VALUES_MAX).as_bytes()).is_err(), "{value}");
        }
        let text = format!(r#"["{}"]"#, r#",\"[{:"#.repeat(VALUES_MAX));
        assert_eq!(values_upper_bound(text.as_bytes()), 2);
        assert!(read::<Vec<String>>(text.as_bytes()).is_ok());
    }

    #[test]
    fn invalid_json_names_no_field() {
        for json in ["", " ", "{nonsense", "[1", "\"\\ud800\"", "5", "[\"a\", [], null]"] {
            assert_eq!(read::<Object<Outer>>(json.as_bytes()).expect_err("the body is invalid").field, None, "{json}");
        }
    }
}
