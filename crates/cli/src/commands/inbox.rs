mod actions;

use std::io::Write as _;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use self::actions::InboxAction;
use super::person;
use crate::client::{Client, Connection, with_query};
use crate::output::{MUTED, SAID, STRONG, WAITS, cell, items, paint, print_json, say_next_page, seconds, text};

/// List a person's notifications, newest first; read, dismiss or answer them
///
/// The buttons of a notification are listed below it, with what each sends to the agent.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    action: Option<InboxAction>,
    /// unread, all (read or unread, the default) or dismissed
    #[arg(long)]
    state: Option<String>,
    /// Only notifications of this type: reminder, info, success, warning or error
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The largest number to list, 1 to 100 [default: 20]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// The cursor that the page before printed
    #[arg(long)]
    cursor: Option<String>,
    /// The id of the person; not needed with the person's own token
    #[arg(long, global = true, display_order = 100, value_name = "ID")]
    user: Option<String>,
    /// Print the hub's JSON
    #[arg(long, global = true, display_order = 100)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "Examples:\n  bellwire inbox --user ada --state unread\n  bellwire inbox read --all --user ada\n  \
                        bellwire inbox press ID \"View Logs\" --user ada";

pub(crate) fn run(arguments: &InboxArgs) -> Result<bool> {
    match &arguments.action {
        Some(action) => {
            arguments.check_no_filter()?;
            action.run(arguments)
        }
        None => arguments.list(),
    }
}

impl InboxArgs {
    /// Refuses filters beside an action: it would act on one notification and not on the filtered ones.
    fn check_no_filter(&self) -> Result<()> {
        let filters = [
            ("--state", self.state.is_some()),
            ("--type", self.kind.is_some()),
            ("--limit", self.limit.is_some()),
            ("--cursor", self.cursor.is_some()),
        ];
        match filters.iter().find(|(_, given)| *given) {
            Some((flag, _)) => bail!("{flag} belongs to the list; leave it out here"),
            None => Ok(()),
        }
    }

    fn list(&self) -> Result<bool> {
        let client = Client::new(&self.connection)?;
        let limit = self.limit.map(|limit| limit.to_string());
        let filters = [
            ("state", self.state.as_deref()),
            ("type", self.kind.as_deref()),
            ("limit", limit.as_deref()),
            ("cursor", self.cursor.as_deref()),
        ];
        let path = person::path(&client, self.user.as_deref(), "/notifications")?;
        let list = client.get(&with_query(&path, &filters))?;
        if self.json {
            return print_json(&list);
        }
        let mut out = anstream::stdout().lock();
        let head = format!("{:38}{:22}{:11}{:10}{:12}MESSAGE", "ID", "WHEN", "STATE", "TYPE", "FROM");
        writeln!(out, "{}", paint(STRONG, head))?;
        for item in items(&list) {
            writeln!(out, "{}", row(item))?;
            for (index, button) in buttons(item).iter().enumerate() {
                writeln!(out, "{}", button_row(index, button))?;
            }
        }
        say_next_page(&list);
        Ok(true)
    }
}

fn row(item: &Value) -> String {
    let (state, style) = match (item["dismissed_at"].is_string(), item["read_at"].is_string()) {
        (true, _) => ("dismissed", MUTED),
        (false, true) => ("read", MUTED),
        (false, false) => ("unread", WAITS),
    };
    let state = paint(style, format!("{state:11}"));
    let title = Some(cell(item, "title")).filter(|title| !title.is_empty());
    let title = title.map(|title| format!("{title}: ")).unwrap_or_default();
    let (id, when, kind, from) =
        (text(item, "id"), seconds(item, "created_at"), text(item, "type"), cell(item, "origin"));
    format!("{id:38}{when:22}{state}{kind:10}{from:12}{title}{}", cell(item, "message"))
}

fn button_row(index: usize, button: &Value) -> String {
    let effect = match button["prompt"].is_string() {
        true => format!("sends: {}", cell(button, "prompt")),
        false => "dismisses it".to_owned(),
    };
    let pressed = match button["pressed_at"].is_string() {
        true => paint(SAID, format!(" (pressed {})", seconds(button, "pressed_at"))),
        false => String::new(),
    };
    format!("{:38}button {index} \"{}\" {effect}{pressed}", "", cell(button, "label"))
}

fn buttons(item: &Value) -> &[Value] {
    item["actions"].as_array().map(Vec::as_slice).unwrap_or_default()
}
