//! The one binary. Parses, runs a command, and turns errors into words and exit codes.

mod args;
mod client;
mod commands;
mod data_dir;
mod log;
mod output;
mod settings;

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
    // Whoever speaks TLS in this process uses this; it can only be chosen once, and nobody has before us.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_WRONG),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{} {error:#}", output::paint(output::WRONG, "error:"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Whether all is well, or why the command could not be carried out.
fn run(command: Command) -> anyhow::Result<bool> {
    match command {
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Deliveries(deliveries) => commands::deliveries::run(&deliveries),
        Command::Demo(demo) => commands::demo::run(&demo),
        Command::Emit(emit) => commands::emit::run(&emit),
        Command::Inject(inject) => commands::inject::run(&inject),
        Command::Mcp(mcp) => commands::mcp::run(&mcp),
        Command::Tail(tail) => commands::tail::run(&tail),
        Command::Trace(trace) => commands::trace::run(&trace),
        Command::Token(token) => commands::token::run(&token),
        Command::Config(config) => commands::config::run(&config),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::Migrate(migrate) => commands::migrate::run(&migrate),
        Command::Remind(remind) => commands::remind::run(&remind),
        Command::Simulate(simulate) => commands::simulate::run(&simulate),
        Command::Subscribers(subscribers) => commands::subscribers::run(&subscribers),
        Command::Completions(completions) => commands::completions::run(&completions),
    }
}
