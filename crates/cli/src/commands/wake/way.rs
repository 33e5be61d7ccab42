//! How a session is woken: what is sent has no text from outside, only how many notifications wait.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::process::Command;

use super::program;
use crate::hook::wakeable::Wakeable;
use crate::hosts::Host;

const SEND_TIMEOUT: Duration = Duration::from_secs(5);
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the user's command may run.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Claude Code's socket for messages of other programs.
    Socket,
    /// `codex queue`: the process that has the session starts a turn when it is idle.
    CodexQueue,
    /// A command line of the user's.
    Command(String),
    /// A line to OpenCode's plugin.
    Plugin,
}

/// What a woken session is told.
pub(super) fn message(count: u64) -> String {
    format!("Bellwire: {count} notifications wait.")
}

impl Way {
    /// The way of a harness; `None` if it has none of its own and there is no command.
    pub(super) fn of(host: Host, command: Option<&str>) -> Option<Self> {
        match (command, host) {
            (Some(command), _) => Some(Self::Command(command.to_owned())),
            (None, Host::ClaudeCode) => Some(Self::Socket),
            (None, Host::Codex) => Some(Self::CodexQueue),
            (None, _) => None,
        }
    }

    /// Whether this session can be woken so. Older versions of Claude Code have no socket.
    pub(super) const fn fits(&self, session: &Wakeable) -> bool {
        !matches!(self, Self::Socket) || session.socket.is_some()
    }

    /// Wakes the session; returns what a program printed.
    pub(super) async fn wake(&self, session: &Wakeable, count: u64) -> Result<String> {
        match self {
            Self::Socket => tokio::time::timeout(SEND_TIMEOUT, write_to_socket(session, count)).await?,
            Self::CodexQueue => program::run(codex_queue(session, count)?, QUEUE_TIMEOUT).await,
            Self::Command(line) => program::run(user_command(line, session, count), COMMAND_TIMEOUT).await,
            Self::Plugin => {
                use std::io::Write as _;
                let line = json!({ "session": session.session, "text": message(count) });
                let mut out = std::io::stdout().lock();
                writeln!(out, "{line}")?;
                out.flush()?;
                Ok(String::new())
            }
        }
    }
}

/// `codex queue` takes the id or the name of a session: only an id is passed, and nothing that could be another option.
fn codex_queue(session: &Wakeable, count: u64) -> Result<Command> {
    let id = &session.session;
    ensure!(
        !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-'),
        "its id is not one of Codex's sessions"
    );
    let mut command = Command::new(session.program.as_deref().unwrap_or(Path::new("codex")));
    command.arg("queue").arg(format!("--thread={id}")).arg(format!("--message={}", message(count)));
    if let Some(home) = &session.codex_home {
        command.env("CODEX_HOME", home);
    }
    enter(&mut command, session);
    Ok(command)
}

/// The user's command line. What describes the session is passed in variables, so that no shell reads it as code.
fn user_command(line: &str, session: &Wakeable, count: u64) -> Command {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = Command::new(shell);
    command.arg(option).arg(line);
    command.env("BELLWIRE_WAKE_HOST", session.host.name());
    command.env("BELLWIRE_WAKE_SESSION", &session.session);
    command.env("BELLWIRE_WAKE_CONVERSATION", session.conversation());
    command.env("BELLWIRE_WAKE_FOLDER", session.folder.as_deref().unwrap_or_default());
    command.env("BELLWIRE_WAKE_COUNT", count.to_string());
    command.env("BELLWIRE_WAKE_MESSAGE", message(count));
    enter(&mut command, session);
    command
}

/// Runs the program in the session's folder, if that is there.
fn enter(command: &mut Command, session: &Wakeable) {
    if let Some(folder) = session.folder.as_deref().map(Path::new).filter(|folder| folder.is_dir()) {
        command.current_dir(folder);
    }
}

/// What is written to Claude Code's socket: who writes, and the message.
fn lines(token: Option<&str>, count: u64) -> String {
    let message = json!({ "type": "user", "message": { "role": "user", "content": message(count) } });
    let auth = token.map(|token| format!("{}\n", json!({ "type": "auth", "token": token }))).unwrap_or_default();
    format!("{auth}{message}\n")
}

#[cfg(unix)]
async fn write_to_socket(session: &Wakeable, count: u64) -> Result<String> {
    use anyhow::Context as _;
    use tokio::io::AsyncWriteExt as _;
    let path = session.socket.as_ref().context("it has no socket")?;
    let mut socket = tokio::net::UnixStream::connect(path).await?;
    socket.write_all(lines(session.token.as_deref(), count).as_bytes()).await?;
    Ok(String::new())
}

#[cfg(not(unix))]
async fn write_to_socket(_session: &Wakeable, _count: u64) -> Result<String> {
    anyhow::bail!("sessions are woken by a Unix socket, which this system does not have")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_says_only_how_much_waits() {
        let expected = "{\"type\":\"auth\",\"token\":\"t\"}\n\
                        {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Bellwire: 2 notifications wait.\"}}\n";
        assert_eq!(lines(Some("t"), 2), expected);
        assert!(!lines(None, 2).contains("auth"));
    }

    #[test]
    fn codex_is_given_an_id_and_nothing_else() {
        let session = |id: &str| Wakeable { host: Host::Codex, ..Wakeable::of_plugin(id.to_owned()) };
        let command = codex_queue(&session("01a1eee0-008c"), 2).expect("an id");
        let arguments: Vec<_> = command.as_std().get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(arguments, ["queue", "--thread=01a1eee0-008c", "--message=Bellwire: 2 notifications wait."]);
        for other in ["", "my session", "--resume", "x; y"] {
            codex_queue(&session(other), 2).expect_err(other);
        }
    }
}
