//! Finds the session of the harness that started this server, for `bellwire mcp --host`.

use crate::hook::processes::{FoundSession, session_of_parent};
use crate::hosts::Host;

/// The conversation of the session in which a tool is called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Conversation {
    One(String),
    /// No session is known.
    Unknown,
    /// The process has several sessions, and the call does not say which.
    Ambiguous,
}

/// What a result says if it is not known from which session the call came.
pub(super) const AMBIGUOUS: &str = "Bellwire does not know which session called: this process has several, so the call \
    belongs to none of them, and answers to it reach no agent.";

/// The conversation of a call: by its `_meta.threadId` (Codex), by the session that a hook has noted for this process, else by
/// the environment (Claude Code). The environment comes last: that of a resumed session names another one.
pub(crate) fn of_call(host: Host, thread: Option<&str>) -> Conversation {
    let known = known(host, thread);
    let variable = || std::env::var("CLAUDE_CODE_SESSION_ID").ok().filter(|value| !value.is_empty());
    match (host, known) {
        (Host::ClaudeCode, Conversation::Unknown | Conversation::Ambiguous) => {
            variable().map_or(Conversation::Unknown, |session| Conversation::One(host.conversation(&session)))
        }
        (_, known) => known,
    }
}

/// The conversation as far as it is certain before a tool is called.
pub(super) fn known(host: Host, thread: Option<&str>) -> Conversation {
    let thread = thread.filter(|_| host == Host::Codex);
    match thread.map_or_else(|| session_of_parent(host), |thread| FoundSession::One(thread.to_owned())) {
        FoundSession::One(session) => Conversation::One(host.conversation(&session)),
        FoundSession::None => Conversation::Unknown,
        FoundSession::Several => Conversation::Ambiguous,
    }
}
