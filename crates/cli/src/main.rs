//! The `bellwire` binary: parses the arguments, runs the command, prints errors and sets the exit code.

mod args;
mod authority;
mod background;
mod client;
mod commands;
mod data_dir;
mod edited_paths;
mod hook;
mod hosts;
mod install;
mod log;
mod output;
mod settings;
#[cfg(test)]
mod test_process;
mod wrap;

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
    let code = hook::run_if_asked().unwrap_or_else(|| exit_code(run(Cli::parse().command)));
    ExitCode::from(code)
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
        Command::Start(start) => commands::background::run_start(&start),
        Command::Stop(stop) => commands::background::run_stop(&stop),
        Command::Status(status) => commands::background::run_status(&status),
        Command::Deliveries(deliveries) => commands::deliveries::run(&deliveries),
        Command::Conversations(conversations) => commands::conversations::run(&conversations),
        Command::Demo(demo) => commands::demo::run(&demo),
        Command::Emit(emit) => commands::emit::run(&emit),
        Command::Erase(erase) => commands::erase::run(&erase),
        Command::Events(events) => commands::events::run(&events),
        Command::Hook(hook) => commands::hook::run(&hook),
        Command::Inbox(inbox) => commands::inbox::run(&inbox),
        Command::Ingest(ingest) => commands::ingest::run(&ingest),
        Command::Inject(inject) => commands::inject::run(&inject),
        Command::Install(install) => commands::install::run_install(&install),
        Command::Ledger(ledger) => commands::ledger::run(&ledger),
        Command::Mail(mail) => commands::mail::run(&mail),
        Command::Mcp(mcp) => commands::mcp::run(&mcp),
        Command::Notify(notify) => commands::notify::run(&notify),
        Command::Pause(pause) => commands::pause::run_pause(&pause),
        Command::Resume(resume) => commands::pause::run_resume(&resume),
        Command::Uninstall(uninstall) => commands::install::run_uninstall(&uninstall),
        Command::Run(run) => commands::run::run(&run),
        Command::Say(say) => commands::say::run(&say),
        Command::Settings(settings) => commands::settings::run(&settings),
        Command::Tail(tail) => commands::tail::run(&tail),
        Command::Trace(trace) => commands::trace::run(&trace),
        Command::Watch(watch) => commands::watch::run(&watch),
        Command::Wake(wake) => commands::wake::run(&wake),
        Command::Wrap(wrap) => commands::wrap::run(&wrap),
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
