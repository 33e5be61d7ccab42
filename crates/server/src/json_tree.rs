//! JSON as a tree, from which types are deserialized with an error that keeps the name of a field.
//!
//! Serde reports a missing or repeated field at the path of its object, and `serde_json::Error` has the name only in its
//! text. [`FieldError`] keeps the name. A tree takes several times the memory of its text, so only what was refused is read
//! into one, and its callers bound the number of values.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeOwned, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;

/// A JSON value. An object keeps its repeated fields.
#[derive(Debug)]
pub(crate) enum JsonTree {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// Why a tree does not fit a type.
#[derive(Debug)]
pub(crate) struct TreeError {
    /// The path of the field, such as `observed.outcome` or `unseen[2]`; none for the whole tree.
    pub(crate) path: Option<String>,
    pub(crate) message: String,
}

impl JsonTree {
    /// Deserializes a value of this type.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, TreeError> {
        serde_path_to_error::deserialize(self).map_err(|error| {
            let object = Some(error.path()).filter(|path| path.iter().next().is_some()).map(ToString::to_string);
            let FieldError { field, message } = error.into_inner();
            let path = match (object, field) {
                (Some(object), Some(field)) => Some(format!("{object}.{field}")),
                (object, field) => object.or(field.map(str::to_owned)),
            };
            TreeError { path, message }
        })
    }
}

/// The same without the path of the object, which `serde_path_to_error` adds.
#[derive(Debug)]
pub(crate) struct FieldError {
    /// The missing or repeated field of the object at which serde reports the error.
    field: Option<&'static str>,
    message: String,
}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { field: None, message: message.to_string() }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { field: Some(field), message: format!("missing field `{field}`") }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self { field: Some(field), message: format!("duplicate field `{field}`") }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            // Serde's own word is "unit value".
            Unexpected::Unit => Self::custom(format_args!("invalid type: null, expected {expected}")),
            found => Self::custom(format_args!("invalid type: {found}, expected {expected}")),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FieldError {}

impl<'de> Deserializer<'de> for JsonTree {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Unsigned(value) => visitor.visit_u64(value),
            Self::Signed(value) => visitor.visit_i64(value),
            Self::Float(value) => visitor.visit_f64(value),
            Self::Text(text) => visitor.visit_string(text),
            Self::Array(values) => visitor.visit_seq(SeqDeserializer::new(values.into_iter())),
            Self::Object(fields) => visitor.visit_map(MapDeserializer::new(fields.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self {
            Self::Null => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self {
            Self::Text(name) => visitor.visit_enum(name.into_deserializer()),
            Self::Object(fields) => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(fields.into_iter())))
            }
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, FieldError> for JsonTree {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl From<Value> for JsonTree {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Self::Unsigned(value),
                (None, Some(value)) => Self::Signed(value),
                // Every number that is no integer is a float.
                (None, None) => Self::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(values) => Self::Array(values.into_iter().map(Self::from).collect()),
            Value::Object(fields) => Self::Object(fields.into_iter().map(|(key, value)| (key, value.into())).collect()),
        }
    }
}

impl<'de> Deserialize<'de> for JsonTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = JsonTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<JsonTree, E> {
        Ok(JsonTree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonTree, E> {
        Ok(JsonTree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<JsonTree, E> {
        Ok(JsonTree::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<JsonTree, E> {
        Ok(JsonTree::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<JsonTree, E> {
        Ok(JsonTree::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonTree, E> {
        Ok(JsonTree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<JsonTree, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element()? {
            values.push(value);
        }
        Ok(JsonTree::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<JsonTree, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = entries.next_entry()? {
            fields.push(field);
        }
        Ok(JsonTree::Object(fields))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        size: u8,
        text: Option<String>,
        kind: Option<Kind>,
        number: Option<Wrapped>,
        pair: Option<(i64, f64)>,
        any: Option<Value>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(i32);

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Plain,
        Named { name: String },
    }

    fn read(json: &str) -> Result<Sample, FieldError> {
        Sample::deserialize(serde_json::from_str::<JsonTree>(json).unwrap())
    }

    #[test]
    fn a_tree_gives_the_same_value_as_its_text() {
        for json in [
            r#"{"size": 1}"#,
            r#"{"size": 255, "text": null, "kind": "plain", "number": -5, "pair": [-1, 2.5]}"#,
            r#"{"size": 0, "text": "é", "kind": {"named": {"name": "a"}}, "any": [null, true, {"a": [1e300, -1]}, "b"]}"#,
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            let expected: Sample = serde_json::from_str(json).unwrap();
            assert_eq!(read(json).unwrap(), expected, "{json}");
            assert_eq!(JsonTree::from(value).read::<Sample>().unwrap(), expected, "{json}");
        }
    }

    #[test]
    fn a_missing_or_repeated_field_is_named_and_the_message_is_that_of_json() {
        for (json, field) in [
            ("{}", Some("size")),
            (r#"{"size": 1, "size": 2}"#, Some("size")),
            (r#"{"size": 1, "kind": {"named": {}}}"#, Some("name")),
            (r#"{"size": 300}"#, None),
            (r#"{"size": null}"#, None),
            (r#"{"size": 1, "text": 5}"#, None),
            (r#"{"size": 1, "colour": 5}"#, None),
            (r#"{"size": 1, "kind": "odd"}"#, None),
            (r#"{"size": 1, "pair": [1]}"#, None),
        ] {
            let error = read(json).unwrap_err();
            let of_text = serde_json::from_str::<Sample>(json).unwrap_err().to_string();
            assert_eq!(error.field, field, "{json}");
            assert_eq!(error.message, of_text.split(" at line ").next().unwrap_or_default(), "{json}");
        }
    }
}
