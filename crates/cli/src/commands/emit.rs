use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::input;
use crate::client::{Client, Connection, HubRefused};
use crate::output::{MUTED, STRONG, WAITS, decided_for, paint, print_json, text, verdict_style};

/// Publish an event and print its verdicts
#[derive(Args)]
pub(crate) struct EmitArgs {
    /// The type, such as tool.call.failure
    #[arg(value_name = "TYPE", required_unless_present = "ndjson")]
    kind: Option<String>,
    /// The payload as a JSON object; - reads standard input, @FILE a file
    #[arg(default_value = "{}")]
    payload: String,
    /// The id of the conversation it is for
    #[arg(long, short, value_name = "ID")]
    conversation: Option<String>,
    /// The id of the person; without --conversation, all open conversations of that person
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The agent inside the conversation
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The component it comes from
    #[arg(long, default_value = "cli")]
    source: String,
    /// debug, info, warning, error or critical
    #[arg(long, default_value = "info")]
    severity: String,
    /// Your own id for it: an event that is sent twice takes effect once
    #[arg(long)]
    id: Option<String>,
    /// Your own key for repeats: within the subscriber's dedupe window, events with the same key are shown once and counted
    #[arg(long, value_name = "KEY")]
    dedupe_key: Option<String>,
    /// Publish the events of a file instead, one JSON object per line; - reads standard input
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["kind", "payload", "conversation", "user", "agent", "source", "severity", "id",
                                "dedupe_key"])]
    ndjson: Option<String>,
    /// Print the JSON of the hub's response
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

const NOT_FOUND: u16 = 404;
/// The hub's limit of events per request.
const BATCH_MAX: usize = 1000;
/// The most different hints that are printed for a file.
const HINTS_MAX: usize = 5;

pub(crate) fn run(arguments: &EmitArgs) -> Result<bool> {
    if let Some(path) = &arguments.ndjson {
        return publish_lines(arguments, path);
    }
    let event = arguments.event()?;
    let answer = Client::new(&arguments.connection)?.post("/v1/events", &event).map_err(explain)?;
    if arguments.json {
        return print_json(&answer);
    }
    print_receipt(&answer["events"][0], &event)?;
    Ok(true)
}

impl EmitArgs {
    fn event(&self) -> Result<Value> {
        let payload = input::text(&self.payload)?;
        let payload: Value = serde_json::from_str(&payload).context("the payload is not JSON")?;
        if !payload.is_object() {
            bail!("the payload must be a JSON object, such as '{{\"message\": \"red\"}}'");
        }
        let mut event = Map::from_iter([
            ("type".to_owned(), json!(self.kind)),
            ("source".to_owned(), json!(self.source)),
            ("severity".to_owned(), json!(self.severity)),
            ("payload".to_owned(), payload),
        ]);
        let optional = [
            ("conversation_id", &self.conversation),
            ("user_id", &self.user),
            ("agent", &self.agent),
            ("id", &self.id),
            ("dedupe_key", &self.dedupe_key),
        ];
        event.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
        Ok(Value::Object(event))
    }
}

/// Adds a hint to "no such conversation": a token without a user creates one only if the event names its user.
fn explain(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<HubRefused>().is_some_and(|refused| refused.status == NOT_FOUND) {
        true => anyhow::anyhow!("{error}; with --user ID the first event of a conversation creates it"),
        false => error,
    }
}

fn print_receipt(accepted: &Value, event: &Value) -> Result<()> {
    let mut out = anstream::stdout().lock();
    let (id, event_id) = (text(accepted, "id"), text(accepted, "event_id"));
    // With an id of its own, an event also has the hub's id, which is unique.
    let own = if id == event_id { String::new() } else { format!("  {}", paint(MUTED, event_id)) };
    writeln!(out, "{}{own}", paint(STRONG, id))?;
    for verdict in accepted["verdicts"].as_array().into_iter().flatten() {
        let word = text(verdict, "verdict");
        let colour = verdict_style(&word);
        let padded = paint(colour, format!("{word:10}"));
        let place = decided_for(verdict, event).map(|place| format!(" ({place})")).unwrap_or_default();
        writeln!(out, "  {padded} {:16} {}{place}", text(verdict, "subscriber"), text(verdict, "reason"))?;
        if verdict["hint"].is_string() {
            writeln!(out, "  {:27} {}", "", paint(WAITS, format!("hint: {}", text(verdict, "hint"))))?;
        }
    }
    let filtered = accepted["filtered"].as_u64().unwrap_or(0);
    writeln!(out, "  {}", paint(MUTED, format!("{filtered} other subscribers do not listen for it")))?;
    Ok(())
}

/// Names the line of the file where the hub names one of the request, which has only a part of the file's lines.
fn at_line(error: anyhow::Error, path: &str, batch: &[(usize, &str)]) -> anyhow::Error {
    let located = error.downcast_ref::<HubRefused>().and_then(|refused| {
        let (index, field) = refused.field.as_deref()?.strip_prefix("events[")?.split_once(']')?;
        let (number, _) = batch.get(index.parse::<usize>().ok()?)?;
        let reason = refused.reason.split_once(": ").filter(|(line, _)| line.starts_with("line "));
        let reason = reason.map_or(&*refused.reason, |(_, reason)| reason);
        let field = field.strip_prefix('.').map(|field| format!("{field}: ")).unwrap_or_default();
        Some(anyhow::anyhow!("{path}, line {number}: {field}{reason} ({})", refused.status))
    });
    located.unwrap_or(error)
}

/// Publishes the lines of a file in requests of at most `BATCH_MAX` events. The hub accepts each request as a whole or not
/// at all.
fn publish_lines(arguments: &EmitArgs, path: &str) -> Result<bool> {
    let content = input::file(path)?;
    let lines: Vec<(usize, &str)> = (1..).zip(content.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        bail!("{path} has no events; write one JSON object per line");
    }
    let client = Client::new(&arguments.connection)?;
    let (mut published, mut verdicts, mut hints) = (0, BTreeMap::<String, usize>::new(), BTreeSet::new());
    for batch in lines.chunks(BATCH_MAX) {
        let body: Vec<&str> = batch.iter().map(|(_, line)| *line).collect();
        let answer = client.send(Method::POST, "/v1/events", Some(("application/x-ndjson", body.join("\n"))));
        let answer = answer.map_err(|error| at_line(error, path, batch));
        let answer = answer.with_context(|| format!("{published} events were published before this"))?.body;
        if arguments.json {
            print_json(&answer)?;
        }
        let events = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        published += events.len();
        for verdict in events.iter().filter_map(|event| event["verdicts"].as_array()).flatten() {
            *verdicts.entry(text(verdict, "verdict")).or_default() += 1;
            if verdict["hint"].is_string() && hints.len() < HINTS_MAX {
                hints.insert(format!("{}; {}", text(verdict, "reason"), text(verdict, "hint")));
            }
        }
    }
    let verdicts: Vec<String> = verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let told = if verdicts.is_empty() { "no subscriber listens for them".to_owned() } else { verdicts.join(", ") };
    let events = if published == 1 { "event" } else { "events" };
    match arguments.json {
        true => anstream::eprintln!("{published} {events} published: {told}"),
        false => anstream::println!("{published} {events} published: {told}"),
    }
    hints.iter().for_each(|hint| anstream::eprintln!("{}", paint(WAITS, format!("hint: {hint}"))));
    Ok(true)
}
