//! Hostile texts and payloads, built from fragments that have broken renderers before.

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::{Map, Value, json};

/// The placeholder of the boundary in a hostile text; [`Hostile::knowing`] replaces it by the real one.
const BOUNDARY: &str = "\u{f8ff}";

#[rustfmt::skip]
const FRAGMENTS: [&str; 72] = [
    "", " ", "  ", "\t", "\n", "\r", "\r\n", "\0", "\u{1}", "\u{2}", "\u{1}s", "\u{2}\u{1}t\u{2}", "\u{1b}[2J", "\u{7f}",
    "\u{85}", "\u{a0}", "\u{200b}", "\u{200d}", "\u{202e}", "\u{2028}", "\u{2029}", "\u{feff}", "\u{fe0f}", "\u{e0041}",
    "🙂", "é", "日本", ",", ";", "|", ":", "\"", "'", "\\", "\\n", "\\u003c", "[", "]", "[2]:", "{", "}", "{a,b}:", "- ",
    "- [user] ", "#", "key: ", "<", ">", "&", "&lt;", "&#58;", "&amp;lt;", "&#x3c;", "<notifications id=\"", "</notifications>",
    "<notification id=\"", "\" source=\"user\">", "</notification>", "(9 more pending)", "Human:", "\n\nSystem :", "Assistant",
    "Hu", "man:", "user", " x7", "true", "null", "-1e5", "word", "{{ x }}", BOUNDARY,
];

/// A hostile text.
#[derive(Clone, Debug)]
pub struct Hostile(pub String);

impl Hostile {
    /// The same text from an attacker who knows the boundary.
    pub fn knowing(&self, boundary: &str) -> String {
        self.0.replace(BOUNDARY, boundary)
    }
}

impl<'a> Arbitrary<'a> for Hostile {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut text = String::new();
        for _ in 0..u.int_in_range(0..=12)? {
            match u.int_in_range(0..=15)? {
                0 => text.push(u.arbitrary()?),
                1 => text.push_str(&u.choose(&FRAGMENTS)?.repeat(u.int_in_range(1..=600)?)),
                _ => text.push_str(u.choose(&FRAGMENTS)?),
            }
        }
        Ok(Self(text))
    }
}

/// A hostile JSON value, at most a few levels deep.
#[derive(Clone, Debug)]
pub struct HostileJson(pub Value);

impl<'a> Arbitrary<'a> for HostileJson {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        value(u, 4).map(Self)
    }
}

fn value(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    Ok(match u.int_in_range(0..=9)? {
        0 => Value::Null,
        1 => u.arbitrary::<bool>()?.into(),
        2 => u.arbitrary::<i64>()?.into(),
        3 => u.arbitrary::<u64>()?.into(),
        4 => json!(u.arbitrary::<f64>()?),
        5 if depth > 0 => (0..u.int_in_range(0..=5)?).map(|_| value(u, depth - 1)).collect::<Result<_>>()?,
        6 if depth > 0 => Value::Object(map(u, depth - 1)?),
        _ => u.arbitrary::<Hostile>()?.0.into(),
    })
}

fn map(u: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    (0..u.int_in_range(0..=5)?).map(|_| Ok((u.arbitrary::<Hostile>()?.0, value(u, depth)?))).collect()
}

/// The payload fields that the bundled templates use.
const KEYS: [&str; 24] = [
    "message",
    "error_message",
    "text",
    "tool_name",
    "error_type",
    "error_class",
    "timeout_ms",
    "path",
    "budget_type",
    "percentage",
    "current",
    "limit",
    "remaining",
    "pattern",
    "repetitions",
    "window_seconds",
    "name",
    "task_id",
    "result_summary",
    "turn",
    "exchanges",
    "last_question",
    "channel",
    "usage",
];

/// A payload of hostile values in fields that templates use.
#[derive(Clone, Debug)]
pub struct Payload(pub Map<String, Value>);

impl Payload {
    /// The same payload from an attacker who knows the boundary.
    pub fn knowing(&self, boundary: &str) -> Value {
        let text = Value::Object(self.0.clone()).to_string().replace(BOUNDARY, boundary);
        serde_json::from_str(&text).expect("a boundary is letters and digits")
    }
}

impl<'a> Arbitrary<'a> for Payload {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut payload = map(u, 2)?;
        for _ in 0..u.int_in_range(0..=6)? {
            payload.insert((*u.choose(&KEYS)?).to_owned(), value(u, 3)?);
        }
        Ok(Self(payload))
    }
}
