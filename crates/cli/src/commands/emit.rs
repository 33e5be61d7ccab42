use std::io::Write as _;

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::args::Emit;
use crate::client::Client;
use crate::output::{MUTED, STRONG, printable};

pub(crate) fn run(arguments: &Emit) -> Result<bool> {
    let payload: Value = serde_json::from_str(&arguments.payload).context("the payload is not JSON")?;
    let mut event = Map::from_iter([
        ("type".to_owned(), json!(arguments.kind)),
        ("source".to_owned(), json!(arguments.source)),
        ("severity".to_owned(), json!(arguments.severity)),
        ("payload".to_owned(), payload),
    ]);
    let optional = [
        ("conversation_id", &arguments.conversation),
        ("user_id", &arguments.user),
        ("agent", &arguments.agent),
        ("id", &arguments.id),
    ];
    event.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
    let answer = Client::new(&arguments.connection)?.call(Method::POST, "/v1/events", Some(&Value::Object(event)))?;
    let mut out = anstream::stdout().lock();
    if arguments.json {
        writeln!(out, "{answer}")?;
        return Ok(true);
    }
    let accepted = &answer["events"][0];
    writeln!(out, "{}{}{}", STRONG.render(), printable(text(accepted, "id")), STRONG.render_reset())?;
    for verdict in accepted["verdicts"].as_array().into_iter().flatten() {
        let line =
            format!("{:10} {:16} {}", text(verdict, "verdict"), text(verdict, "subscriber"), text(verdict, "reason"));
        writeln!(out, "  {}", printable(&line))?;
    }
    let filtered = accepted["filtered"].as_u64().unwrap_or(0);
    writeln!(out, "  {}{filtered} other subscribers do not listen for it{}", MUTED.render(), MUTED.render_reset())?;
    Ok(true)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}
