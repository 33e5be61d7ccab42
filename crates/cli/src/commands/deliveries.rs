use std::io::Write as _;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::authority;
use crate::client::{Client, Connection, segment};
use crate::output::{MUTED, SAID, STRONG, WAITS, WRONG, paint, print_json, text};

/// The number of characters of a reason that the table shows.
const REASON_MAX: usize = 80;

/// List deliveries to people, dead letters included; retry or cancel one
///
/// States: waiting, claimed, started, sent, failed (a dead letter), unknown (sent without an answer, so it is not sent again
/// automatically), skipped (no longer wanted when it was due), cancelled.
#[derive(Args)]
pub(crate) struct DeliveriesArgs {
    /// Only deliveries in this state; failed lists the dead letters
    #[arg(long)]
    state: Option<String>,
    /// The largest number to list
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// The cursor that the page before printed
    #[arg(long)]
    cursor: Option<String>,
    /// Retry this delivery, which ended without being sent
    #[arg(long, value_name = "ID", conflicts_with_all = ["state", "cursor"])]
    retry: Option<String>,
    /// Cancel this waiting delivery
    #[arg(long, value_name = "ID", conflicts_with_all = ["state", "cursor", "retry"])]
    cancel: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &DeliveriesArgs) -> Result<bool> {
    match (&arguments.retry, &arguments.cancel) {
        (Some(id), _) => arguments.change(id, "retry"),
        (None, Some(id)) => arguments.change(id, "cancel"),
        (None, None) => arguments.list(&Client::new(&arguments.connection)?),
    }
}

impl DeliveriesArgs {
    fn change(&self, id: &str, what: &str) -> Result<bool> {
        let client = authority::client(&self.connection)?;
        let delivery = client.post(&format!("/v1/deliveries/{}/{what}", segment(id)), &json!({}))?;
        if self.json {
            return print_json(&delivery);
        }
        let (to, state) = (text(&delivery, "target"), text(&delivery, "state"));
        anstream::eprintln!("{} to {to} is {state}", text(&delivery, "channel"));
        Ok(true)
    }

    fn list(&self, client: &Client) -> Result<bool> {
        let mut path = format!("/v1/deliveries?limit={}", self.limit);
        for (name, value) in [("state", &self.state), ("cursor", &self.cursor)] {
            path.extend(value.iter().map(|value| format!("&{name}={}", segment(value))));
        }
        let list = client.get(&path)?;
        if self.json {
            return print_json(&list);
        }
        let mut out = anstream::stdout().lock();
        let head = format!("{:38}{:11}{:12}{:28}{:7}WHY", "ID", "STATE", "USER", "TO", "TRIES");
        writeln!(out, "{}", paint(STRONG, head))?;
        for delivery in list["items"].as_array().into_iter().flatten() {
            writeln!(out, "{}", row(delivery))?;
        }
        if let Some(cursor) = list["next_cursor"].as_str() {
            anstream::eprintln!("{}", paint(MUTED, format!("there are more: --cursor {cursor}")));
        }
        Ok(true)
    }
}

fn row(delivery: &Value) -> String {
    let cell = |key: &str| text(delivery, key);
    let state = cell("state");
    let colour = match state.as_str() {
        "sent" => SAID,
        "waiting" | "claimed" | "started" => WAITS,
        "failed" | "unknown" => WRONG,
        _ => MUTED,
    };
    let state = paint(colour, format!("{state:11}"));
    let tries = delivery["attempts"].as_u64().unwrap_or(0);
    let to = format!("{}:{}", cell("channel"), cell("target"));
    format!("{:38}{state}{:12}{to:28}{tries:<7}{}", cell("id"), cell("user_id"), why(delivery))
}

/// The reason on one line; for a waiting delivery also its due time.
fn why(delivery: &Value) -> String {
    let reason = text(delivery, "reason").replace(['\n', '\t'], " ");
    let reason = match reason.char_indices().nth(REASON_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    };
    match (text(delivery, "state").as_str(), reason.as_str()) {
        ("waiting", "") => format!("due {}", text(delivery, "not_before")),
        ("waiting", reason) => format!("{reason}; due {}", text(delivery, "not_before")),
        _ => reason,
    }
}
