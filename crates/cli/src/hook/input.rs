//! What a harness sends on standard input.
//!
//! Harnesses send whole tool results, which hooks do not need and which may contain anything: text that was cut in the middle of
//! a character, numbers without end, deep nesting. A field that cannot be read must not silence the hook, so each is read on
//! its own, and one that cannot be read counts as null.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Result, ensure};
use serde_json::Value;
use serde_json::value::RawValue;

/// In bytes. Above this, the hook is silent.
const INPUT_MAX: u64 = 256 * 1024 * 1024;

/// Reads to the end of the input.
pub(super) fn read(source: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(INPUT_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= INPUT_MAX, "the input is larger than {INPUT_MAX} bytes");
    Ok(bytes)
}

/// The object that was sent.
pub(super) fn parse(bytes: &[u8]) -> Result<Value> {
    let text = String::from_utf8_lossy(bytes);
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(&text)?;
    let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
    Ok(fields.into_iter().map(|(name, raw)| (name, read(raw))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_that_cannot_be_read_does_not_hide_the_others() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for strange in [r#""cut \ud83d""#, "1e999", deep.as_str(), r#"{"a": ["\udc00"]}"#] {
            let text = format!(r#"{{"session_id": "s", "tool_response": {strange}, "tool_use_id": "t"}}"#);
            let input = parse(text.as_bytes()).expect("an object");
            assert_eq!(input, json!({ "session_id": "s", "tool_response": null, "tool_use_id": "t" }));
        }
        let no_text = parse(&b"{\"session_id\": \"s\", \"prompt\": \"\xff\"}"[..]).expect("an object");
        assert_eq!(no_text, json!({ "session_id": "s", "prompt": "\u{fffd}" }));
        let twice = parse(&br#"{"a": 1, "b": {"c": [2]}, "a": 3}"#[..]).expect("an object");
        assert_eq!(twice, json!({ "a": 3, "b": { "c": [2] } }));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "7", "null", "{\"a\": }", "{\"a\": 1} {}", "{\"a\": 1"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
