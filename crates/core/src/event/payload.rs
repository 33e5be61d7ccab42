use std::hash::Hasher as _;
use std::io;

use serde_json::{Map, Value};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::{CanonicalJson, ValidationError, cut, cut_display};

/// An event's payload: a JSON object of at most 64 KiB and 64 levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload(Map<String, Value>);

/// The key of a mailbox's hashes. Without it, a sender cannot construct two payloads with equal hashes.
pub type HashKey = [u8; 16];

/// Payloads with at most this many keys are searched linearly.
const SCANNED_MAX: usize = 8;
/// The maximum length of [`Payload::message`], in characters.
const MESSAGE_MAX: usize = 200;

impl Payload {
    /// The maximum size as JSON, in bytes.
    pub const BYTES_MAX: usize = 64 * 1024;
    /// The maximum nesting depth.
    pub const DEPTH_MAX: usize = 64;

    /// Checks that the value is an object within the limits of depth and size.
    pub fn from_json(value: Value) -> Result<Self, ValidationError> {
        let Value::Object(map) = value else {
            return Err(ValidationError::new("payload", format!("is {}; it must be a JSON object", kind_of(&value))));
        };
        if map.values().any(|value| is_deeper_than(value, Self::DEPTH_MAX)) {
            let message = format!("is nested deeper than {} levels", Self::DEPTH_MAX);
            return Err(ValidationError::new("payload", message));
        }
        let bytes = json_length(&map);
        if bytes > Self::BYTES_MAX {
            let message = format!("has {bytes} bytes as JSON; at most {} are allowed", Self::BYTES_MAX);
            return Err(ValidationError::new("payload", message));
        }
        Ok(Self(map))
    }

    /// The fields of which the first one found is an event's message.
    pub(crate) const MESSAGE_FIELDS: [&str; 3] = ["message", "error_message", "text"];

    /// Whether one of these fields is there and not null. Does not allocate.
    pub(crate) fn has_any(&self, fields: &[Box<str>]) -> bool {
        fields.iter().any(|field| self.get(field).is_some_and(|value| !value.is_null()))
    }

    /// A payload made by this crate, known to be within the limits.
    pub(crate) fn known(map: Map<String, Value>) -> Self {
        Self(map)
    }

    /// The JSON object.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        // For a few keys, comparing is cheaper than hashing, which serde_json's map does with `preserve_order`.
        if self.0.len() <= SCANNED_MAX {
            return self.0.iter().find(|(known, _)| known.as_str() == key).map(|(_, value)| value);
        }
        self.0.get(key)
    }

    /// The value at a path; a number selects an array element. `None` if the value is missing or null.
    pub fn at_path<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Value> {
        let mut path = path.into_iter();
        let first = self.get(path.next()?)?;
        let found = path.try_fold(first, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            other => other.get(part),
        })?;
        (!found.is_null()).then_some(found)
    }

    /// One line for display without a template: `message`, `error_message` or `text`, else the canonical JSON, cut at 200
    /// characters.
    pub fn message(&self) -> String {
        match self.said() {
            Some(text) => cut(text, MESSAGE_MAX),
            None => cut_display(CanonicalJson::Object(&self.0), MESSAGE_MAX),
        }
    }

    /// The same, not cut.
    pub(crate) fn whole_message(&self) -> String {
        self.said().map_or_else(|| CanonicalJson::Object(&self.0).to_string(), str::to_owned)
    }

    fn said(&self) -> Option<&str> {
        Self::MESSAGE_FIELDS.into_iter().find_map(|key| self.0.get(key)?.as_str())
    }

    /// A keyed hash of the content, independent of the order of keys. Does not allocate.
    pub fn fingerprint(&self, secret: &HashKey) -> u128 {
        entries_fingerprint(&self.0, secret)
    }
}

/// A keyed hash of a JSON value. Key order does not matter, and 1 equals 1.0.
pub(crate) fn fingerprint(value: &Value, secret: &HashKey) -> u128 {
    let mut hasher = SipHasher13::new_with_key(secret);
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(bit) => hasher.write(&[1, u8::from(*bit)]),
        Value::Number(number) => write_number(&mut hasher, number),
        Value::String(text) => write_text(&mut hasher, text),
        Value::Array(items) => {
            hasher.write_u8(4);
            items.iter().for_each(|item| hasher.write(&fingerprint(item, secret).to_le_bytes()));
        }
        Value::Object(map) => return entries_fingerprint(map, secret),
    }
    hasher.finish128().as_u128()
}

