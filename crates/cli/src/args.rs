use clap::{Parser, Subcommand};

use crate::commands::{
    background, completions, config, conversations, deliveries, demo, doctor, emit, erase, events, hook, inbox, ingest,
    inject, install, ledger, mail, mcp, migrate, notify, pause, remind, run, say, serve, settings, simulate,
    subscribers, tail, telegram, token, trace, wake, watch, wrap,
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
    Start(background::StartArgs),
    Stop(background::StopArgs),
    Status(background::StatusArgs),
    Demo(demo::DemoArgs),
    Emit(emit::EmitArgs),
    Inject(inject::InjectArgs),
    Mcp(mcp::McpArgs),
    Hook(hook::HookArgs),
    Install(install::InstallArgs),
    Uninstall(install::UninstallArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Run(run::RunArgs),
    Watch(watch::WatchArgs),
    Wrap(wrap::WrapArgs),
    Wake(wake::WakeArgs),
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
    Ingest(ingest::IngestArgs),
    Token(token::TokenArgs),
    Erase(erase::EraseArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Migrate(migrate::MigrateArgs),
    Simulate(simulate::SimulateArgs),
    Subscribers(subscribers::SubscribersArgs),
    Completions(completions::CompletionsArgs),
}
