use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::{Value, json};

use super::input;
use crate::client::{Client, Connection, conversation_path};
use crate::output::{MUTED, paint, print_json, printable};

/// Take an agent's pending notifications at an injection point and print the block
#[derive(Args)]
pub(crate) struct InjectArgs {
    /// The conversation's id
    conversation: String,
    /// immediate, turn_start, after_tool or turn_end
    point: String,
    /// Your id for this injection, unique in the conversation; the same id again gets the same answer
    call_id: String,
    /// The id of the conversation's owner, if several people use the same conversation id
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The agent inside the conversation
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The tool's result; the block is printed after it. - reads standard input, @FILE a file
    #[arg(long, value_name = "TEXT")]
    tool_result: Option<String>,
    /// The tool call that has just finished, such as {"tool_name": "grep", "outcome": "success"}; - and @FILE as above
    #[arg(long, value_name = "JSON")]
    observed: Option<String>,
    /// block, append or synthetic
    #[arg(long)]
    style: Option<String>,
    /// Print the JSON of the hub's response
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &InjectArgs) -> Result<bool> {
    let path = conversation_path(&arguments.conversation, "/inject", arguments.user.as_deref());
    let answer = Client::new(&arguments.connection)?.post(&path, &arguments.body()?)?;
    if arguments.json {
        return print_json(&answer);
    }
    let mut out = anstream::stdout().lock();
    let content = answer["content"].as_str().unwrap_or("");
    if !content.is_empty() {
        writeln!(out, "{}", printable(content))?;
    }
    for message in answer["messages"].as_array().into_iter().flatten() {
        writeln!(out, "{message}")?;
    }
    let number = |key: &str| answer[key].as_u64().unwrap_or(0);
    let counts = format!("{} shown, {} folded, {} pending", number("showing"), number("folded"), number("pending"));
    anstream::eprintln!("{}", paint(MUTED, counts));
    Ok(true)
}

impl InjectArgs {
    fn body(&self) -> Result<Value> {
        let mut body = json!({ "point": self.point, "call_id": self.call_id });
        if let Some(agent) = &self.agent {
            body["agent"] = json!(agent);
        }
        if let Some(style) = &self.style {
            body["style"] = json!(style);
        }
        if let Some(result) = &self.tool_result {
            body["tool_result"] = json!(input::text(result)?);
        }
        if let Some(observed) = &self.observed {
            body["observed"] = serde_json::from_str(&input::text(observed)?).context("--observed is not JSON")?;
        }
        Ok(body)
    }
}
