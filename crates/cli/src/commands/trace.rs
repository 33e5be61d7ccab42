mod tree;

pub(super) use tree::tree;

use std::io::Write as _;

use anyhow::Result;
use clap::Args;

use crate::client::{Client, Connection, segment};
use crate::output::print_json;

/// Show what happened to one event: verdicts, notifications and deliveries, with times and reasons
#[derive(Args)]
pub(crate) struct TraceArgs {
    /// The event's id, or the id its sender gave it
    id: String,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &TraceArgs) -> Result<bool> {
    let path = format!("/v1/events/{}", segment(&arguments.id));
    let trace = Client::new(&arguments.connection)?.get(&path)?;
    if arguments.json {
        return print_json(&trace);
    }
    write!(anstream::stdout().lock(), "{}", tree(&trace))?;
    Ok(true)
}
