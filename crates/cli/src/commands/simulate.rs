use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bellwire_core::Timeline;
use bellwire_core::timeline::TimelineReport;
use clap::Args;
use serde_json::json;

use super::folder;
use crate::output::{MUTED, STRONG, printable, style};

/// Play a timeline of events and injection points on a virtual clock
///
/// Prints every verdict, notification and block. Nothing is stored and no time passes.
#[derive(Args)]
#[command(after_long_help = TIMELINE_HELP)]
pub(crate) struct SimulateArgs {
    /// The timeline; - reads standard input
    file: PathBuf,
    /// Add (or replace by id) the subscribers of this folder
    #[arg(long, value_name = "DIR")]
    subscribers: Option<PathBuf>,
    /// Print one JSON object per step instead of text
    #[arg(long)]
    json: bool,
}

const TIMELINE_HELP: &str = r#"A timeline is text, one step per line: a time, a verb, its arguments.

  # One tool fails; the agent reads it after the next tool's result.
  0s      event tool.call.failure tool_executor error {"tool_name": "grep", "error_type": "timeout"}
  +500ms  inject after_tool call_1 | File updated.

  start 2026-01-03T15:30:00Z                     the time of 0s
  subscriber FILE.toml:  + indented lines        a subscriber of this timeline
  template PATH:         + indented lines        its template
  T event TYPE SOURCE SEVERITY [agent=A] [dedupe=K] [by_agent] {payload}
  T user TEXT                                    a message from the person
  T burst N event ...   T burst N user ...       the same N times; %n becomes 1, 2, 3 ...
  T inject POINT CALL [agent=A] [items=N] [tokens=N] [style=S] [shape=S]
           [unseen=CALL,...] [wake_only] [observed={...}] [| tool result]
  T disable ID,...   T enable                    switch subscribers off; switch all on again
  T subscriber FILE.toml:   T remove ID          change a subscriber file; delete one
  T rotate   T crash   T messages   T wait       new boundary; save and load; print the history; do nothing

Times are 0s, 1.5s, 200ms, 2m, 1h, 1d from the start, or +500ms after the line before.
Points are immediate, turn_start, after_tool, turn_end."#;

/// The largest timeline accepted, in bytes.
const FILE_MAX: u64 = 16 * 1024 * 1024;

pub(crate) fn run(arguments: &SimulateArgs) -> Result<bool> {
    let name = match arguments.file.to_string_lossy() {
        name if name == "-" => "standard input".into(),
        name => name,
    };
    let text = read(&arguments.file)?;
    let timeline = Timeline::parse(&text).with_context(|| name.to_string())?;
    let (subscribers, errors) = folder::subscribers(arguments.subscribers.as_deref())?;
    folder::warn(&errors);
    let report = timeline.play(&subscribers).with_context(|| name.to_string())?;
    match arguments.json {
        true => print_json(&report)?,
        false => print_text(&report)?,
    }
    Ok(errors.is_empty())
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(FILE_MAX + 1).read_to_string(&mut text).context("cannot read standard input")?;
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        file.take(FILE_MAX + 1).read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
    }
    if text.len() as u64 > FILE_MAX {
        bail!("the timeline is larger than {FILE_MAX} bytes");
    }
    Ok(text)
}

fn print_json(report: &TimelineReport) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for entry in &report.entries {
        let mut line = json!({ "at_ms": entry.at, "verb": entry.verb, "title": entry.title });
        line["data"] = entry.data.clone();
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn print_text(report: &TimelineReport) -> Result<()> {
    let mut out = anstream::stdout().lock();
    for entry in &report.entries {
        let (strong, muted) = (STRONG.render(), MUTED.render());
        let title = printable(&entry.title);
        writeln!(out, "{muted}{:>10}{muted:#}  {strong}{:8}{strong:#} {title}", entry.clock(), entry.verb)?;
        for (tone, text) in &entry.lines {
            let colour = style(*tone);
            for line in printable(text).lines() {
                match line {
                    "" => writeln!(out)?,
                    line => writeln!(out, "{:12}{}{line}{}", "", colour.render(), colour.render_reset())?,
                }
            }
        }
    }
    Ok(())
}
