use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use bellwire_server::config::Secret;
use clap::Args;

use crate::client::Connection;
use crate::hook::exchange::MAIN;
use crate::hosts::Host;
use crate::settings::Settings;
use crate::wrap::{Remote, Search, Server};

/// Put an agent's notifications into the results of any MCP server
///
/// Write `bellwire wrap --` before the command of an MCP server in an agent's configuration. Every message passes unchanged, in
/// both directions; only the result of a tool call gets one more text block when notifications wait. How tools ended is
/// reported as tool.call.success, failure or timeout. Without a hub everything passes as it is, and standard error says why.
/// With --url the server is reached over streamable HTTP, and the agent starts this command in its place, or uses the address
/// of --listen.
#[derive(Args)]
#[command(override_usage = USAGE, after_help = AFTER_HELP)]
pub(crate) struct WrapArgs {
    /// The address of a server that speaks streamable HTTP, in place of a command
    #[arg(long, value_name = "URL", conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// Serve HTTP clients on this address of this machine, such as 127.0.0.1:8931, in place of standard input and output
    #[arg(long, value_name = "ADDRESS", requires = "url", conflicts_with = "command")]
    listen: Option<SocketAddr>,
    /// A header for each request to the server; ${NAME} stands for a variable of the environment. May be given several times
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url", conflicts_with = "command")]
    headers: Vec<String>,
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
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const USAGE: &str = "bellwire wrap [OPTIONS] -- <COMMAND>...\n       bellwire wrap [OPTIONS] --url <URL>";

const AFTER_HELP: &str = "Examples:\n  \
    bellwire wrap -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    bellwire wrap --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'\n  \
    bellwire wrap --url http://127.0.0.1:3001/mcp --listen 127.0.0.1:8931\n\n\
    With a command, the exit code is that of the server. Messages of more than 32 MiB pass without being read.";

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
    let server = arguments.server()?;
    std::process::exit(crate::wrap::run(server, search, Duration::from_secs(arguments.timeout))?)
}

impl WrapArgs {
    fn server(&self) -> Result<Server> {
        let Some(url) = &self.url else { return Ok(Server::Command(self.command.clone())) };
        let remote = Remote::new(url, &self.headers)?;
        let Some(address) = self.listen else { return Ok(Server::Remote(remote)) };
        ensure!(
            address.ip().is_loopback(),
            "--listen {address}: only an address of this machine, such as 127.0.0.1:{}, because everyone who reaches it acts \
             as your agent",
            address.port()
        );
        Ok(Server::Behind(address, remote))
    }
}
