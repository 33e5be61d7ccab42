use std::io::Write as _;

use anyhow::Result;
use reqwest::Method;
use serde_json::Value;

use crate::args::Trace;
use crate::client::{Client, segment};
use crate::output::{MUTED, STRONG, printable};

pub(crate) fn run(arguments: &Trace) -> Result<bool> {
    let path = format!("/v1/events/{}", segment(&arguments.id));
    let trace = Client::new(&arguments.connection)?.call(Method::GET, &path, None)?;
    let mut out = anstream::stdout().lock();
    if arguments.json {
        writeln!(out, "{trace}")?;
        return Ok(true);
    }
    let (strong, muted) = (STRONG, MUTED);
    let head = format!("{} [{}] {}", text(&trace, "type"), text(&trace, "source"), text(&trace, "severity"));
    writeln!(out, "{}{}{}", strong.render(), printable(&head), strong.render_reset())?;
    writeln!(out, "{}accepted {}{}", muted.render(), text(&trace, "accepted_at"), muted.render_reset())?;
    writeln!(out, "{}", printable(&trace["payload"].to_string()))?;
    let verdicts = trace["verdicts"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, verdict) in verdicts.iter().enumerate() {
        let last = number + 1 == verdicts.len();
        let (branch, below) = if last { ("└─", "   ") } else { ("├─", "│  ") };
        let line = format!("{} {}: {}", text(verdict, "subscriber"), text(verdict, "verdict"), text(verdict, "reason"));
        writeln!(out, "{branch} {}", printable(&line))?;
        let of_verdict = |one: &&Value| one["id"] == verdict["notification_id"];
        for one in trace["notifications"].as_array().into_iter().flatten().filter(of_verdict) {
            let ended = one["ended_at"].as_str().map(|at| format!(" at {at}")).unwrap_or_default();
            let call = one["call_id"].as_str().map(|call| format!(" in call {call}")).unwrap_or_default();
            let line = format!("notification {} since {}", text(one, "inject_at"), text(one, "created_at"));
            writeln!(out, "{below}└─ {}", printable(&line))?;
            writeln!(out, "{below}   {}{ended}{}", text(one, "state"), printable(&call))?;
            if let Some(content) = one["content"].as_str() {
                writeln!(out, "{below}   {}", printable(content).replace('\n', &format!("\n{below}   ")))?;
            }
        }
    }
    Ok(true)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}
