use std::time::Duration;

use anyhow::Result;
use bellwire_server::config::Secret;
use clap::Args;

use crate::client::Connection;
use crate::hook::exchange::MAIN;
use crate::hosts::Host;
use crate::settings::Settings;
use crate::wrap::{Search, Server};

/// Put an agent's notifications into the results of any MCP server
///
/// Write `bellwire wrap --` before the command of an MCP server in an agent's configuration. Every message passes unchanged, in
/// both directions; only the result of a tool call gets one more text block when notifications wait. How tools ended is
/// reported as tool.call.success, failure or timeout. Without a hub everything passes as it is, and standard error says why.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct WrapArgs {
    /// The conversation whose notifications are added [default: the session of the harness that starts this server, else the
    /// only open conversation whose folder contains the current one]
    #[arg(long, short, value_name = "ID")]
    conversation: Option<String>,
    /// The id of the conversation's owner, if several people use the same conversation id
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The agent inside the conversation
    #[arg(long, value_name = "NAME", default_value = MAIN)]
    agent: String,
    /// The harness that starts this server [default: recognised by the name of its MCP client]
    #[arg(long, value_name = "HOST", conflicts_with = "conversation")]
    host: Option<Host>,
    /// Report a tool call as timed out if nothing is heard of it for so many seconds. The call itself goes on
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// How long a result waits for the hub, in milliseconds [default: 200, or timeout_ms of the harness's file]
    #[arg(long, value_name = "MS", help_heading = "Connection", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    hub_timeout: Option<u64>,
    /// The hub's address; by default that of the harness's file, else the hub of this machine's data folder
    #[arg(long, env = "BELLWIRE_URL", value_name = "URL", help_heading = "Connection")]
    hub: Option<String>,
    /// The token; by default that of the harness's file, else the admin token of this machine's data folder
    #[arg(long, env = "BELLWIRE_TOKEN", hide_env_values = true, value_name = "SECRET", help_heading = "Connection")]
    token: Option<Secret>,
    #[command(flatten)]
    settings: Settings,
    /// The command of the server and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const AFTER_HELP: &str = "Examples:\n  \
    bellwire wrap -- npx -y @modelcontextprotocol/server-filesystem .\n\n\
    Exits with the server's exit code. Messages of more than 32 MiB pass without being read.";

pub(crate) fn run(arguments: &WrapArgs) -> Result<bool> {
    let search = Search {
        conversation: arguments.conversation.clone(),
        user: arguments.user.clone(),
        agent: arguments.agent.clone(),
        host: arguments.host,
        connection: Connection {
            url: arguments.hub.clone().filter(|url| !url.is_empty()),
            token: arguments.token.clone(),
            settings: arguments.settings.clone(),
        },
        timeout: arguments.hub_timeout.map(Duration::from_millis),
    };
    let server = Server::Command(arguments.command.clone());
    std::process::exit(crate::wrap::run(server, search, Duration::from_secs(arguments.timeout))?)
}
