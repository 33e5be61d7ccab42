use std::io::Write as _;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::when;
use crate::client::{Client, Connection, with_query};
use crate::output::{MUTED, SAID, STRONG, WAITS, WRONG, cell, items, paint, print_json, say_next_page, seconds};

/// List what was decided on requests of the notify tool, newest first, or sum it per origin
///
/// Decisions: delivered, deferred (quiet hours hold it; how it ends is a decision of its own), refused, failed, unknown (it
/// may have arrived, so it is not sent again).
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LedgerArgs {
    /// Sum the decisions per origin; by default those of the last seven days
    #[arg(long, conflicts_with_all = ["channel", "decision", "cursor"])]
    sums: bool,
    /// Only requests of this origin
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
    /// Only decisions about this person
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Only this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Only decisions of this kind
    #[arg(long)]
    decision: Option<String>,
    /// Only decisions since then: 15m, 1h or 2d ago, or a time such as 2026-01-03T15:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// The largest number to list, 1 to 100
    #[arg(long, value_name = "N", default_value = "20")]
    limit: usize,
    /// The cursor that the page before printed
    #[arg(long)]
    cursor: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str =
    "Examples:\n  bellwire ledger --origin health --decision refused --since 1d\n  bellwire ledger --sums";

pub(crate) fn run(arguments: &LedgerArgs) -> Result<bool> {
    let now = Timestamp::now();
    let since = arguments.since.as_deref().map(|since| when::parse_past("--since", since, now)).transpose()?;
    let client = Client::new(&arguments.connection)?;
    let list = match arguments.sums {
        true => client.get(&arguments.sums_path(since.as_deref()))?,
        false => client.list(arguments.limit, arguments.cursor.clone(), |limit, cursor| {
            arguments.path(limit, since.as_deref(), cursor)
        })?,
    };
    if arguments.json {
        return print_json(&list);
    }
    if items(&list).is_empty() && list["next_cursor"].is_null() {
        anstream::eprintln!("no decision matches");
        return Ok(true);
    }
    match arguments.sums {
        true => print_sums(&list)?,
        false => print_entries(&list)?,
    }
    say_next_page(&list);
    Ok(true)
}

impl LedgerArgs {
    fn path(&self, limit: usize, since: Option<&str>, cursor: Option<&str>) -> String {
        let limit = limit.to_string();
        let filters = [
            ("origin", self.origin.as_deref()),
            ("user_id", self.user.as_deref()),
            ("channel", self.channel.as_deref()),
            ("decision", self.decision.as_deref()),
            ("since", since),
            ("limit", Some(limit.as_str())),
            ("cursor", cursor),
        ];
        with_query("/v1/ledger", &filters)
    }

    fn sums_path(&self, since: Option<&str>) -> String {
        let filters = [("origin", self.origin.as_deref()), ("user_id", self.user.as_deref()), ("since", since)];
        with_query("/v1/ledger/sums", &filters)
    }
}

fn print_entries(list: &Value) -> Result<()> {
    let mut out = anstream::stdout().lock();
    let head = format!("{:22}{:11}{:16}{:12}{:10}{:8}WHY", "AT", "DECISION", "ORIGIN", "USER", "CHANNEL", "INTENT");
    writeln!(out, "{}", paint(STRONG, head))?;
    for entry in items(list) {
        let decision = cell(entry, "decision");
        let colour = match decision.as_str() {
            "delivered" => SAID,
            "deferred" => WAITS,
            _ => WRONG,
        };
        let decision = paint(colour, format!("{decision:11}"));
        let [at, origin, user, channel, intent] = [
            seconds(entry, "at"),
            cell(entry, "origin"),
            cell(entry, "user_id"),
            cell(entry, "channel"),
            cell(entry, "intent"),
        ];
        writeln!(out, "{at:22}{decision}{origin:16}{user:12}{channel:10}{intent:8}{}", why(entry))?;
    }
    Ok(())
}

/// The class of the error and the reason.
fn why(entry: &Value) -> String {
    let parts = [cell(entry, "error_class"), cell(entry, "reason")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

fn print_sums(list: &Value) -> Result<()> {
    const KINDS: [&str; 5] = ["delivered", "deferred", "refused", "failed", "unknown"];
    let mut out = anstream::stdout().lock();
    let kinds: String = KINDS.iter().map(|kind| format!("{:>11}", kind.to_uppercase())).collect();
    writeln!(out, "{}", paint(STRONG, format!("{:24}{kinds}", "ORIGIN")))?;
    for sums in items(list) {
        let counts: String = KINDS.iter().map(|kind| format!("{:>11}", sums[kind].as_u64().unwrap_or(0))).collect();
        let flag = match sums["never_gets_through"].as_bool() {
            Some(true) => paint(WRONG, "  never gets through"),
            _ => String::new(),
        };
        writeln!(out, "{:24}{counts}{flag}", cell(sums, "origin"))?;
    }
    anstream::eprintln!("{}", paint(MUTED, "per UTC day; `bellwire ledger --origin NAME` lists the decisions"));
    Ok(())
}
