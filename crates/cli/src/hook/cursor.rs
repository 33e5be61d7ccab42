//! Cursor's hooks, as its documentation describes them.

use serde_json::{Value, json};

use super::call::{HookCall, Moment, Outcome, ToolCall, text};
use super::claude_code;

pub(super) fn read(input: &Value) -> Option<HookCall> {
    let moment = match input["hook_event_name"].as_str()? {
        "sessionStart" => Moment::SessionStart { is_fresh: true },
        // Its answer cannot add context.
        "beforeSubmitPrompt" => Moment::TurnStart { can_add: false },
        "postToolUse" => claude_code::after_tool(input, tool(input, Outcome::Success, None)?),
        "postToolUseFailure" => {
            let error = text(input, "error_message").unwrap_or_default();
            let is_timeout = input["failure_type"] == "timeout";
            let outcome = if is_timeout { Outcome::Timeout } else { Outcome::of_error(&error) };
            let call_id = text(input, "tool_use_id");
            Moment::AfterTool { call_id, tool: tool(input, outcome, Some(error))?, can_add: false }
        }
        "preCompact" => Moment::Compaction,
        // Cursor bounds follow-ups by its `loop_limit`.
        "stop" => Moment::TurnEnd { may_continue: input["status"] == "completed" },
        "sessionEnd" => Moment::SessionEnd,
        _ => return None,
    };
    let folder = text(input, "cwd").or_else(|| input["workspace_roots"][0].as_str().map(str::to_owned));
    Some(HookCall { session: text(input, "conversation_id")?, agent: None, folder, moment })
}

fn tool(input: &Value, outcome: Outcome, error: Option<String>) -> Option<ToolCall> {
    let call = claude_code::tool(input, outcome)?;
    Some(ToolCall { error, duration_ms: input["duration"].as_u64(), ..call })
}

pub(super) fn answer(input: &Value, context: &str) -> Value {
    match input["hook_event_name"].as_str() {
        Some("stop") => json!({ "followup_message": context }),
        _ => json!({ "additional_context": context }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(event: &str) -> Value {
        json!({
            "conversation_id": "c-1", "generation_id": "g-1", "model": "m", "hook_event_name": event,
            "cursor_version": "2.4.0", "workspace_roots": ["/src/app"], "user_email": null, "transcript_path": null,
            "tool_name": "Shell", "tool_input": {"command": "exit 3"}, "tool_use_id": "t-1", "duration": 40,
            "error_message": "Command failed", "failure_type": "timeout", "status": "completed", "loop_count": 0,
        })
    }

    #[test]
    fn a_failure_is_observed_and_takes_nothing_because_its_answer_reaches_nobody() {
        let call = read(&input("postToolUseFailure")).expect("a known event");
        assert_eq!((call.session.as_str(), call.folder.as_deref()), ("c-1", Some("/src/app")));
        let Moment::AfterTool { tool, can_add, .. } = call.moment else { panic!("{:?}", call.moment) };
        assert_eq!((tool.outcome, tool.duration_ms, can_add), (Outcome::Timeout, Some(40), false));
    }

    #[test]
    fn answers_have_the_field_of_their_event() {
        assert_eq!(answer(&input("postToolUse"), "text"), json!({ "additional_context": "text" }));
        assert_eq!(answer(&input("stop"), "text"), json!({ "followup_message": "text" }));
    }
}
