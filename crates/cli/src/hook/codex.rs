//! Codex's hooks: Claude Code's form, with a strict schema for answers.

use serde_json::{Value, json};

use super::call::{HookCall, Moment, Outcome, ToolCall, text};
use super::{claude_code, codex_transcript};

pub(super) fn read(input: &Value) -> Option<HookCall> {
    let moment = match input["hook_event_name"].as_str()? {
        // There is no event for failures.
        "PostToolUse" => {
            let call = claude_code::tool(input, Outcome::Success)?;
            claude_code::after_tool(input, with_outcome(call, input))
        }
        "PostCompact" => Moment::Compaction,
        // Codex has no limit of its own.
        "Stop" => Moment::TurnEnd { may_continue: input["stop_hook_active"] != true },
        _ => return claude_code::read(input),
    };
    let session = text(input, "session_id")?;
    Some(HookCall { session, agent: text(input, "agent_id"), folder: text(input, "cwd"), moment })
}

/// The outcome of a call. Of a command, the hook is given only what it printed, not how it ended: that stands in the
/// transcript. What a command printed is not searched, because it may contain any words.
fn with_outcome(call: ToolCall, input: &Value) -> ToolCall {
    let response = &input["tool_response"];
    let is_error = response["isError"] == true || response["is_error"] == true;
    let noted = || codex_transcript::exit_code(&text(input, "transcript_path")?, &text(input, "tool_use_id")?);
    match response["exit_code"].as_i64().or_else(noted).filter(|code| *code != 0) {
        Some(code) => ToolCall { outcome: Outcome::Failure, error: Some(format!("exit code {code}")), ..call },
        None if is_error => ToolCall { outcome: Outcome::Failure, ..call },
        None => call,
    }
}

pub(super) fn answer(input: &Value, context: &str, line: Option<&str>) -> Value {
    if input["hook_event_name"] == "Stop" {
        return json!({ "decision": "block", "reason": context });
    }
    claude_code::answer(input, context, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Codex 0.166.0, shortened.
    #[test]
    fn only_a_result_that_says_so_is_a_failure() {
        let input = |response: Value| {
            json!({
                "session_id": "01a1", "turn_id": "01a2", "transcript_path": "/t.jsonl", "cwd": "/src",
                "hook_event_name": "PostToolUse", "model": "m", "permission_mode": "default", "tool_name": "Bash",
                "tool_input": {"command": "exit 3"}, "tool_response": response, "tool_use_id": "call_2",
            })
        };
        let outcome = |response| match read(&input(response)).map(|call| call.moment) {
            Some(Moment::AfterTool { tool, call_id: Some(_), can_add: true }) => tool.outcome,
            other => panic!("{other:?}"),
        };
        assert_eq!(outcome(json!("Exit Code: 3\n")), Outcome::Success, "what a command printed proves nothing");
        assert_eq!(outcome(json!({ "content": [], "isError": true })), Outcome::Failure);
        assert_eq!(outcome(json!({ "output": "", "exit_code": 3 })), Outcome::Failure);
    }

    #[test]
    fn a_turn_is_continued_once_and_in_the_form_of_a_stop() {
        let stop = |active| json!({ "hook_event_name": "Stop", "session_id": "t1", "stop_hook_active": active });
        let moment = |active| read(&stop(active)).expect("a known event").moment;
        assert_eq!(moment(false), Moment::TurnEnd { may_continue: true });
        assert_eq!(moment(true), Moment::TurnEnd { may_continue: false });
        assert_eq!(answer(&stop(false), "text", Some("line")), json!({ "decision": "block", "reason": "text" }));
    }
}
