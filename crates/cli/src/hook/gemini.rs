//! Gemini CLI's hooks.

use serde_json::{Value, json};

use super::call::{HookCall, Moment, Outcome, ToolCall, text};
use super::claude_code;

/// The tool that runs commands.
const SHELL: &str = "run_shell_command";

pub(super) fn read(input: &Value) -> Option<HookCall> {
    let moment = match input["hook_event_name"].as_str()? {
        "SessionStart" => Moment::SessionStart { is_fresh: input["source"] == "startup" },
        "BeforeAgent" => Moment::TurnStart { can_add: true },
        "AfterTool" => Moment::AfterTool { call_id: None, tool: tool(input)?, can_add: true },
        // Gemini has no limit of its own.
        "AfterAgent" => Moment::TurnEnd { may_continue: input["stop_hook_active"] != true },
        "PreCompress" => Moment::Compaction,
        "SessionEnd" => Moment::SessionEnd,
        _ => return None,
    };
    Some(HookCall { session: text(input, "session_id")?, agent: None, folder: text(input, "cwd"), moment })
}

fn tool(input: &Value) -> Option<ToolCall> {
    let call = claude_code::tool(input, Outcome::Success)?;
    let response = &input["tool_response"];
    let failed = |error: String| ToolCall { outcome: Outcome::of_error(&error), error: Some(error), ..call.clone() };
    let error = response["error"].as_str().or_else(|| response["error"]["message"].as_str());
    let result = response["llmContent"].as_str().filter(|_| call.name == SHELL);
    let code = result.and_then(exit_code).filter(|code| *code != 0);
    let error = error.map(str::to_owned).or_else(|| code.map(|code| format!("exit code {code}")));
    Some(error.map_or_else(|| call.clone(), failed))
}

/// The exit code of a command, which Gemini writes behind the output if it is not 0, with at most these lines after it. Lines
/// of the output itself prove nothing.
fn exit_code(result: &str) -> Option<i64> {
    // Gemini puts a tag around the result before its hooks see it.
    let result = result.trim_end().strip_suffix("</untrusted_context>").unwrap_or(result);
    let behind = ["Signal: ", "Background PIDs: ", "Process Group PGID: "];
    let line = result.lines().rev().find(|line| !behind.iter().any(|label| line.starts_with(label)))?;
    line.strip_prefix("Exit Code: ")?.trim().parse().ok()
}

pub(super) fn answer(input: &Value, context: &str, line: Option<&str>) -> Value {
    let mut answer = match input["hook_event_name"].as_str() {
        Some("AfterAgent") => json!({ "decision": "deny", "reason": context }),
        event => json!({
            "hookSpecificOutput": { "hookEventName": event, "additionalContext": escaped(context) },
        }),
    };
    if let Some(line) = line {
        answer["systemMessage"] = json!(line);
    }
    answer
}

/// Gemini escapes `<` and `>` but not `&`: unescaped by the model's reading, a harmless `&lt;/notifications>` in a value would
/// be the real end tag.
fn escaped(context: &str) -> String {
    context.replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_a_failure() {
        let input = json!({
            "session_id": "g1", "transcript_path": "/t.json", "cwd": "/src", "hook_event_name": "AfterTool",
            "timestamp": "2026-11-16T10:00:00.000Z", "tool_name": "run_shell_command",
            "tool_input": {"command": "exit 3"},
            "tool_response": {"llmContent": "Command: exit 3\nExit Code: 3", "returnDisplay": ""},
        });
        let call = read(&input).expect("a known event");
        let Moment::AfterTool { call_id: None, tool, can_add: true } = call.moment else { panic!("{:?}", call.moment) };
        assert_eq!(exit_code("Output: x\nExit Code: 2\nSignal: 9\nProcess Group PGID: 7"), Some(2));
        // As Gemini CLI 0.61.0 gives it to its hooks.
        let real = "<untrusted_context>\nOutput: broken\nExit Code: 3\nProcess Group PGID: 8656\n</untrusted_context>";
        assert_eq!(exit_code(real), Some(3));
        assert_eq!(exit_code("Output: Exit Code: 4\nExit Code: 4\nall is well"), None, "printed by the command");
        assert_eq!((tool.outcome, tool.error.as_deref()), (Outcome::Failure, Some("exit code 3")));
        let log = json!({ "tool_name": "read_file", "tool_response": {"llmContent": "Exit Code: 3"} });
        assert_eq!(super::tool(&log).map(|tool| tool.outcome), Some(Outcome::Success), "a file that was read");
    }

    #[test]
    fn after_one_unescape_the_block_is_what_the_hub_sent() {
        let context = "<notifications id=\"x\">\n- a &lt;/notifications> & b\n</notifications>";
        let answer = answer(&json!({ "hook_event_name": "AfterTool" }), context, None);
        let sent = answer["hookSpecificOutput"]["additionalContext"].as_str().expect("text");
        let shown = sent.replace('<', "&lt;").replace('>', "&gt;");
        assert!(!shown.contains("&lt;/notifications&gt; &"), "{shown}");
        let unescaped = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        assert_eq!(unescaped, context);
    }
}
