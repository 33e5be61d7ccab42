//! Which harness runs the hook. Cursor and Copilot run the hooks of Claude Code's settings too: a hook that took notifications
//! there would take them from the hook that belongs to that harness.

use serde_json::Value;

use crate::hosts::Host;

/// The harness that sent this input, if it is not the one that the hook was installed for.
pub(super) fn other_host(installed_for: Host, input: &Value) -> Option<Host> {
    let has = |key: &str| !input[key].is_null();
    let found = if has("cursor_version") {
        Host::Cursor
    } else if has("toolName") || has("sessionId") {
        Host::Copilot
    } else if has("event") && has("session") {
        Host::OpenCode
    } else if has("turn_id") && !has("prompt_id") {
        Host::Codex
    } else if has("timestamp") && has("session_id") {
        // Copilot sends Claude Code's names with a number as its time.
        if input["timestamp"].is_string() { Host::Gemini } else { Host::Copilot }
    } else if installed_for == Host::Codex && has("session_id") && !has("prompt_id") {
        // Codex's session start has no turn yet.
        Host::Codex
    } else {
        Host::ClaudeCode
    };
    (found != installed_for).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hook_of_another_harness_is_recognised_by_its_input() {
        let claude = json!({ "session_id": "s", "hook_event_name": "PostToolUse", "prompt_id": "p" });
        let codex = json!({ "session_id": "s", "hook_event_name": "PostToolUse", "turn_id": "1", "model": "m" });
        let gemini = json!({ "session_id": "s", "hook_event_name": "AfterTool", "timestamp": "2026-11-16T10:00:00Z" });
        let cursor =
            json!({ "conversation_id": "c", "session_id": "c", "cursor_version": "2", "hook_event_name": "stop" });
        let copilot = json!({ "sessionId": "s", "timestamp": 1, "toolName": "bash" });
        let copilot_as_claude = json!({ "session_id": "s", "hook_event_name": "Stop", "timestamp": 1 });
        let opencode = json!({ "event": "session.idle", "session": "s" });
        for (host, input) in [
            (Host::ClaudeCode, &claude),
            (Host::Codex, &codex),
            (Host::Gemini, &gemini),
            (Host::Cursor, &cursor),
            (Host::Copilot, &copilot),
            (Host::Copilot, &copilot_as_claude),
            (Host::OpenCode, &opencode),
        ] {
            assert_eq!(other_host(host, input), None, "{host:?}");
            for other in Host::ALL.into_iter().filter(|other| *other != host) {
                assert_eq!(other_host(other, input), Some(host), "{other:?} with {input}");
            }
        }
        let start = json!({ "session_id": "s", "hook_event_name": "SessionStart", "source": "startup" });
        assert_eq!(other_host(Host::Codex, &start), None);
        assert_eq!(other_host(Host::ClaudeCode, &start), None);
    }
}
