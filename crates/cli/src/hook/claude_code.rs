//! Claude Code's hooks.

use serde_json::{Value, json};

use super::call::{HookCall, Moment, Outcome, ToolCall, text};

pub(super) fn read(input: &Value) -> Option<HookCall> {
    let moment = match input["hook_event_name"].as_str()? {
        "SessionStart" => Moment::SessionStart { is_fresh: input["source"] == "startup" },
        "UserPromptSubmit" => Moment::TurnStart { can_add: true },
        "PostToolUse" => after_tool(input, tool(input, Outcome::Success)?),
        "PostToolUseFailure" => {
            let error = text(input, "error").unwrap_or_default();
            let call = tool(input, Outcome::of_error(&error))?;
            after_tool(input, ToolCall { error: Some(error), ..call })
        }
        // Claude Code continues at most 8 times in a row.
        "Stop" => Moment::TurnEnd { may_continue: true },
        // Without its id it would be taken for the main agent, which goes on.
        "SubagentStop" if text(input, "agent_id").is_some() => Moment::SubagentEnd,
        "SessionEnd" => Moment::SessionEnd,
        _ => return None,
    };
    let session = text(input, "session_id")?;
    Some(HookCall { session, agent: text(input, "agent_id"), folder: text(input, "cwd"), moment })
}

/// Context beside the prompt or behind the tool's result; at a stop it continues the turn.
pub(super) fn answer(input: &Value, context: &str, line: Option<&str>) -> Value {
    let mut answer = json!({
        "hookSpecificOutput": { "hookEventName": input["hook_event_name"], "additionalContext": context },
    });
    if let Some(line) = line {
        answer["systemMessage"] = json!(line);
    }
    answer
}

pub(super) fn tool(input: &Value, outcome: Outcome) -> Option<ToolCall> {
    let call = ToolCall::new(&text(input, "tool_name")?, outcome);
    let arguments = Some(input["tool_input"].clone()).filter(|value| !value.is_null());
    Some(ToolCall { arguments, duration_ms: input["duration_ms"].as_u64(), ..call })
}

pub(super) fn after_tool(input: &Value, tool: ToolCall) -> Moment {
    Moment::AfterTool { call_id: text(input, "tool_use_id"), tool, can_add: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields that Claude Code 2.1.325 sends, with other values.
    const FAILED: &str = r#"{
        "session_id": "8d1c", "transcript_path": "/t/8d1c.jsonl", "cwd": "/src/app", "prompt_id": "p1",
        "permission_mode": "default", "effort": {"level": "high"}, "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash", "tool_input": {"command": "exit 3"}, "tool_use_id": "toolu_1",
        "error": "Exit code 3", "is_interrupt": false, "duration_ms": 12
    }"#;

    fn parse(json: &str) -> Value {
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn a_failed_tool_is_read_with_its_error_and_id() {
        let call = read(&parse(FAILED)).expect("a known event");
        assert_eq!((call.session.as_str(), call.folder.as_deref(), call.agent), ("8d1c", Some("/src/app"), None));
        let Moment::AfterTool { call_id, tool, can_add: true } = call.moment else { panic!("{:?}", call.moment) };
        assert_eq!((call_id.as_deref(), tool.outcome), (Some("toolu_1"), Outcome::Failure));
        assert_eq!((tool.error.as_deref(), tool.duration_ms), (Some("Exit code 3"), Some(12)));
        assert_eq!(tool.arguments, Some(json!({ "command": "exit 3" })));
    }

    #[test]
    fn only_a_new_session_keeps_its_boundary() {
        for (source, is_fresh) in [("startup", true), ("resume", false), ("clear", false), ("compact", false)] {
            let input = json!({ "hook_event_name": "SessionStart", "session_id": "s", "source": source });
            let call = read(&input).expect("a known event");
            assert_eq!(call.moment, Moment::SessionStart { is_fresh }, "{source}");
        }
    }

    #[test]
    fn events_that_are_not_ours_and_inputs_without_a_session_are_passed_over() {
        assert_eq!(read(&json!({ "hook_event_name": "PreToolUse", "session_id": "s" })), None);
        assert_eq!(read(&json!({ "hook_event_name": "Stop" })), None);
        assert_eq!(read(&json!([])), None);
        let stop = json!({ "hook_event_name": "SubagentStop", "session_id": "s" });
        assert_eq!(read(&stop), None, "the main agent has not ended its turn");
    }

    #[test]
    fn the_answer_names_the_event_that_asked() {
        let answer = answer(&parse(FAILED), "text", Some("Bellwire: 1 notification"));
        assert_eq!(
            answer,
            json!({
                "hookSpecificOutput": { "hookEventName": "PostToolUseFailure", "additionalContext": "text" },
                "systemMessage": "Bellwire: 1 notification",
            })
        );
    }
}
