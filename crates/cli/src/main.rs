//! The one binary. Parses, runs a command, and turns errors into words and exit codes.

mod args;
mod client;
mod commands;
mod data_dir;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Arguments, Command};

/// An event is made in one thread and freed in another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Something the user asked to be checked is wrong.
const EXIT_WRONG: u8 = 1;
/// The command could not be carried out. (clap uses the same for bad usage.)
const EXIT_FAILED: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Serve(serve) => commands::serve::run(serve),
        Command::Emit(emit) => commands::emit::run(&emit),
        Command::Inject(inject) => commands::inject::run(&inject),
        Command::Trace(trace) => commands::trace::run(&trace),
        Command::Token(token) => commands::token::run(&token),
        Command::Simulate(simulate) => commands::simulate::run(&simulate),
        Command::Subscribers(subscribers) => commands::subscribers::run(&subscribers),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_WRONG),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{}error:{} {error:#}", output::WRONG.render(), output::WRONG.render_reset());
            ExitCode::from(EXIT_FAILED)
        }
    }
}
