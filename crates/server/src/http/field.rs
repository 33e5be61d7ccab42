//! What a field may hold: one type per rule, which both checks a value and describes it in the schema, so that the two
//! cannot differ. What a field means is none of its business.

use std::borrow::Cow;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use bellwire_core::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _, Unexpected};
use serde::{Deserialize, Serialize, Serializer};

use super::ApiError;

/// The longest id of a conversation, a person, an event that brings its own.
pub(crate) const ID_MAX: usize = 128;

/// A text without control characters, as a regular expression that every dialect reads alike.
pub(super) const NO_CONTROLS: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";

/// A character that is not blank, as Unicode's `White_Space` has it.
pub(super) const NOT_BLANK: &str = r"[^\u0009-\u000d \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

/// Whole numbers above this are not the same in every language.
const WHOLE_MAX: u64 = (1 << 53) - 1;

/// A text of 1 to `MAX` characters, none of them a control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SingleLineText<const MAX: usize>(pub(super) String);

/// A text of 1 to `MAX` characters that is not all blank.
#[derive(Clone, Debug)]
pub(super) struct MultiLineText<const MAX: usize>(pub(super) String);

/// A whole number from `MIN` to `MAX`, also when it is written as `5.0`.
#[derive(Copy, Clone, Debug)]
pub(super) struct BoundedInteger<const MIN: u64 = 0, const MAX: u64 = WHOLE_MAX>(pub(super) u64);

/// A moment, written as RFC 3339.
#[derive(Copy, Clone, Debug)]
pub(super) struct Rfc3339Time(pub(super) Time);

/// One of the words a type stands for.
#[derive(Copy, Clone, Debug)]
pub(super) struct EnumText<T>(pub(super) T);

/// A type each of whose values is a word on the wire.
pub(super) trait WireEnum: Copy + 'static {
    /// Every value.
    const WORDS: &'static [Self];
    /// The word for it.
    fn text(self) -> &'static str;
}

/// The id in a path.
#[derive(Clone, Debug)]
pub(super) struct PathId(pub(super) String);

impl<const MAX: usize> SingleLineText<MAX> {
    /// The text itself, or why it is not one.
    pub(super) fn check(text: String) -> Result<Self, String> {
        check_length(&text, MAX)?;
        match text.chars().find(|c| c.is_control()) {
            Some(control) => Err(format!("contains the control character {control:?}; leave it out")),
            None => Ok(Self(text)),
        }
    }
}

impl<const MAX: usize> MultiLineText<MAX> {
    fn check(text: String) -> Result<Self, String> {
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
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=WHOLE_MAX as f64).contains(float));
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
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
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

/// A schema that stands where it is used instead of under a name of its own.
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
inline_schema!([] Rfc3339Time, json_schema!({ "type": "string", "format": "date-time" }));

inline_schema!([T: WireEnum] EnumText<T>, json_schema!({
    "type": "string", "enum": T::WORDS.iter().map(|word| word.text()).collect::<Vec<_>>(),
}));

impl<'de, T: WireEnum> Deserialize<'de> for EnumText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not an enum of serde's: that would take `{"error": null}` for `"error"`.
        let text = String::deserialize(deserializer)?;
        T::WORDS.iter().find(|word| word.text() == text).copied().map(Self).ok_or_else(|| {
            let words: Vec<&str> = T::WORDS.iter().map(|word| word.text()).collect();
            let came: String = text.chars().take(40).collect();
            D::Error::custom(format!("'{came}' must be one of: {}", words.join(", ")))
        })
    }
}

impl<T: WireEnum> Serialize for EnumText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.text())
    }
}

/// The core knows no schema, so that its words are words of the wire is said here.
macro_rules! vocabularies {
    ($($type:ty,)+) => {
        $(impl WireEnum for $type {
            const WORDS: &'static [Self] = &<$type>::ALL;
            fn text(self) -> &'static str {
                self.as_str()
            }
        })+
    };
}

vocabularies! {
    bellwire_core::Severity,
    bellwire_core::Priority,
    bellwire_core::InjectionPoint,
    bellwire_core::subscriber::Activation,
    bellwire_core::subscriber::Audience,
    bellwire_core::inject::Style,
    bellwire_core::inject::Shape,
    bellwire_store::Channel,
    bellwire_store::DeliveryState,
    bellwire_store::InboxState,
    bellwire_store::InboxItemType,
    bellwire_store::InboxItemKind,
    crate::auth::Scope,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
        serde_json::from_value::<T>(value).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_line_is_bounded_and_has_no_control_characters() {
        assert!(serde_json::from_value::<SingleLineText<3>>(json!("äöü")).is_ok());
        assert_eq!(refused::<SingleLineText<3>>(json!("")), "has 0 characters; 1 to 3 are allowed");
        assert_eq!(refused::<SingleLineText<3>>(json!("abcd")), "has 4 characters; 1 to 3 are allowed");
        assert!(refused::<SingleLineText<3>>(json!("a\u{0}b")).contains("control character"));
        assert!(refused::<MultiLineText<9>>(json!(" \u{3000}\n")).contains("blank"));
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point_but_not_as_a_text() {
        assert_eq!(serde_json::from_value::<BoundedInteger<1, 10>>(json!(5.0)).expect("5.0 is whole").0, 5);
        assert_eq!(refused::<BoundedInteger<1, 10>>(json!(11)), "is 11; 1 to 10 is allowed");
        for wrong in [json!(1.5), json!(-1), json!("5"), json!(1e300), json!(true)] {
            refused::<BoundedInteger<1, 10>>(wrong);
        }
    }

    #[test]
    fn a_word_is_a_text_and_nothing_else() {
        type Severity = EnumText<bellwire_core::Severity>;
        assert!(serde_json::from_value::<Severity>(json!("error")).is_ok());
        assert_eq!(
            refused::<Severity>(json!("fatal")),
            "'fatal' must be one of: debug, info, warning, error, critical"
        );
        refused::<Severity>(json!({"error": null}));
    }

    #[test]
    fn the_patterns_say_what_the_code_does() {
        // No regular expressions here: the classes are compared character by character.
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
