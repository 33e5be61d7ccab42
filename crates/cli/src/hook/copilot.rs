//! Copilot CLI's hooks, as its documentation describes them.

use serde_json::{Value, json};

use super::call::{HookCall, Moment, Outcome, ToolCall, text};

pub(super) fn read(event: &str, input: &Value) -> Option<HookCall> {
    let moment = match event {
        "sessionStart" => Moment::SessionStart { is_fresh: input["source"] != "resume" },
        // Its answer cannot add context.
        "userPromptSubmitted" => Moment::TurnStart { can_add: false },
        "postToolUse" => after_tool(tool(input, None)?),
        "postToolUseFailure" => after_tool(tool(input, Some(error(input)))?),
        "preCompact" => Moment::Compaction,
        // Copilot continues at most 8 times in a row.
        "agentStop" => Moment::TurnEnd { may_continue: true },
        "sessionEnd" => Moment::SessionEnd,
        _ => return None,
    };
    Some(HookCall { session: text(input, "sessionId")?, agent: None, folder: text(input, "cwd"), moment })
}

fn after_tool(tool: ToolCall) -> Moment {
    Moment::AfterTool { call_id: None, tool, can_add: true }
}

fn error(input: &Value) -> String {
    let result = text(&input["toolResult"], "textResultForLlm");
    result.or_else(|| text(input, "error")).unwrap_or_else(|| "failed".to_owned())
}

fn tool(input: &Value, error: Option<String>) -> Option<ToolCall> {
    let outcome = error.as_deref().map_or(Outcome::Success, Outcome::of_error);
    let call = ToolCall::new(&text(input, "toolName")?, outcome);
    // The arguments are JSON in a text.
    let arguments = match &input["toolArgs"] {
        Value::Null => None,
        Value::String(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
        other => Some(other.clone()),
    };
    Some(ToolCall { arguments, error, ..call })
}

/// What is printed, and the exit code: for a failed tool, standard output is the context if the code is 2.
pub(super) fn answer(event: &str, context: &str) -> (String, u8) {
    match event {
        "agentStop" => (json!({ "decision": "block", "reason": context }).to_string(), 0),
        "postToolUseFailure" => (context.to_owned(), 2),
        _ => (json!({ "additionalContext": context }).to_string(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_read_with_the_arguments_in_its_text() {
        let input = json!({
            "sessionId": "s-1", "timestamp": 1_763_000_000_000_i64, "cwd": "/src", "toolName": "bash",
            "toolArgs": "{\"command\":\"exit 3\"}",
            "toolResult": {"resultType": "failure", "textResultForLlm": "exit code 3"},
        });
        let call = read("postToolUseFailure", &input).expect("a known event");
        let Moment::AfterTool { tool, can_add: true, .. } = call.moment else { panic!("{:?}", call.moment) };
        assert_eq!((tool.outcome, tool.error.as_deref()), (Outcome::Failure, Some("exit code 3")));
        assert_eq!(tool.arguments, Some(json!({ "command": "exit 3" })));
        assert_eq!(answer("postToolUseFailure", "text"), ("text".to_owned(), 2));
        assert_eq!(answer("postToolUse", "text"), (r#"{"additionalContext":"text"}"#.to_owned(), 0));
    }
}
