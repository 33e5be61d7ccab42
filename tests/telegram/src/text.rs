//! The text of a message: its length after entities, in UTF-16 code units, and the ranges of its entities.

use serde_json::Value;

use crate::answer::Answer;

/// The longest text of a message, in UTF-16 code units.
const TEXT_UNITS_MAX: usize = 4096;
/// The most bytes that the API reads before it looks at the text at all.
const TEXT_BYTES_MAX: usize = 1 << 15;
const ENTITY_TYPES: [&str; 20] = [
    "mention",
    "hashtag",
    "cashtag",
    "bot_command",
    "url",
    "email",
    "phone_number",
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
    "date_time",
];

/// Checks a text and its entities; returns the text as it is stored.
pub(crate) fn check(text: Option<&str>, entities: Option<&Value>) -> Result<String, Answer> {
    let text = text.filter(|text| !text.is_empty()).ok_or_else(|| Answer::bad_request("message text is empty"))?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(Answer::bad_request("text is too long"));
    }
    // Telegram cuts the white space at the end; white space alone is no message.
    let kept = text.trim_end();
    if kept.trim_start().is_empty() {
        return Err(Answer::bad_request("text must be non-empty"));
    }
    if kept.encode_utf16().count() > TEXT_UNITS_MAX {
        return Err(Answer::bad_request("message is too long"));
    }
    for entity in list(entities)? {
        check_entity(entity, text)?;
    }
    Ok(kept.to_owned())
}

fn list(entities: Option<&Value>) -> Result<&[Value], Answer> {
    match entities {
        None => Ok(&[]),
        Some(Value::Array(entities)) => Ok(entities),
        Some(_) => Err(Answer::bad_request("expected an Array of MessageEntity")),
    }
}

fn check_entity(entity: &Value, text: &str) -> Result<(), Answer> {
    let kind = entity["type"].as_str().unwrap_or_default();
    if !ENTITY_TYPES.contains(&kind) {
        return Err(Answer::bad_request(&format!("can't parse MessageEntity: unsupported type '{kind}'")));
    }
    if kind == "text_link" && entity["url"].as_str().is_none_or(str::is_empty) {
        return Err(Answer::bad_request("can't parse MessageEntity: can't find field \"url\""));
    }
    let (Some(offset), Some(length)) = (entity["offset"].as_u64(), entity["length"].as_u64().filter(|n| *n > 0)) else {
        return Err(Answer::bad_request("receive an entity with incorrect offset or length"));
    };
    let end = offset.saturating_add(length);
    let units: u64 = text.chars().map(|c| c.len_utf16() as u64).sum();
    if end > units {
        return Err(Answer::bad_request(&format!(
            "entity beginning at UTF-16 offset {offset} ends after the end of the text at UTF-16 offset {end}"
        )));
    }
    for edge in [offset, end] {
        if !is_boundary(text, edge) {
            return Err(Answer::bad_request(&format!(
                "entity beginning at UTF-16 offset {offset} ends in a middle of a UTF-16 symbol at UTF-16 offset {edge}"
            )));
        }
    }
    Ok(())
}

/// Whether a character begins or the text ends at this offset.
fn is_boundary(text: &str, edge: u64) -> bool {
    let mut at = 0;
    for c in text.chars() {
        if at >= edge {
            break;
        }
        at += c.len_utf16() as u64;
    }
    at == edge
}
