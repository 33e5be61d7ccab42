//! Reads JSON-RPC messages as ranges of their text, so that everything that is not understood stays as it is.
//!
//! Nothing is serialized again: numbers, escapes, spaces, the order of keys and duplicate keys stay as they came. Of duplicate
//! keys the last one counts, as in most parsers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The messages of a text: one, or those of a batch; empty if the text is not JSON.
pub(super) fn messages(text: &str) -> Vec<&str> {
    match text.trim_start().bytes().next() {
        Some(b'{') => vec![text],
        Some(b'[') => elements(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The elements of an array; `None` if it is not one.
pub(super) fn elements(text: &str) -> Option<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// The values of these keys of an object, as they are written; `None` if the text is not an object.
pub(super) fn fields<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Option<[Option<&'a str>; N]> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let found = Fields(names).deserialize(&mut parser).ok()?;
    parser.end().ok()?;
    Some(found.map(|value| value.map(RawValue::get)))
}

/// A value without its quotes and escapes, if it is a string.
pub(super) fn string(value: Option<&str>) -> Option<String> {
    serde_json::from_str::<Cow<'_, str>>(value?).ok().map(Cow::into_owned)
}

/// The id of a request in one form: two ways to write the same id are equal.
pub(super) fn id_key(id: &str) -> Option<String> {
    let value: Value = serde_json::from_str(id).ok()?;
    matches!(value, Value::String(_) | Value::Number(_)).then(|| value.to_string())
}

/// The ids of the requests in a text, in the form of [`id_key`].
pub(super) fn request_ids(text: &str) -> Vec<String> {
    let id = |message: &str| {
        let [id, method] = fields(message, ["id", "method"])?;
        method.and(id).and_then(id_key)
    };
    messages(text).into_iter().filter_map(id).collect()
}

/// Where `inner` begins in `outer`, of which it is a part.
pub(super) fn offset(outer: &str, inner: &str) -> usize {
    inner.as_ptr() as usize - outer.as_ptr() as usize
}

struct Fields<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Fields<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Fields<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut found = [None; N];
        while let Some(key) = map.next_key::<String>()? {
            let value: &RawValue = map.next_value()?;
            if let Some(place) = self.0.iter().position(|name| *name == key) {
                found[place] = Some(value);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_as_they_are_written_and_the_last_of_duplicates_counts() {
        let text = " { \"a\" : 1.50e+2 ,\"\\u0062\":[ 1 ], \"c\":{\"a\":2},\"b\":\"\\ud800\" } ";
        let [a, b, none] = fields(text, ["a", "b", "d"]).expect("an object");
        assert_eq!((a, b, none), (Some("1.50e+2"), Some("\"\\ud800\""), None));
        assert_eq!(&text[offset(text, a.expect("it is there"))..][..7], "1.50e+2");
        for broken in ["", "1", "{", "{}x", "{\"a\":}", "[1]", "{\"a\":1,}"] {
            assert_eq!(fields(broken, ["a"]), None, "{broken}");
        }
    }

    #[test]
    fn deep_nesting_is_read_without_recursion() {
        let deep = format!("{{\"id\":1,\"result\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(fields(&deep, ["id"]), Some([Some("1")]));
    }

    #[test]
    fn one_id_written_in_two_ways_is_one_id() {
        assert_eq!(id_key("\"a\""), id_key("\"\\u0061\""));
        assert_ne!(id_key("1"), id_key("\"1\""));
        assert_eq!(id_key("null"), None);
    }

    #[test]
    fn a_batch_is_split_and_anything_else_is_no_message() {
        assert_eq!(messages(" [ {\"id\":1} , 2]"), ["{\"id\":1}", "2"]);
        assert_eq!(messages("hello"), Vec::<&str>::new());
        assert_eq!(messages(""), Vec::<&str>::new());
    }
}
