//! Adds a block to the content of a tool's result, and leaves all other bytes as they are.

use serde_json::Value;

use super::message::{elements, offset};

/// Where a block can be added to a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The offset of the `]` that ends `content`.
    pub(super) end: usize,
    /// Whether `content` has no element yet.
    is_empty: bool,
}

impl Place {
    /// The end of the array `content`, which is a part of `message`; `None` if it is no array.
    pub(super) fn at_end_of(content: &str, message: &str) -> Option<Self> {
        let is_empty = elements(content)?.is_empty();
        Some(Self { end: offset(message, content) + content.len() - 1, is_empty })
    }

    /// The same place in a text that `message` is a part of.
    pub(super) fn moved(self, by: usize) -> Self {
        Self { end: self.end + by, ..self }
    }

    /// What is inserted here: one line of JSON, so that neither lines nor server-sent events break.
    pub(super) fn insertion(self, text: &str) -> String {
        let comma = if self.is_empty { "" } else { "," };
        format!(r#"{comma}{{"type":"text","text":{}}}"#, Value::from(text))
    }
}

/// Inserts texts at these offsets, which are in ascending order.
pub(super) fn insert(bytes: &mut Vec<u8>, insertions: &[(usize, String)]) {
    for (at, text) in insertions.iter().rev() {
        bytes.splice(*at..*at, text.bytes());
    }
}