/// Hashes each entry and adds the hashes, so that their order does not matter. Without the secret, a sender cannot search
/// for two sets of entries with equal sums.
pub(crate) fn entries_fingerprint<'a>(
    entries: impl IntoIterator<Item = (&'a String, &'a Value)>,
    secret: &HashKey,
) -> u128 {
    let mut sum = 0_u128;
    for (key, value) in entries {
        let mut hasher = SipHasher13::new_with_key(secret);
        write_text(&mut hasher, key);
        // Most values are strings; hashing them in the same pass halves the work for a flat payload.
        match value {
            Value::String(text) => write_text(&mut hasher, text),
            Value::Number(number) => write_number(&mut hasher, number),
            other => hasher.write(&fingerprint(other, secret).to_le_bytes()),
        }
        sum = sum.wrapping_add(hasher.finish128().as_u128());
    }
    sum
}

fn write_text(hasher: &mut SipHasher13, text: &str) {
    hasher.write(&[3]);
    hasher.write(&(text.len() as u64).to_le_bytes());
    hasher.write(text.as_bytes());
}

fn write_number(hasher: &mut SipHasher13, number: &serde_json::Number) {
    // 1 and 1.0 are the same number.
    let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)).or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 1e18).then_some(float as i128)
    });
    match whole {
        Some(whole) => {
            hasher.write(&[2]);
            hasher.write(&whole.to_le_bytes());
        }
        None => {
            hasher.write(&[5]);
            hasher.write(&number.as_f64().unwrap_or(0.0).to_bits().to_le_bytes());
        }
    }
}

/// Whether a value nests deeper than `levels`. Recursion stops at that depth, so that it cannot exhaust the stack.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, below)),
        Value::Object(map) => map.values().any(|item| is_deeper_than(item, below)),
        _ => false,
    }
}

fn json_length(map: &Map<String, Value>) -> usize {
    struct ByteCounter(usize);
    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    match serde_json::to_writer(&mut count, map) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: HashKey = [7; 16];

    fn print(value: Value) -> u128 {
        Payload::from_json(value).unwrap().fingerprint(&SECRET)
    }

    #[test]
    fn the_order_of_keys_does_not_change_the_fingerprint() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":{"c":[1,2],"d":null}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"b":{"d":null,"c":[1,2]},"a":1.0}"#).unwrap();
        assert_eq!(print(one.clone()), print(two.clone()));
        let canonical = |json: &Value| CanonicalJson::Value(json).to_string();
        assert_eq!(canonical(&one["b"]), canonical(&two["b"]));
        assert_eq!(canonical(&one), r#"{"a":1,"b":{"c":[1,2],"d":null}}"#);
    }

    #[test]
    fn different_content_has_a_different_fingerprint() {
        let all = [
            json!({}),
            json!({"a": ""}),
            json!({"a": null}),
            json!({"a": false}),
            json!({"a": 0}),
            json!({"a": "0"}),
            json!({"a": []}),
            json!({"a": {}}),
            json!({"a": "b", "c": "d"}),
            json!({"a": "d", "c": "b"}),
            json!({"a": [1, 2]}),
            json!({"a": [2, 1]}),
            json!({"a": 0.5}),
            json!({"a": 1e300}),
        ];
        let prints: std::collections::HashSet<_> = all.iter().cloned().map(print).collect();
        assert_eq!(prints.len(), all.len());
    }

    #[test]
    fn a_payload_too_large_or_too_deep_is_refused() {
        let large = Payload::from_json(json!({"x": "y".repeat(1 << 20)})).unwrap_err();
        assert_eq!(large.to_string(), "payload: has 1048584 bytes as JSON; at most 65536 are allowed");
        let mut deep = json!(1);
        for _ in 0..1000 {
            deep = json!({ "x": deep });
        }
        let deep = Payload::from_json(deep).unwrap_err();
        assert_eq!(deep.to_string(), "payload: is nested deeper than 64 levels");
        let list = Payload::from_json(json!([1])).unwrap_err();
        assert_eq!(list.to_string(), "payload: is an array; it must be a JSON object");
    }

    #[test]
    fn a_path_to_nothing_or_to_null_is_missing() {
        let payload = Payload::from_json(json!({"a": {"b": [10, {"c": 3}]}, "n": null})).unwrap();
        assert_eq!(payload.at_path(["a", "b", "1", "c"]), Some(&json!(3)));
        for path in [vec!["a", "x"], vec!["n"], vec!["a", "b", "9"], vec!["a", "b", "c"]] {
            assert_eq!(payload.at_path(path), None);
        }
    }
}
