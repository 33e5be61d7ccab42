use anyhow::Result;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Cli;

/// Print the completion script of your shell
///
/// For example: bellwire completions bash > ~/.local/share/bash-completion/completions/bellwire
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &CompletionsArgs) -> Result<bool> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "bellwire", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(true)
}
