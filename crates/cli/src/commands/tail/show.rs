use std::io::Write as _;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::output::{MUTED, SAID, TEXT, WAITS, WRONG, paint, text};

/// Prints a hint of the stream, or a message that was injected.
pub(super) fn show(as_json: bool, event: &str, data: &Value) -> Result<()> {
    let mut out = anstream::stdout().lock();
    let now = Timestamp::now();
    if as_json {
        writeln!(out, "{}", json!({ "event": event, "at": now.to_string(), "data": data }))?;
        return Ok(out.flush()?);
    }
    let at = match data["timestamp"].as_str().and_then(|text| text.parse().ok()) {
        Some(shown_at) => shown_at,
        None => now,
    };
    let clock = paint(MUTED, at.strftime("%H:%M:%S"));
    match event {
        "message" => {
            let head = format!("shown in call {}: [{}]", text(data, "call_id"), text(data, "source"));
            writeln!(out, "{clock}  {}", paint(SAID, head))?;
            for line in text(data, "content").lines() {
                writeln!(out, "          {}", paint(TEXT, line))?;
            }
        }
        event => writeln!(out, "{clock}  {}", hint(event, data))?,
    }
    Ok(out.flush()?)
}

fn hint(event: &str, data: &Value) -> String {
    let (count, agent) = (data["count"].as_u64().unwrap_or(0), text(data, "agent"));
    let named = data["notifications"].as_array().map_or(0, Vec::len);
    match event {
        "pending" if count == 0 => paint(MUTED, format!("nothing is pending for {agent}")),
        "pending" => paint(WAITS, format!("{count} pending for {agent}")),
        "wake" => {
            paint(SAID, format!("wake: {agent} is idle, and {named} of {count} pending notifications may wake it"))
        }
        "immediate" => paint(WRONG, format!("immediate: {named} of {count} pending for {agent} are critical")),
        other => format!("{other}: {data}"),
    }
}
