use std::fmt;

use serde_json::{Map, Value};

/// A value as canonical JSON: equal values give equal text.
pub fn canonical_json(value: &Value) -> String {
    CanonicalJson::Value(value).to_string()
}

/// Displays as JSON with sorted keys and no spaces, whatever features serde_json was built with. It is written
/// incrementally, so that a reader of the beginning can stop early.
pub(crate) enum CanonicalJson<'a> {
    Value(&'a Value),
    Object(&'a Map<String, Value>),
    List(&'a [Value]),
}

impl fmt::Display for CanonicalJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Value(Value::Object(map)) | Self::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                write_joined(f, ["{", "}"], entries.into_iter(), |(key, value), f| {
                    write!(f, "{}:{}", Value::from(key.as_str()), Self::Value(value))
                })
            }
            Self::Value(Value::Array(items)) => Self::List(items).fmt(f),
            Self::List(items) => write_joined(f, ["[", "]"], items.iter(), |item, f| Self::Value(item).fmt(f)),
            Self::Value(scalar) => scalar.fmt(f),
        }
    }
}

fn write_joined<T>(
    f: &mut fmt::Formatter<'_>,
    [open, close]: [&str; 2],
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write(item, f)?;
    }
    f.write_str(close)
}
