//! What the plugin that `bellwire install opencode` writes sends for OpenCode, and expects.

use serde_json::{Value, json};

use super::call::{HookCall, Moment, Outcome, ToolCall, text};

pub(super) fn read(input: &Value) -> Option<HookCall> {
    let moment = match input["event"].as_str()? {
        "session.compacted" => Moment::Compaction,
        "chat.message" => Moment::TurnStart { can_add: true },
        "tool.execute.after" => Moment::AfterTool { call_id: text(input, "call"), tool: tool(input)?, can_add: true },
        // A tool that threw: the model reads the error, and nothing can be added to it.
        "tool.failed" => Moment::AfterTool { call_id: text(input, "call"), tool: tool(input)?, can_add: false },
        "session.idle" => Moment::TurnEnd { may_continue: false },
        "session.deleted" => Moment::SessionEnd,
        _ => return None,
    };
    Some(HookCall {
        session: text(input, "session")?,
        agent: text(input, "agent"),
        folder: text(input, "folder"),
        moment,
    })
}

fn tool(input: &Value) -> Option<ToolCall> {
    let name = text(input, "tool")?;
    let call = ToolCall { arguments: Some(input["arguments"].clone()), ..ToolCall::new(&name, Outcome::Success) };
    match (input["exit"].as_i64(), text(input, "error")) {
        (_, Some(error)) => Some(ToolCall { outcome: Outcome::of_error(&error), error: Some(error), ..call }),
        (Some(code), None) if code != 0 => {
            Some(ToolCall { outcome: Outcome::Failure, error: Some(format!("exit code {code}")), ..call })
        }
        _ => Some(call),
    }
}

pub(super) fn answer(context: &str, line: Option<&str>) -> Value {
    json!({ "context": context, "line": line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_session_is_a_sub_agent_of_its_root() {
        let input = json!({
            "event": "tool.execute.after", "session": "ses_root", "agent": "ses_child", "folder": "/src", "call": "c1",
            "tool": "bash", "arguments": {"command": "exit 3"}, "exit": 3,
        });
        let call = read(&input).expect("a known event");
        assert_eq!((call.session.as_str(), call.agent.as_deref()), ("ses_root", Some("ses_child")));
        let Moment::AfterTool { tool, .. } = call.moment else { panic!("{:?}", call.moment) };
        assert_eq!(tool.outcome, Outcome::Failure);
    }
}
