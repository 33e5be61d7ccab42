use std::fmt;

use serde_json::Value;

/// Everything that happened while a timeline was played, in order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What happened.
    pub entries: Vec<Entry>,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When, in milliseconds since the start.
    pub at: u64,
    /// The verb of the line, or `timer` for what fell due by itself.
    pub verb: &'static str,
    /// What the line says.
    pub title: String,
    /// What came of it, line by line.
    pub lines: Vec<(Tone, String)>,
    /// The same for machines.
    pub data: Value,
}

/// What a line is about, so that a terminal can colour it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Something an agent will read or has read.
    Said,
    /// Something that waits.
    Waits,
    /// Something counted or left out, with its reason.
    Kept,
    /// Something that went wrong.
    Wrong,
    /// The text an agent reads.
    Text,
}

impl Entry {
    /// The time as people read it: `1.500s`.
    pub fn clock(&self) -> String {
        clock(self.at)
    }
}

pub(super) fn clock(millis: u64) -> String {
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    match minutes {
        0 => format!("{}.{:03}s", rest / 1000, rest % 1000),
        _ => format!("{minutes}m{:02}.{:03}s", rest / 1000, rest % 1000),
    }
}

/// Plain text, one entry after the other: what snapshots keep.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let head = format!("{:>10}  {:8} {}", entry.clock(), entry.verb, entry.title);
            writeln!(f, "{}", head.trim_end())?;
            for (_, line) in &entry.lines {
                for line in line.lines() {
                    writeln!(f, "{}", format!("{:12}{line}", "").trim_end())?;
                }
            }
        }
        Ok(())
    }
}
