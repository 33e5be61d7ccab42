use std::io::Write as _;

use anyhow::Result;
use reqwest::Method;
use serde_json::json;

use crate::args::Inject;
use crate::client::{Client, segment};
use crate::output::{MUTED, printable};

pub(crate) fn run(arguments: &Inject) -> Result<bool> {
    let mut ask = json!({ "point": arguments.point, "call_id": arguments.call_id });
    if let Some(agent) = &arguments.agent {
        ask["agent"] = json!(agent);
    }
    if let Some(result) = &arguments.tool_result {
        ask["tool_result"] = json!(result);
    }
    let path = format!("/v1/conversations/{}/inject", segment(&arguments.conversation));
    let answer = Client::new(&arguments.connection)?.call(Method::POST, &path, Some(&ask))?;
    let mut out = anstream::stdout().lock();
    if arguments.json {
        writeln!(out, "{answer}")?;
        return Ok(true);
    }
    let content = answer["content"].as_str().unwrap_or("");
    if !content.is_empty() {
        writeln!(out, "{}", printable(content))?;
    }
    let number = |key: &str| answer[key].as_u64().unwrap_or(0);
    anstream::eprintln!(
        "{}{} shown, {} folded, {} pending{}",
        MUTED.render(),
        number("showing"),
        number("folded"),
        number("pending"),
        MUTED.render_reset()
    );
    Ok(true)
}
