use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The notification layer for AI agents.
///
/// Bellwire carries news into a running agent's context at the moment the agent can use it, and an agent's news out to
/// people. `serve` runs the hub; `emit`, `inject` and `trace` talk to it; `simulate` and `subscribers` need no hub.
#[derive(Parser)]
#[command(version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "Exit codes: 0 all is well, 1 something that was checked is wrong, 2 the command could not be \
                          carried out.\nData goes to standard output, words to standard error.";

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Emit(Emit),
    Inject(Inject),
    Trace(Trace),
    Token(Token),
    Simulate(Simulate),
    Subscribers(Subscribers),
}

/// Run the hub: one process, its data in one folder
///
/// The first start makes an admin token, prints it once and keeps it as admin.token in the data folder.
#[derive(Args)]
pub(crate) struct Serve {
    /// Where to listen
    #[arg(long, env = "BELLWIRE_LISTEN", default_value = "127.0.0.1:2355", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Where the data lies; by default where this platform keeps such data
    #[arg(long, env = "BELLWIRE_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// A host name to answer to, besides loopback; may be given several times
    #[arg(long = "allowed-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<String>,
}

/// How to reach a running hub
#[derive(Args)]
pub(crate) struct Connection {
    /// The hub's address
    #[arg(long, env = "BELLWIRE_URL", default_value = "http://127.0.0.1:2355", value_name = "URL")]
    pub(crate) url: String,
    /// The token; by default the admin token of this machine's data folder
    #[arg(long, env = "BELLWIRE_TOKEN", hide_env_values = true, value_name = "SECRET")]
    pub(crate) token: Option<String>,
    /// Where that data folder is
    #[arg(long, env = "BELLWIRE_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Publish an event and print what it came to
#[derive(Args)]
pub(crate) struct Emit {
    /// The type, such as tool.call.failure
    #[arg(value_name = "TYPE")]
    pub(crate) kind: String,
    /// The payload as a JSON object
    #[arg(default_value = "{}")]
    pub(crate) payload: String,
    /// The conversation it is for
    #[arg(long, short, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// The person whose open conversations it is for
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<String>,
    /// The agent inside the conversation
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The component it comes from
    #[arg(long, default_value = "cli")]
    pub(crate) source: String,
    /// debug, info, warning, error or critical
    #[arg(long, default_value = "info")]
    pub(crate) severity: String,
    /// Your own name for it: sent twice, it happens once
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Take an agent's mail at an injection point and print the block
#[derive(Args)]
pub(crate) struct Inject {
    /// The conversation
    pub(crate) conversation: String,
    /// immediate, turn_start, after_tool or turn_end
    pub(crate) point: String,
    /// Your name for this moment; asking again with it gives the same answer
    pub(crate) call_id: String,
    /// The agent inside the conversation
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The tool's result, to have the block put behind it
    #[arg(long, value_name = "TEXT")]
    pub(crate) tool_result: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Tell one event's life: every verdict and what became of it, with times and reasons
#[derive(Args)]
pub(crate) struct Trace {
    /// The event's id, or the one its sender brought
    pub(crate) id: String,
    /// Print the hub's JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Make, list and revoke tokens
#[derive(Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print its secret, once
    Create {
        /// admin, agent, user, ingest or daemon
        #[arg(long)]
        scope: String,
        /// The person it is bound to; \"*\" for an agent of everyone
        #[arg(long, value_name = "ID")]
        user: Option<String>,
        /// The name of the agent it authenticates
        #[arg(long)]
        origin: Option<String>,
        /// The conversation it is bound to
        #[arg(long, value_name = "ID")]
        conversation: Option<String>,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        connection: Connection,
    },
    /// List the tokens, without secrets
    List {
        /// Print the hub's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Revoke a token at once; its streams end
    Revoke {
        /// The token's id
        id: String,
        #[command(flatten)]
        connection: Connection,
    },
}

/// Play a timeline of events and injection points on a virtual clock
///
/// Prints every verdict, notification and block. Nothing is stored and no time passes.
#[derive(Args)]
#[command(after_long_help = TIMELINE_HELP)]
pub(crate) struct Simulate {
    /// The timeline; - reads standard input
    pub(crate) file: PathBuf,
    /// Add (or replace by id) the subscribers of this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) subscribers: Option<PathBuf>,
    /// Print one JSON object per step instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const TIMELINE_HELP: &str = r#"A timeline is text, one step a line: a time, a verb, what it takes.

  # One tool fails; the agent hears of it with the next tool's result.
  0s      event tool.call.failure tool_executor error {"tool_name": "grep", "error_type": "timeout"}
  +500ms  inject after_tool call_1 | File updated.

  start 2026-01-03T15:30:00Z                     the time that 0s is
  subscriber NAME.toml:  + indented lines        a subscriber of its own
  template PATH:         + indented lines        the template it names
  T event TYPE SOURCE SEVERITY [agent=A] [dedupe=K] [by_agent] {payload}
  T user TEXT                                    the person says something
  T burst N event ...   T burst N user ...       the same N times; %n becomes 1, 2, 3 ...
  T inject POINT CALL [agent=A] [items=N] [tokens=N] [style=S] [shape=S]
           [unseen=CALL,...] [wake_only] [observed={...}] [| tool result]
  T disable ID,...   T enable                    what the user switches off; everything on again
  T subscriber NAME.toml:   T remove ID          a file that is changed; one that is deleted
  T rotate   T crash   T messages   T wait       a new boundary; save and load; the history; nothing

Times are 0s, 1.5s, 200ms, 2m, 1h, 1d from the start, or +500ms after the line before.
Points are immediate, turn_start, after_tool, turn_end."#;

/// Look at, check and try subscriber files
#[derive(Args)]
pub(crate) struct Subscribers {
    #[command(subcommand)]
    pub(crate) command: SubscribersCommand,
}

#[derive(Subcommand)]
pub(crate) enum SubscribersCommand {
    /// List the subscribers that come with Bellwire, and those of a folder
    List {
        /// Add (or replace by id) the subscribers of this folder
        #[arg(long, value_name = "DIR")]
        subscribers: Option<PathBuf>,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Check every subscriber file of a folder, and its templates with sample events
    ///
    /// Exits with 1 if any file is wrong; says which, where, and what is allowed.
    Check {
        /// The folder; templates are found relative to it
        dir: PathBuf,
    },
    /// Show how a subscriber would word some events
    ///
    /// Without --event, made-up events of its first type are used.
    Test {
        /// The subscriber's id
        id: String,
        /// An event as JSON, such as {"type": "...", "source": "...", "severity": "error", "payload": {}}; may be given
        /// several times
        #[arg(long = "event", value_name = "JSON")]
        events: Vec<String>,
        /// Add (or replace by id) the subscribers of this folder
        #[arg(long, value_name = "DIR")]
        subscribers: Option<PathBuf>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}
