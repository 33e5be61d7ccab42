use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// In `_meta` of a call: its caller has made it before and does not know the outcome.
pub(crate) const ASKS_AGAIN: &str = "bellwire/asks_again";
/// How many parts of a message are read from another process; more than a channel makes.
const PARTS_MAX: usize = 64;
/// In bytes: the longest id of a part.
const PART_ID_MAX: usize = 998;

/// What an answer says beyond its envelope. The fields of the envelopes are fixed, so between processes it is in `_meta` of
/// the MCP result, where a process that does not know it ignores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AnswerMeta {
    /// The attempt goes on: the caller may ask again for its outcome.
    #[serde(rename = "bellwire/in_flight", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_in_flight: bool,
    /// The target does not exist, or its owner has blocked the hub.
    #[serde(rename = "bellwire/target_unreachable", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_unreachable: bool,
    /// The Messenger has recorded that nothing was delivered, and that the request may be repeated.
    #[serde(rename = "bellwire/released", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_released: bool,
    /// The ids of the parts that were delivered after the first.
    #[serde(rename = "bellwire/further_parts", skip_serializing_if = "Vec::is_empty")]
    pub(crate) further_parts: Vec<String>,
}

impl AnswerMeta {
    /// Reads `_meta` of a result. What cannot be read says nothing.
    pub(crate) fn read(meta: &Value) -> Self {
        let mut read: Self = serde_json::from_value(meta.clone()).unwrap_or_default();
        read.further_parts.retain(|id| id.len() <= PART_ID_MAX);
        read.further_parts.truncate(PARTS_MAX);
        read
    }

    pub(crate) fn into_map(self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_garbage_says_nothing() {
        let further_parts = vec!["8".to_owned()];
        let full = AnswerMeta { is_in_flight: true, is_unreachable: true, is_released: true, further_parts };
        assert_eq!(AnswerMeta::read(&Value::Object(full.clone().into_map())), full);
        assert!(AnswerMeta::default().into_map().is_empty());
        let foreign = json!({"io.example/x": 1, "bellwire/in_flight": true});
        assert!(AnswerMeta::read(&foreign).is_in_flight);
        for garbage in [json!(null), json!([]), json!("x"), json!({"bellwire/in_flight": "yes"})] {
            assert_eq!(AnswerMeta::read(&garbage), AnswerMeta::default(), "{garbage}");
        }
        let many = json!({"bellwire/further_parts": vec!["1"; 1_000]});
        assert_eq!(AnswerMeta::read(&many).further_parts.len(), PARTS_MAX);
        let long = json!({"bellwire/further_parts": ["1".repeat(1_000)]});
        assert!(AnswerMeta::read(&long).further_parts.is_empty());
    }
}
