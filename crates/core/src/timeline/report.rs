use std::fmt;

use serde_json::Value;

/// The result of playing a timeline.
#[derive(Clone, Debug, Default)]
pub struct TimelineReport {
    /// One entry per step or timer, in order of time.
    pub entries: Vec<ReportEntry>,
}

/// The result of one step or timer.
#[derive(Clone, Debug)]
pub struct ReportEntry {
    /// Milliseconds since the start.
    pub at: u64,
    /// The verb of the line, or `timer`.
    pub verb: &'static str,
    /// The line's arguments in short form.
    pub title: String,
    /// The consequences as text, with the tone of each line.
    pub lines: Vec<(Tone, String)>,
    /// The consequences as JSON.
    pub data: Value,
}

/// The meaning of a line, by which a terminal colours it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Injected, or a wake.
    Said,
    /// Queued, held or pending.
    Waits,
    /// Counted or left out: duplicate, filtered, suppressed, replaced, expired, folded.
    Kept,
    /// An error.
    Wrong,
    /// The injected text itself.
    Text,
}

impl ReportEntry {
    /// The time formatted as `1.500s` or `2m03.000s`.
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

/// Plain text, as the snapshots of the scenario tests have it.
impl fmt::Display for TimelineReport {
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
