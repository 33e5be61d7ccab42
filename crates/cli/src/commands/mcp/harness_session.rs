//! Finds the session of the harness that started this server, for `bellwire mcp --host`.

use rmcp::model::RequestMetaObject;

use crate::hook::processes::{FoundSession, session_of_parent};
use crate::hosts::Host;

/// The conversation of the session in which a tool is called.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Conversation {
    One(String),
    /// No session is known.
    Unknown,
    /// The process has several sessions, and the call does not say which.
    Ambiguous,
}

/// What a result says if it is not known from which session the call came.
pub(super) const AMBIGUOUS: &str = "Bellwire does not know which session called: this process has several, so the call \
    belongs to none of them, and answers to it reach no agent.";

/// The conversation of a call: by what the call says (Codex), by the environment (Claude Code), else by the process.
pub(super) fn conversation(host: Host, meta: &RequestMetaObject) -> Conversation {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let named = match host {
        Host::Codex => meta.get("threadId").and_then(|value| value.as_str()).map(str::to_owned),
        Host::ClaudeCode => environment("CLAUDE_CODE_SESSION_ID"),
        _ => None,
    };
    match named.map_or_else(|| session_of_parent(host), FoundSession::One) {
        FoundSession::One(session) => Conversation::One(host.conversation(&session)),
        FoundSession::None => Conversation::Unknown,
        FoundSession::Several => Conversation::Ambiguous,
    }
}
