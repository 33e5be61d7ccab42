//! Types for validated fields. Each type both validates a value and gives its JSON schema, so that the two cannot differ.
//! The types know the form of a value, not its meaning.

use std::borrow::Cow;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use bellwire_core::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _, Unexpected};
use serde::{Deserialize, Serialize, Serializer};

use super::ApiError;

/// The maximum length of a conversation id, a user id and a client event id, in characters.
pub(crate) const ID_MAX: usize = 128;

/// A text without control characters, as a regular expression that works in every dialect.
pub(super) const NO_CONTROLS: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";

/// A character without Unicode's property `White_Space`.
pub(super) const NOT_BLANK: &str = r"[^\u0009-\u000d \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

/// The largest integer that a JavaScript number represents exactly.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// A text of 1 to `MAX` characters, none of them a control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SingleLineText<const MAX: usize>(pub(super) String);

/// A text of 1 to `MAX` characters that is not all white space.
#[derive(Clone, Debug)]
pub(super) struct MultiLineText<const MAX: usize>(pub(super) String);

/// An integer from `MIN` to `MAX`; `5.0` is accepted as 5.
#[derive(Copy, Clone, Debug)]
pub(super) struct BoundedInteger<const MIN: u64 = 0, const MAX: u64 = INTEGER_MAX>(pub(super) u64);

/// A time in RFC 3339 format.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rfc3339Time(pub(super) Time);

/// A time in RFC 3339 format in a query, where the `+` of an offset is decoded as a space if it was not percent-encoded.
#[derive(Copy, Clone, Debug)]
pub(super) struct QueryTime(pub(super) Time);

/// An enum's value, written as its text.
#[derive(Copy, Clone, Debug)]
pub(super) struct EnumText<T>(pub(super) T);

/// An enum whose values are texts on the wire.
pub(super) trait WireEnum: Copy + 'static {
    /// All values.
    const VALUES: &'static [Self];
    /// The value's text on the wire.
    fn text(self) -> &'static str;
}

/// The parameter `{id}` of a path.
#[derive(Clone, Debug)]
pub(super) struct PathId(pub(super) String);

impl<const MAX: usize> SingleLineText<MAX> {
    /// Validates the text; the error says what is allowed.
    pub(super) fn check(text: String) -> Result<Self, String> {
        check_single_line(&text, MAX).map(|()| Self(text))
    }
}

impl<const MAX: usize> MultiLineText<MAX> {
    /// Validates the text; the error says what is allowed.
    pub(super) fn check(text: String) -> Result<Self, String> {
        check_length(&text, MAX)?;
        match text.trim().is_empty() {
            true => Err("is blank; say something".to_owned()),
            false => Ok(Self(text)),
        }
    }
}

impl<const MIN: u64, const MAX: u64> BoundedInteger<MIN, MAX> {
    fn check(number: u64) -> Result<Self, String> {
        match (MIN..=MAX).contains(&number) {
            true => Ok(Self(number)),
            false => Err(format!("is {number}; {MIN} to {MAX} is allowed")),
        }
    }
}

/// Checks a text of 1 to `max` characters on one line; the error says what is allowed.
pub(crate) fn check_single_line(text: &str, max: usize) -> Result<(), String> {
    check_length(text, max)?;
    match text.chars().find(|c| c.is_control()) {
        Some(control) => Err(format!("contains the control character {control:?}; leave it out")),
        None => Ok(()),
    }
}

fn check_length(text: &str, max: usize) -> Result<(), String> {
    match text.chars().count() {
        length if (1..=max).contains(&length) => Ok(()),
        length => Err(format!("has {length} characters; 1 to {max} are allowed")),
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for SingleLineText<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::check(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for MultiLineText<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::check(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for BoundedInteger<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=INTEGER_MAX as f64).contains(float));
        let whole = number.as_u64().or(float.map(|float| float as u64));
        let expected = "a whole number, not negative";
        let whole = whole.ok_or_else(|| D::Error::invalid_value(Unexpected::Other(&number.to_string()), &expected))?;
        Self::check(whole).map_err(D::Error::custom)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for BoundedInteger<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rfc3339Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A number is read too, so that the error can say what to write instead.
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            serde_json::Value::Number(number) => number.to_string(),
            other => return Err(D::Error::custom(format!("{other} is not a time such as 2026-01-03T15:30:00Z"))),
        };
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for QueryTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let encoded = text.parse().or_else(|error| text.replace(' ', "+").parse().map_err(|_| error));
        encoded.map(Self).map_err(D::Error::custom)
    }
}

impl Serialize for Rfc3339Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(id) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::invalid("id", "is not UTF-8; percent-encode the id as it was given"))?;
        let line = SingleLineText::<ID_MAX>::check(id).map_err(|message| ApiError::invalid("id", message))?;
        Ok(Self(line.0))
    }
}

