use anyhow::{Result, bail};
use clap::Args;

use crate::hook::notes;
use crate::hosts::Host;
use crate::output::printable;

/// Silence the hooks of a session: nothing is reported, and nothing is given to its agent
///
/// What is published meanwhile waits for `bellwire resume`. This is noted on this machine, for the hooks of `bellwire install`.
#[derive(Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    which: Which,
}

/// End what `bellwire pause` began
#[derive(Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
struct Which {
    /// The session's conversation, such as claude-code:ID [default: the session in whose shell this runs]
    #[arg(conflicts_with = "all")]
    conversation: Option<String>,
    /// All sessions of this user
    #[arg(long)]
    all: bool,
}

pub(crate) fn run_pause(arguments: &PauseArgs) -> Result<bool> {
    arguments.which.set(true)
}

pub(crate) fn run_resume(arguments: &ResumeArgs) -> Result<bool> {
    arguments.which.set(false)
}

impl Which {
    fn set(&self, paused: bool) -> Result<bool> {
        let conversation = match (&self.conversation, self.all) {
            (_, true) => None,
            (Some(id), _) => Some(id.clone()),
            (None, false) => Some(of_shell(|name| std::env::var(name).ok())?),
        };
        let changed = notes::set_paused(conversation.as_deref(), paused)?;
        let Some(name) = conversation else {
            anstream::eprintln!("{}", told_of_all(paused, changed));
            return Ok(true);
        };
        let state = match (paused, changed) {
            (true, true) => "is silent until bellwire resume",
            (true, false) => "was silent already",
            (false, _) if notes::is_paused(&name) => "stays silent: all sessions are, until bellwire resume --all",
            (false, true) => "hears again",
            (false, false) => "was not silent",
        };
        anstream::eprintln!("{} {state}", printable(&name));
        Ok(true)
    }
}

const fn told_of_all(paused: bool, changed: bool) -> &'static str {
    match (paused, changed) {
        (true, true) => "every session is silent until bellwire resume --all",
        (true, false) => "every session was silent already",
        (false, true) => "every session hears again",
        (false, false) => "no session was silent",
    }
}

/// The conversation of the session in whose shell this process runs.
fn of_shell(variable: impl Fn(&str) -> Option<String>) -> Result<String> {
    match Host::session_of_shell(variable) {
        Some((host, session)) => Ok(host.conversation(&session)),
        None => bail!("which session? Name its conversation (bellwire conversations lists them), or say --all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_of_an_agents_shell_is_known_by_its_variable() {
        let shell = |name: &str| (name == "CODEX_SESSION_ID").then(|| "t1".to_owned());
        assert_eq!(of_shell(shell).expect("it is known"), "codex:t1");
        assert!(of_shell(|_| None).is_err());
    }
}
