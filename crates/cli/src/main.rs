//! The `bellwire` binary: parses the arguments, runs the command, prints errors and sets the exit code.

mod args;
mod authority;
mod client;
mod commands;
mod data_dir;
mod log;
mod output;
mod settings;
#[cfg(test)]
mod test_process;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};

/// Events are allocated in one thread and freed in another, which is slow with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXIT_SUCCESS: u8 = 0;
/// A check that the user asked for found a problem.
const EXIT_WRONG: u8 = 1;
/// The command failed. clap uses the same code for wrong usage.
const EXIT_FAILED: u8 = 2;

fn main() -> ExitCode {
    // The process-wide TLS provider. It fails only if one is installed already, which cannot be the case here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ExitCode::from(exit_code(run(Cli::parse().command)))
}

/// Prints the error, if there is one, and returns the exit code.
fn exit_code(result: anyhow::Result<bool>) -> u8 {
    match result {
        Ok(true) => EXIT_SUCCESS,
        Ok(false) => EXIT_WRONG,
        Err(error) if output::is_broken_pipe(&error) => EXIT_SUCCESS,
        Err(error) => {
            output::say_in_time(format!("{} {error:#}", output::paint(output::WRONG, "error:")));
            EXIT_FAILED
        }
    }
}

/// Runs the command. `Ok(false)` means that a check found a problem.
fn run(command: Command) -> anyhow::Result<bool> {
    match command {
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Deliveries(deliveries) => commands::deliveries::run(&deliveries),
        Command::Conversations(conversations) => commands::conversations::run(&conversations),
        Command::Demo(demo) => commands::demo::run(&demo),
        Command::Emit(emit) => commands::emit::run(&emit),
        Command::Erase(erase) => commands::erase::run(&erase),
        Command::Events(events) => commands::events::run(&events),
        Command::Inbox(inbox) => commands::inbox::run(&inbox),
        Command::Inject(inject) => commands::inject::run(&inject),
        Command::Ledger(ledger) => commands::ledger::run(&ledger),
        Command::Mail(mail) => commands::mail::run(&mail),
        Command::Mcp(mcp) => commands::mcp::run(&mcp),
        Command::Notify(notify) => commands::notify::run(&notify),
        Command::Say(say) => commands::say::run(&say),
        Command::Settings(settings) => commands::settings::run(&settings),
        Command::Tail(tail) => commands::tail::run(&tail),
        Command::Trace(trace) => commands::trace::run(&trace),
        Command::Telegram(telegram) => commands::telegram::run(&telegram),
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
