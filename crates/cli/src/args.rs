use std::path::PathBuf;

use bellwire_core::subscriber::SubscriberFile;
use clap::{Args, Parser, Subcommand};

/// The notification layer for AI agents.
///
/// Bellwire carries news into a running agent's context at the moment the agent can use it, and an agent's news out to
/// people. This version contains the core: try subscriber files and timelines without running anything.
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
    Simulate(Simulate),
    Subscribers(Subscribers),
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
  T event TYPE SOURCE SEVERITY [agent=A] [dedupe=K] {payload}
  T burst N event ...                            the same N times; {n} becomes 1, 2, 3 ...
  T user TEXT                                    the person says something
  T inject POINT CALL [agent=A] [items=N] [tokens=N] [style=S] [shape=S]
           [unseen=CALL,...] [wake_only] [observed={...}] [| tool result]
  T disable ID,...   T enable   T remove ID      what the user switches off; a file that is deleted
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

/// The files of a folder of subscribers, as read.
pub(crate) type Folder = (Vec<SubscriberFile>, std::collections::BTreeMap<String, String>);
