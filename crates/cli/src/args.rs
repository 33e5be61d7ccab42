use clap::{Parser, Subcommand};

use crate::commands::{
    completions, config, conversations, deliveries, demo, doctor, emit, erase, events, inbox, inject, ledger, mail,
    mcp, migrate, notify, remind, say, serve, settings, simulate, subscribers, tail, telegram, token, trace,
};

/// The notification layer for AI agents.
///
/// Bellwire brings notifications into a running agent's context, and an agent's notifications to people. `serve` runs the
/// hub, and `demo` shows it at work. `mcp` gives agents their tools. `simulate` and `subscribers` need no hub.
#[derive(Parser)]
#[command(name = "bellwire", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "Exit codes: 0 success, 1 a check found a problem, 2 the command failed.\n\
                          Data goes to standard output, messages to standard error.";

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Demo(demo::DemoArgs),
    Emit(emit::EmitArgs),
    Inject(inject::InjectArgs),
    Mcp(mcp::McpArgs),
    Tail(tail::TailArgs),
    Trace(trace::TraceArgs),
    Events(events::EventsArgs),
    Conversations(conversations::ConversationsArgs),
    Inbox(inbox::InboxArgs),
    Say(say::SayArgs),
    Notify(notify::NotifyArgs),
    Remind(remind::RemindArgs),
    Settings(settings::SettingsArgs),
    Deliveries(deliveries::DeliveriesArgs),
    Ledger(ledger::LedgerArgs),
    Mail(mail::MailArgs),
    Telegram(telegram::TelegramArgs),
    Token(token::TokenArgs),
    Erase(erase::EraseArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Migrate(migrate::MigrateArgs),
    Simulate(simulate::SimulateArgs),
    Subscribers(subscribers::SubscribersArgs),
    Completions(completions::CompletionsArgs),
}
