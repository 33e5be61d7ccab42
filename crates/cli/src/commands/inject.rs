use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::{Value, json};

use super::input;
use crate::client::{Client, Connection, conversation_path};
use crate::output::{MUTED, paint, print_json, printable, warn};

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
    /// The API format of synthetic messages, with --style synthetic: anthropic, openai_chat or openai_responses
    #[arg(long)]
    shape: Option<String>,
    /// The largest number of items, 1 to 100 [default: 10]
    #[arg(long, value_name = "N")]
    max_items: Option<u32>,
    /// The largest number of tokens, tags included, 64 to 100000 [default: 1000]
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    /// The id of an earlier injection whose answer never reached the model: its notifications become pending again; may be
    /// given several times
    #[arg(long, value_name = "CALL_ID")]
    unseen: Vec<String>,
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
    for warning in answer["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        warn(warning);
    }
    Ok(true)
}

impl InjectArgs {
    fn body(&self) -> Result<Value> {
        let mut body = json!({ "point": self.point, "call_id": self.call_id });
        for (key, value) in [("agent", &self.agent), ("style", &self.style), ("shape", &self.shape)] {
            if let Some(value) = value {
                body[key] = json!(value);
            }
        }
        for (key, value) in [("max_items", self.max_items), ("max_tokens", self.max_tokens)] {
            if let Some(value) = value {
                body[key] = json!(value);
            }
        }
        if !self.unseen.is_empty() {
            body["unseen"] = json!(self.unseen);
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
