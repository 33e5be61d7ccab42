use clap::{Parser, Subcommand};

use crate::commands::{
    completions, config, deliveries, demo, doctor, emit, inject, mcp, migrate, remind, serve, simulate, subscribers,
    tail, token, trace,
};

/// The notification layer for AI agents.
///
/// Bellwire carries news into a running agent's context at the moment the agent can use it, and an agent's news out to
/// people. `serve` runs the hub, `demo` shows it at work; `mcp` gives agents their tools; `emit`,
/// `inject`, `tail`, `trace` and `token` talk to it; `deliveries` and `remind` look after what people are told;
/// `config`, `doctor` and `migrate` look after it; `simulate` and `subscribers` need no hub.
#[derive(Parser)]
#[command(name = "bellwire", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "Exit codes: 0 all is well, 1 something that was checked is wrong, 2 the command could not be \
                          carried out.\nData goes to standard output, words to standard error.";

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Demo(demo::DemoArgs),
    Emit(emit::EmitArgs),
    Inject(inject::InjectArgs),
    Mcp(mcp::McpArgs),
    Tail(tail::TailArgs),
    Trace(trace::TraceArgs),
    Token(token::TokenArgs),
    Deliveries(deliveries::DeliveriesArgs),
    Remind(remind::RemindArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Migrate(migrate::MigrateArgs),
    Simulate(simulate::SimulateArgs),
    Subscribers(subscribers::SubscribersArgs),
    Completions(completions::CompletionsArgs),
}
