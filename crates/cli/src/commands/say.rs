use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::input;
use crate::authority;
use crate::client::{Connection, HubRefused, conversation_path};
use crate::output::{cell, print_json, text};

/// Send a message to an agent as its person
///
/// The agent reads all of it after its next tool call; an idle agent is woken. Prints the id of the event that it became:
/// `bellwire trace ID` shows when the agent read it.
#[derive(Args)]
#[command(after_help = "Examples:\n  bellwire say chat \"Stop, please.\"\n  bellwire say chat - < notes.txt")]
pub(crate) struct SayArgs {
    /// The id of the conversation; `bellwire conversations` lists them
    conversation: String,
    /// The message, 1 to 4096 characters; - reads standard input
    text: String,
    /// The id of the conversation's owner, if several people use the same conversation id
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

const NOT_FOUND: u16 = 404;

pub(crate) fn run(arguments: &SayArgs) -> Result<bool> {
    let client = authority::client(&arguments.connection)?;
    let path = conversation_path(&arguments.conversation, "/messages", arguments.user.as_deref());
    let message = json!({ "text": arguments.message()? });
    let published = client.post(&path, &message).map_err(explain)?;
    if arguments.json {
        return print_json(&published);
    }
    for verdict in published["verdicts"].as_array().into_iter().flatten() {
        let reason = cell(verdict, "reason");
        let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
        anstream::eprintln!("{} for agent {}{reason}", text(verdict, "verdict"), cell(verdict, "agent"));
    }
    anstream::println!("{}", text(&published, "id"));
    Ok(true)
}

impl SayArgs {
    /// The message. A text that begins with @ is no file here: people write such messages.
    fn message(&self) -> Result<String> {
        match self.text.as_str() {
            "-" => Ok(input::file("-")?.trim_end_matches(['\r', '\n']).to_owned()),
            text => Ok(text.to_owned()),
        }
    }
}

fn explain(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<HubRefused>().is_some_and(|refused| refused.status == NOT_FOUND) {
        true => anyhow::anyhow!("{error}; `bellwire conversations` lists them"),
        false => error,
    }
}
