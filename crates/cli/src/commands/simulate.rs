use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bellwire_core::Timeline;
use bellwire_core::timeline::Report;
use serde_json::json;

use super::folder;
use crate::args::Simulate;
use crate::output::{MUTED, STRONG, printable, style};

/// More than this is no timeline.
const FILE_MAX: u64 = 16 * 1024 * 1024;

pub(crate) fn run(arguments: &Simulate) -> Result<bool> {
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

fn print_json(report: &Report) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for entry in &report.entries {
        let mut line = json!({ "at_ms": entry.at, "verb": entry.verb, "title": entry.title });
        line["data"] = entry.data.clone();
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn print_text(report: &Report) -> Result<()> {
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