/// Implements `JsonSchema` with a schema that is inlined where it is used, not referenced by name.
macro_rules! inline_schema {
    ([$($generics:tt)*] $type:ty, $schema:expr) => {
        impl<$($generics)*> JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn schema_id() -> Cow<'static, str> {
                std::any::type_name::<Self>().into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

inline_schema!([const MAX: usize] SingleLineText<MAX>, json_schema!({
    "type": "string", "minLength": 1, "maxLength": MAX, "pattern": NO_CONTROLS,
}));
inline_schema!([const MAX: usize] MultiLineText<MAX>, json_schema!({
    "type": "string", "minLength": 1, "maxLength": MAX, "pattern": NOT_BLANK,
}));
inline_schema!([const MIN: u64, const MAX: u64] BoundedInteger<MIN, MAX>, json_schema!({
    "type": "integer", "minimum": MIN, "maximum": MAX,
}));
inline_schema!([] QueryTime, json_schema!({ "type": "string", "format": "date-time" }));
inline_schema!([] Rfc3339Time, json_schema!({ "type": "string", "format": "date-time" }));

inline_schema!([T: WireEnum] EnumText<T>, json_schema!({
    "type": "string", "enum": T::VALUES.iter().map(|value| value.text()).collect::<Vec<_>>(),
}));

impl<'de, T: WireEnum> Deserialize<'de> for EnumText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not serde's derived code for enums, which would accept `{"error": null}` for `"error"`.
        let text = String::deserialize(deserializer)?;
        T::VALUES.iter().find(|value| value.text() == text).copied().map(Self).ok_or_else(|| {
            let allowed: Vec<&str> = T::VALUES.iter().map(|value| value.text()).collect();
            let came: String = text.chars().take(40).collect();
            D::Error::custom(format!("'{came}' must be one of: {}", allowed.join(", ")))
        })
    }
}

impl<T: WireEnum> Serialize for EnumText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.text())
    }
}

/// Implements [`WireEnum`] for enums of other crates; the core does not depend on schemars.
macro_rules! impl_wire_enum {
    ($($type:ty,)+) => {
        $(impl WireEnum for $type {
            const VALUES: &'static [Self] = &<$type>::ALL;
            fn text(self) -> &'static str {
                self.as_str()
            }
        })+
    };
}

impl_wire_enum! {
    bellwire_core::Severity,
    bellwire_core::Priority,
    bellwire_core::InjectionPoint,
    bellwire_core::verdict::VerdictKind,
    bellwire_core::subscriber::Activation,
    bellwire_core::subscriber::Audience,
    bellwire_core::inject::Style,
    bellwire_core::inject::Shape,
    bellwire_core::notify::ErrorClass,
    bellwire_core::notify::Intent,
    bellwire_store::DeliveryState,
    bellwire_store::InboxState,
    bellwire_store::InboxItemType,
    bellwire_store::InboxItemKind,
    bellwire_store::LedgerDecision,
    crate::auth::Scope,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
        serde_json::from_value::<T>(value).expect_err("the value is invalid").to_string()
    }

    #[test]
    fn a_single_line_text_is_bounded_and_has_no_control_characters() {
        assert!(serde_json::from_value::<SingleLineText<3>>(json!("äöü")).is_ok());
        assert_eq!(refused::<SingleLineText<3>>(json!("")), "has 0 characters; 1 to 3 are allowed");
        assert_eq!(refused::<SingleLineText<3>>(json!("abcd")), "has 4 characters; 1 to 3 are allowed");
        assert!(refused::<SingleLineText<3>>(json!("a\u{0}b")).contains("control character"));
        assert!(refused::<MultiLineText<9>>(json!(" \u{3000}\n")).contains("blank"));
    }

    #[test]
    fn an_integer_may_be_written_as_a_float_but_not_as_a_string() {
        assert_eq!(serde_json::from_value::<BoundedInteger<1, 10>>(json!(5.0)).expect("5.0 is whole").0, 5);
        assert_eq!(refused::<BoundedInteger<1, 10>>(json!(11)), "is 11; 1 to 10 is allowed");
        for wrong in [json!(1.5), json!(-1), json!("5"), json!(1e300), json!(true)] {
            refused::<BoundedInteger<1, 10>>(wrong);
        }
    }

    #[test]
    fn an_enum_value_is_a_string_and_nothing_else() {
        type Severity = EnumText<bellwire_core::Severity>;
        assert!(serde_json::from_value::<Severity>(json!("error")).is_ok());
        assert_eq!(
            refused::<Severity>(json!("fatal")),
            "'fatal' must be one of: debug, info, warning, error, critical"
        );
        refused::<Severity>(json!({"error": null}));
    }

    #[test]
    fn the_patterns_match_the_code() {
        // The character classes of the patterns, compared for every character without a regex engine.
        let control = |c: char| matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}');
        let blank = |c: char| {
            matches!(c, '\u{9}'..='\u{d}' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
                | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
        };
        for c in '\u{0}'..=char::MAX {
            assert_eq!((control(c), blank(c)), (c.is_control(), c.is_whitespace()), "{c:?}");
        }
    }
}
