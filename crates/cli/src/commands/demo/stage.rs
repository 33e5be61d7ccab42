//! The steps of the demo's script: each calls the hub and prints what happens.

use std::fmt;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Client, SseReader};
use crate::output::{MUTED, SAID, STRONG, TEXT, paint, printable, text, verdict_style};

/// The pause after each step, for reading.
const STEP_PAUSE: Duration = Duration::from_millis(900);
const WAKE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Stage<'a> {
    client: &'a Client,
    pub(super) conversation: String,
    fast: bool,
}

/// Ctrl-C was pressed: the demo ends and erases its user.
#[derive(Debug)]
pub(super) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl<'a> Stage<'a> {
    /// Creates a conversation with a unique id, owned by a user of the same id.
    pub(super) fn new(client: &'a Client, fast: bool) -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let conversation = format!("demo-{:x}-{:x}", since.as_millis(), std::process::id());
        let owner = json!({ "user_id": conversation, "title": "A demonstration" });
        client.call(Method::PUT, &format!("/v1/conversations/{conversation}"), Some(&owner))?;
        Ok(Self { client, conversation, fast })
    }

    /// Prints a scene's title and what to look for.
    pub(super) fn scene(&self, title: &str, words: &str) -> Result<()> {
        let mut out = anstream::stdout().lock();
        writeln!(out, "\n{}", paint(STRONG, title))?;
        writeln!(out, "{}", paint(MUTED, words))?;
        drop(out);
        self.pause(STEP_PAUSE)
    }

    /// Prints why the last step had this result.
    pub(super) fn explain(&self, words: &str) -> Result<()> {
        writeln!(anstream::stdout(), "  {} {words}", paint(SAID, "why:"))?;
        self.pause(STEP_PAUSE)
    }

    /// Publishes events in one request and prints the verdicts; returns the first event's id.
    pub(super) fn publish(&self, events: &[Value]) -> Result<String> {
        let address = |event: &Value| {
            let mut event = event.clone();
            event["conversation_id"] = json!(self.conversation);
            event
        };
        let events: Vec<Value> = events.iter().map(address).collect();
        let answer = self.client.post("/v1/events", &json!(events))?;
        let receipts = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        let shown: Vec<(&Value, &Value)> = events.iter().zip(receipts).collect();
        for same in shown.chunk_by(|one, other| one.0 == other.0) {
            let Some((event, receipt)) = same.last() else { continue };
            let times = if same.len() > 1 { format!(" {} times", same.len()) } else { String::new() };
            let what = format!("{} [{}]{times}", text(event, "type"), text(event, "source"));
            show_receipt(&what, &event["payload"], receipt)?;
        }
        self.pause(STEP_PAUSE)?;
        Ok(receipts.first().map(|receipt| text(receipt, "id")).unwrap_or_default())
    }

    /// Posts a message of the person.
    pub(super) fn say(&self, words: &str) -> Result<()> {
        let receipt = self.client.post(&self.path("messages"), &json!({ "text": words }))?;
        show_receipt("the person says", &json!({ "text": words }), &receipt)?;
        self.pause(STEP_PAUSE)
    }

    /// Injects at a point and prints the block; `more` holds the other fields of the request. Returns the response.
    pub(super) fn inject(&self, point: &str, call_id: &str, more: Value) -> Result<Value> {
        let mut ask = more;
        ask["point"] = json!(point);
        ask["call_id"] = json!(call_id);
        let answer = self.client.post(&self.path("inject"), &ask)?;
        let agent = ask["agent"].as_str().map(|agent| format!(", {agent}")).unwrap_or_default();
        let mut out = anstream::stdout().lock();
        writeln!(out, "  {} at {point} ({call_id}{agent}) the agent reads:", paint(STRONG, "◀"))?;
        let content = answer["content"].as_str().unwrap_or("");
        let content = if content.is_empty() { "(nothing: no news, no tokens)" } else { content };
        for line in printable(content).lines() {
            writeln!(out, "    {}", paint(TEXT, line))?;
        }
        drop(out);
        self.pause(STEP_PAUSE * 2)?;
        Ok(answer)
    }

    /// Opens the conversation's stream, as a harness does while its agent is idle.
    pub(super) fn listen(&self) -> Result<SseReader> {
        self.client.block_on(self.client.stream(&self.path("stream")))
    }

    /// Waits for a `wake` hint.
    pub(super) fn wait_for_wake(&self, mut lines: SseReader) -> Result<()> {
        let wake = async {
            while let Some((event, data)) = lines.next().await? {
                if event == "wake" {
                    return Ok(data);
                }
            }
            bail!("the stream ended before it said wake")
        };
        let wait_for_wake = self.client.block_on(async { tokio::time::timeout(WAKE_TIMEOUT, wake).await });
        let data = wait_for_wake.context("the stream did not say wake in time")??;
        writeln!(anstream::stdout(), "  {} the stream says {} {data}", paint(STRONG, "◀"), paint(SAID, "wake"))?;
        self.pause(STEP_PAUSE)
    }

    /// Prints an event's trace.
    pub(super) fn trace(&self, id: &str) -> Result<()> {
        let trace = self.client.get(&format!("/v1/events/{id}"))?;
        let tree = super::super::trace::tree(&trace);
        let mut out = anstream::stdout().lock();
        for line in tree.lines() {
            writeln!(out, "    {line}")?;
        }
        drop(out);
        self.pause(STEP_PAUSE)
    }

    fn path(&self, call: &str) -> String {
        format!("/v1/conversations/{}/{call}", self.conversation)
    }

    fn pause(&self, time: Duration) -> Result<()> {
        let time = if self.fast { Duration::ZERO } else { time };
        let interrupted = self.client.block_on(async {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => true,
                () = tokio::time::sleep(time) => false,
            }
        });
        if interrupted { Err(Interrupted.into()) } else { Ok(()) }
    }
}

fn show_receipt(what: &str, payload: &Value, receipt: &Value) -> Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "  {} {what} {}", paint(STRONG, "▶"), paint(MUTED, printable(&payload.to_string())))?;
    for verdict in receipt["verdicts"].as_array().into_iter().flatten() {
        let word = text(verdict, "verdict");
        let colour = verdict_style(&word);
        writeln!(out, "    {} by {}: {}", paint(colour, word), text(verdict, "subscriber"), text(verdict, "reason"))?;
    }
    Ok(())
}
