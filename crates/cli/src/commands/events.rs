use std::io::Write as _;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::when;
use crate::client::{Client, Connection, with_query};
use crate::output::{
    MUTED, STRONG, WAITS, cell, decided_for, items, paint, print_json, say_next_page, seconds, text, verdict_style,
};

/// List stored events with their verdicts, newest first: why was an agent told, or not told?
///
/// Below each event is what every listening subscriber decided: queued, held (in a batch), duplicate, filtered (its severity
/// is too low, its source is not wanted, or the person switched the subscriber off) or suppressed (too many events at once).
/// `bellwire trace ID` shows what became of one event.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EventsArgs {
    /// Only events for this conversation
    #[arg(long, short, value_name = "ID")]
    conversation: Option<String>,
    /// Only this type; tool.* is every type below tool, any other * stands for one part
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only events since then: 15m, 1h or 2d ago, or a time such as 2026-01-03T15:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only events on which a subscriber decided so: queued, held, duplicate, filtered or suppressed
    #[arg(long)]
    verdict: Option<String>,
    /// Only events of this person
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The largest number to list, 1 to 100
    #[arg(long, value_name = "N", default_value = "20")]
    limit: usize,
    /// The cursor that the page before printed
    #[arg(long)]
    cursor: Option<String>,
    /// Print JSON: {"items": [...], "next_cursor": TEXT or null}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "Examples:\n  bellwire events --conversation chat --verdict filtered --since 1h\n  \
                        bellwire events --type 'tool.*' --user ada";

pub(crate) fn run(arguments: &EventsArgs) -> Result<bool> {
    let now = Timestamp::now();
    let since = arguments.since.as_deref().map(|since| when::parse_past("--since", since, now)).transpose()?;
    let client = Client::new(&arguments.connection)?;
    let list = client.list(arguments.limit, arguments.cursor.clone(), |limit, cursor| {
        arguments.path(limit, since.as_deref(), cursor)
    })?;
    if arguments.json {
        return print_json(&list);
    }
    let mut out = anstream::stdout().lock();
    for event in items(&list) {
        write!(out, "{}", entry(event))?;
    }
    if items(&list).is_empty() && list["next_cursor"].is_null() {
        anstream::eprintln!("no stored event matches");
    }
    say_next_page(&list);
    Ok(true)
}

impl EventsArgs {
    fn path(&self, limit: usize, since: Option<&str>, cursor: Option<&str>) -> String {
        let limit = limit.to_string();
        let filters = [
            ("conversation_id", self.conversation.as_deref()),
            ("type", self.kind.as_deref()),
            ("since", since),
            ("verdict", self.verdict.as_deref()),
            ("user_id", self.user.as_deref()),
            ("limit", Some(limit.as_str())),
            ("cursor", cursor),
        ];
        with_query("/v1/events", &filters)
    }
}

/// An event on one line, and each verdict on a line below it.
fn entry(event: &Value) -> String {
    let (at, id) = (seconds(event, "accepted_at"), text(event, "id"));
    let what = format!("{} [{}] {}", text(event, "type"), cell(event, "source"), text(event, "severity"));
    let user = cell(event, "user_id");
    let to = match event["conversation_id"].is_string() {
        true => format!("{} of {user}", cell(event, "conversation_id")),
        false => format!("all open conversations of {user}"),
    };
    let mut lines = format!("{at}  {}  to {to}  {}\n", paint(STRONG, what), paint(MUTED, id));
    let verdicts = event["verdicts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if verdicts.is_empty() {
        lines += "  no subscriber listens for it\n";
    }
    for verdict in verdicts {
        let word = text(verdict, "verdict");
        let word = paint(verdict_style(&word), format!("{word:10}"));
        let at = decided_for(verdict, event).map(|place| format!(" ({place})")).unwrap_or_default();
        lines += &format!("  {word} {:16} {}{at}\n", cell(verdict, "subscriber"), cell(verdict, "reason"));
        if verdict["hint"].is_string() {
            lines += &format!("  {:27} {}\n", "", paint(WAITS, format!("hint: {}", cell(verdict, "hint"))));
        }
    }
    lines
}
