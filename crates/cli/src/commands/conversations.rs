use std::io::Write as _;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::when;
use crate::client::{Client, Connection, with_query};
use crate::output::{MUTED, SAID, STRONG, cell, items, paint, print_json, say_next_page, seconds, text};

/// The width of the column for ids, with two spaces. A session of a harness has an id of 49 characters.
const ID_MIN: usize = 38;
const ID_MAX: usize = 60;

/// List conversations, the most recently used first
///
/// PENDING counts the notifications that the main agent has not been shown yet. `bellwire tail ID` follows a conversation
/// live.
#[derive(Args)]
#[command(after_help = "Example:\n  bellwire conversations --user ada --since 1d")]
pub(crate) struct ConversationsArgs {
    /// Only conversations of this person
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Only conversations with this id, one for each person who has one
    #[arg(long, short, value_name = "ID", conflicts_with = "since")]
    conversation: Option<String>,
    /// Only conversations used since then: 1h or 2d ago, or a time such as 2026-01-03T15:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// The largest number to list, 1 to 100
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// The cursor that the page before printed
    #[arg(long)]
    cursor: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &ConversationsArgs) -> Result<bool> {
    let now = Timestamp::now();
    let since = arguments.since.as_deref().map(|since| when::parse_past("--since", since, now)).transpose()?;
    let limit = arguments.limit.to_string();
    let filters = [
        ("user_id", arguments.user.as_deref()),
        ("conversation_id", arguments.conversation.as_deref()),
        ("since", since.as_deref()),
        ("limit", Some(limit.as_str())),
        ("cursor", arguments.cursor.as_deref()),
    ];
    let list = Client::new(&arguments.connection)?.get(&with_query("/v1/conversations", &filters))?;
    if arguments.json {
        return print_json(&list);
    }
    let mut out = anstream::stdout().lock();
    let width =
        items(&list).iter().map(|one| cell(one, "id").chars().count() + 2).max().unwrap_or(0).clamp(ID_MIN, ID_MAX);
    let head = format!("{:width$}{:12}{:9}{:>7}  {:22}TITLE", "ID", "USER", "AGENT", "PENDING", "LAST USED");
    writeln!(out, "{}", paint(STRONG, head))?;
    for conversation in items(&list) {
        writeln!(out, "{}", row(conversation, width))?;
    }
    say_next_page(&list);
    Ok(true)
}

fn row(conversation: &Value, width: usize) -> String {
    let presence = text(conversation, "presence");
    let style = if presence == "working" { SAID } else { MUTED };
    let presence = paint(style, format!("{presence:9}"));
    let pending = conversation["pending"].as_u64().unwrap_or(0);
    let (id, user, used) =
        (cell(conversation, "id"), cell(conversation, "user_id"), seconds(conversation, "last_used_at"));
    // Two spaces stay between the columns, however long the id is.
    let id = format!("{id}  ");
    let row = format!("{id:width$}{user:12}{presence}{pending:>7}  {used:22}{}", cell(conversation, "title"));
    row.trim_end().to_owned()
}
