use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::when;
use crate::authority;
use crate::client::{Client, Connection, segment};
use crate::output::{MUTED, STRONG, paint, print_json, printable, text};

/// Remind a person of something later; without a message, list what they will be reminded of
///
/// bellwire remind "Call the dentist" --at 2h --user ada
#[derive(Args)]
pub(crate) struct RemindArgs {
    /// The message, 1 to 500 characters
    message: Option<String>,
    /// When: after 30m, 2h, 1d, or at a time such as 2027-01-04T09:00:00+01:00
    #[arg(long, value_name = "WHEN", requires = "message")]
    at: Option<String>,
    /// The id of the person; not needed if the token is bound to one
    #[arg(long, value_name = "ID", conflicts_with = "cancel")]
    user: Option<String>,
    /// The id of the conversation it belongs to
    #[arg(long, value_name = "ID", requires = "message")]
    conversation: Option<String>,
    /// Cancel the reminder with this id
    #[arg(long, value_name = "ID", conflicts_with = "message")]
    cancel: Option<String>,
    /// The largest number to list
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// The cursor that the page before printed
    #[arg(long, conflicts_with = "message")]
    cursor: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &RemindArgs) -> Result<bool> {
    match (&arguments.message, &arguments.cancel) {
        (Some(message), _) => arguments.set(message),
        (None, Some(id)) => {
            let path = format!("/v1/reminders/{}", segment(id));
            authority::client(&arguments.connection)?.call(Method::DELETE, &path, None)?;
            anstream::eprintln!("cancelled {}", printable(id));
            Ok(true)
        }
        (None, None) => arguments.list(),
    }
}

impl RemindArgs {
    fn set(&self, message: &str) -> Result<bool> {
        let at = self.at.as_deref().context("--at is missing: when to remind, such as --at 2h")?;
        let at = when::parse_time("--at", at, Timestamp::now())?;
        let context = [("user_id", &self.user), ("conversation_id", &self.conversation)];
        let context = context.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?))));
        let call = json!({ "arguments": { "message": message, "at": at }, "context": Map::from_iter(context) });
        let answer = authority::client(&self.connection)?.post("/v1/tools/remind", &call)?;
        if answer["success"] != true {
            let hint = if self.user.is_none() { "; --user names the person" } else { "" };
            bail!("{}{hint}", text(&answer, "message"));
        }
        if self.json {
            return print_json(&answer);
        }
        anstream::eprintln!("{}", text(&answer, "message"));
        anstream::println!("{}", text(&answer, "reminder_id"));
        Ok(true)
    }

    fn list(&self) -> Result<bool> {
        let cursor = self.cursor.as_deref().map(|cursor| format!("&cursor={}", segment(cursor))).unwrap_or_default();
        let user = self.user.as_deref().map(|user| format!("&user_id={}", segment(user))).unwrap_or_default();
        let path = format!("/v1/reminders?limit={}{user}{cursor}", self.limit);
        let list = Client::new(&self.connection)?.get(&path)?;
        if self.json {
            return print_json(&list);
        }
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", paint(STRONG, format!("{:38}{:26}{:12}{:12}WHAT", "ID", "WHEN", "USER", "FROM")))?;
        for reminder in list["items"].as_array().into_iter().flatten() {
            writeln!(out, "{}", row(reminder))?;
        }
        if let Some(cursor) = list["next_cursor"].as_str() {
            anstream::eprintln!("{}", paint(MUTED, format!("there are more: --cursor {cursor}")));
        }
        Ok(true)
    }
}

fn row(reminder: &Value) -> String {
    let cell = |key: &str| text(reminder, key);
    let what = cell("message").replace(['\n', '\t'], " ");
    format!("{:38}{:26}{:12}{:12}{what}", cell("id"), cell("due_at"), cell("user_id"), cell("origin"))
}
