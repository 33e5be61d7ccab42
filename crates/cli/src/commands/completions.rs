use anyhow::Result;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Arguments;

/// Print what makes your shell complete Bellwire's commands
///
/// For example: bellwire completions bash > ~/.local/share/bash-completion/completions/bellwire
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Completions) -> Result<bool> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "bellwire", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(true)
}
