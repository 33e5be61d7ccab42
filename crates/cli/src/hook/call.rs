//! What a hook is told, in one form for every harness.

use serde_json::{Map, Value, json};

/// A call of a hook.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HookCall {
    /// The harness's id of the session.
    pub(super) session: String,
    /// The sub-agent, if it is one's call.
    pub(super) agent: Option<String>,
    /// The working directory of the session.
    pub(super) folder: Option<String>,
    pub(super) moment: Moment,
}

/// Where the agent is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Moment {
    /// A session begins. `is_fresh` is false if the model may remember an older boundary, or has lost it: a resumed, cleared
    /// or compacted session.
    SessionStart { is_fresh: bool },
    /// The context is about to be compacted, and no session start follows.
    Compaction,
    /// A prompt was submitted. `can_add`: whether the answer reaches the model.
    TurnStart { can_add: bool },
    /// A tool call has ended. `can_add` as above.
    AfterTool { call_id: Option<String>, tool: ToolCall, can_add: bool },
    /// The agent wants to stop. It may be told to go on if `may_continue`.
    TurnEnd { may_continue: bool },
    /// A sub-agent has stopped.
    SubagentEnd,
    /// The session has ended.
    SessionEnd,
}

/// A tool call that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    pub(crate) arguments: Option<Value>,
    pub(crate) error: Option<String>,
    pub(crate) duration_ms: Option<u64>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
    Timeout,
}

/// Arguments that are longer, or deeper than an event may be, are replaced by their digest: only the loop detector compares them.
const ARGUMENTS_MAX: usize = 8 * 1024;
const ARGUMENTS_DEPTH_MAX: usize = bellwire_core::Payload::DEPTH_MAX - 1;
/// The largest integer that the hub takes.
const DURATION_MAX: u64 = 1 << 53;
/// In characters.
const ERROR_MAX: usize = 1000;
const NAME_MAX: usize = 200;

impl ToolCall {
    pub(crate) fn new(name: &str, outcome: Outcome) -> Self {
        Self { name: name.to_owned(), outcome, arguments: None, error: None, duration_ms: None }
    }

    /// The field `observed` of an injection. The model has read the result itself.
    pub(crate) fn observed(&self) -> Value {
        let mut observed = Map::from_iter([
            ("tool_name".to_owned(), json!(single_line(&self.name))),
            ("outcome".to_owned(), json!(self.outcome.as_str())),
            ("seen".to_owned(), json!(true)),
        ]);
        let optional = [
            ("arguments", self.arguments.as_ref().map(bounded)),
            ("error_message", self.error.as_ref().map(|error| json!(shortened(error, ERROR_MAX)))),
            ("duration_ms", self.duration_ms.map(|millis| json!(millis.min(DURATION_MAX - 1)))),
        ];
        observed.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        Value::Object(observed)
    }

    /// The same as an event, for a moment at which nothing can be given to the model.
    pub(crate) fn event(&self) -> Value {
        let mut payload = self.observed();
        if let Some(payload) = payload.as_object_mut() {
            payload.remove("outcome");
            payload.remove("seen");
            payload.insert(bellwire_core::Event::SEEN_FIELD.to_owned(), json!(true));
        }
        let severity = match self.outcome {
            Outcome::Success => "info",
            Outcome::Failure => "error",
            Outcome::Timeout => "warning",
        };
        let kind = format!("tool.call.{}", self.outcome.as_str());
        json!({ "type": kind, "source": "tool_executor", "severity": severity, "payload": payload })
    }
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Timeout => "timeout",
        }
    }

    /// The outcome of a call that failed with this text.
    pub(crate) fn of_error(error: &str) -> Self {
        if error.to_ascii_lowercase().contains("timed out") { Self::Timeout } else { Self::Failure }
    }
}

/// A text field of a hook's input; an empty one counts as absent.
pub(super) fn text(input: &Value, key: &str) -> Option<String> {
    input[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Arguments as they are reported: long ones by their digest.
pub(crate) fn bounded(arguments: &Value) -> Value {
    let text = arguments.to_string();
    if text.len() <= ARGUMENTS_MAX && depth(arguments) <= ARGUMENTS_DEPTH_MAX {
        return arguments.clone();
    }
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    // `bellwire watch` leaves out the files that the agent has edited itself.
    let paths = crate::edited_paths::paths_in(arguments);
    json!({ "bytes": text.len(), "digest": format!("{:016x}", hasher.finish()), "paths": paths })
}

/// Containers inside containers. The parser of the input bounds the recursion.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn single_line(name: &str) -> String {
    let line: String = name.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
    let line = line.trim();
    if line.is_empty() { "unknown".to_owned() } else { line.to_owned() }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_observed_stays_within_the_limits_of_an_event() {
        let call = ToolCall {
            arguments: Some(json!({ "content": "x".repeat(200_000) })),
            error: Some("é".repeat(5_000)),
            ..ToolCall::new(&format!("a\nb{}", "c".repeat(400)), Outcome::Failure)
        };
        let observed = call.observed();
        assert!(observed.to_string().len() < 4096, "{observed}");
        assert!(observed["tool_name"].as_str().is_some_and(|name| name.starts_with("abc")), "{observed}");
        assert_eq!(observed["arguments"]["bytes"], 200_014);
        let other = ToolCall { arguments: Some(json!({ "content": "y".repeat(200_000) })), ..call };
        assert_ne!(other.observed()["arguments"], observed["arguments"], "the loop detector can tell them apart");
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let deep = |levels| ToolCall { arguments: Some(nested(levels)), ..ToolCall::new("t", Outcome::Success) };
        assert_eq!(deep(ARGUMENTS_DEPTH_MAX).observed()["arguments"], nested(ARGUMENTS_DEPTH_MAX));
        for levels in [ARGUMENTS_DEPTH_MAX, ARGUMENTS_DEPTH_MAX + 1, 120] {
            let payload = bellwire_core::Payload::from_json(deep(levels).event()["payload"].clone());
            assert!(payload.is_ok(), "{levels}: {payload:?}");
        }
    }
}
