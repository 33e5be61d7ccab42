//! Commands that act as a person or as the operator do not use this machine's admin token in an agent's shell.
//!
//! An agent harness runs its commands as the user, who can read `admin.token`. An agent that types `bellwire say` there
//! would speak for its person without being asked to. So inside such a shell these commands need a token of their own.
//! This prevents mistakes and is not access control: the file stays readable.

use anyhow::{Result, bail};

use crate::client::{Client, Connection};

/// The variables that agent harnesses set for the commands they run, and the names of the harnesses.
const HARNESSES: [(&str, &str); 4] = [
    ("CLAUDECODE", "Claude Code"),
    ("CODEX_SESSION_ID", "Codex"),
    ("GEMINI_CLI", "Gemini CLI"),
    ("OPENCODE", "OpenCode"),
];

/// A client for a command that acts as a person or as the operator.
pub(crate) fn client(connection: &Connection) -> Result<Client> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    check(connection.explicit_token().is_some(), is_set)?;
    Client::new(connection)
}

fn check(has_token: bool, is_set: impl Fn(&str) -> bool) -> Result<()> {
    match HARNESSES.iter().find(|(variable, _)| is_set(variable)) {
        Some((variable, harness)) if !has_token => bail!(
            "this is a shell of {harness} ({variable} is set), and the command acts as a person or as the operator: an \
             agent must not do that with this machine's admin token. If you are a person, run it in a terminal of your \
             own, or name a token with --token or BELLWIRE_TOKEN. An agent has its own tools: bellwire mcp"
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harness_needs_a_token_of_its_own_and_a_persons_terminal_does_not() {
        for (variable, harness) in HARNESSES {
            let is_set = |name: &str| name == variable;
            let refused = check(false, is_set).expect_err("an agent's shell").to_string();
            assert!(
                refused.contains(variable) && refused.contains(harness) && refused.contains("--token"),
                "{refused}"
            );
            assert!(check(true, is_set).is_ok(), "{variable}");
        }
        assert!(check(false, |_| false).is_ok());
    }
}
