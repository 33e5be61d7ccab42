mod try_out;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::{Client, Connection};
use crate::output::{STRONG, cell, items, paint, print_json, seconds};
use crate::settings::Settings;

/// List the sources of webhooks, and try a stored call without sending it
///
/// A source is a section [ingest.NAME] of the hub's configuration; its sender calls POST /v1/ingest/NAME. docs/ingest.md
/// shows how to set up GitHub, Alertmanager, Standard Webhooks and any JSON.
#[derive(Args)]
pub(crate) struct IngestArgs {
    #[command(subcommand)]
    command: IngestCommand,
}

#[derive(Subcommand)]
enum IngestCommand {
    /// List the sources of the running hub: when each last called, and what was refused last
    List {
        /// Print the hub's JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Show which events a stored call would become, for whom, and what an agent would read. Sends nothing
    ///
    /// Reads the configuration of this machine, and needs no hub. The signature is checked if its headers are given. Exits
    /// with 1 if the hub would refuse the call.
    #[command(after_help = EXAMPLES)]
    Test(TestArgs),
}

#[derive(Args)]
struct TestArgs {
    /// The body of the call; - reads standard input
    #[arg(value_name = "FILE")]
    body: PathBuf,
    /// The source, if the configuration has several
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// A header of the call; may be given several times
    #[arg(long = "header", value_name = "NAME:VALUE")]
    headers: Vec<String>,
    /// Print JSON: {"source", "authentic", "events", "skipped", "problem", "block"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

const EXAMPLES: &str = "Examples:\n  \
    bellwire ingest test run.json --source github --header X-GitHub-Event:workflow_run\n  \
    bellwire ingest test alert.json --config bellwire.toml";

pub(crate) fn run(arguments: &IngestArgs) -> Result<bool> {
    match &arguments.command {
        IngestCommand::List { json, connection } => list(connection, *json),
        IngestCommand::Test(test) => try_out::run(test),
    }
}

fn list(connection: &Connection, as_json: bool) -> Result<bool> {
    let list = Client::new(connection)?.get("/v1/ingest")?;
    if as_json {
        return print_json(&list);
    }
    if items(&list).is_empty() {
        anstream::eprintln!("no source is configured; docs/ingest.md shows how");
        return Ok(true);
    }
    let mut out = anstream::stdout().lock();
    let head = format!("{:18}{:19}{:24}{:22}LAST REFUSAL", "NAME", "KIND", "TELLS", "LAST CALL");
    writeln!(out, "{}", paint(STRONG, head))?;
    for one in items(&list) {
        let refusal = match one["last_refused_at"].is_null() {
            true => String::new(),
            false => format!("{} {}", seconds(one, "last_refused_at"), cell(one, "last_refusal")),
        };
        let last = if one["last_accepted_at"].is_null() { "-".to_owned() } else { seconds(one, "last_accepted_at") };
        let (name, kind) = (cell(one, "name"), cell(one, "kind"));
        writeln!(out, "{}", format!("{name:17} {kind:18} {:23} {last:21} {refusal}", tells(one)).trim_end())?;
    }
    Ok(true)
}

/// Whom a source tells.
fn tells(source: &Value) -> String {
    match (source["conversation_id"].is_null(), source["folder"].is_null()) {
        (false, _) => cell(source, "conversation_id"),
        (true, false) => cell(source, "folder"),
        (true, true) => format!("all of {}", cell(source, "user_id")),
    }
}
