//! The log of a hub, on standard error.

mod queue;

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwire_server::config::{LogConfig, LogFormat};
use serde_json::json;

use self::queue::{DroppedLine, LogQueue};

/// How long the process waits at its end for queued log lines to be written.
const FLUSH_MAX: Duration = Duration::from_millis(500);

/// Standard error of a hub. Dropping it waits at most [`FLUSH_MAX`] until all queued lines are written.
pub(crate) struct Log {
    queue: LogQueue,
    colours: bool,
}

impl Log {
    /// Installs the global `tracing` subscriber and the panic hook.
    pub(crate) fn start(settings: &LogConfig) -> Result<Self> {
        let text = match settings.format {
            LogFormat::Auto => stderr().is_terminal(),
            LogFormat::Text => true,
            LogFormat::Json => false,
        };
        // The MCP library logs every session; `rmcp=info` behind the level turns that on.
        let level = match settings.level.as_str() {
            silent @ ("off" | "error") => silent.to_owned(),
            level => format!("rmcp=warn,{level}"),
        };
        let dropped_line: DroppedLine = if text { dropped_as_text } else { dropped_as_json };
        let queue = LogQueue::start(stderr(), dropped_line).context("cannot start the log's thread")?;
        let writer = queue.clone();
        let filter = tracing_subscriber::EnvFilter::new(level);
        let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || writer.clone());
        match text {
            true => builder.with_ansi(stderr().is_terminal()).init(),
            false => builder.json().with_span_list(false).init(),
        }
        // The standard hook writes to standard error directly, and would block if its reader has stalled.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task panicked")));
        let colours = anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never;
        Ok(Self { queue, colours })
    }

    /// Writes a line for the operator, without level and timestamp.
    pub(crate) fn say(&self, line: &str) {
        let line = match self.colours {
            true => format!("{line}\n"),
            false => format!("{}\n", anstream::adapter::strip_str(line)),
        };
        self.queue.push(line.as_bytes());
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.flush(FLUSH_MAX);
    }
}

const DROPPED: &str = "log lines were dropped, because standard error was closed or not read";

fn dropped_as_text(lines: u64) -> String {
    format!("{} WARN bellwire::log: {DROPPED} lines={lines}\n", jiff::Timestamp::now())
}

fn dropped_as_json(lines: u64) -> String {
    let fields = json!({ "message": DROPPED, "lines": lines });
    let line = json!({
        "timestamp": jiff::Timestamp::now().to_string(), "level": "WARN", "fields": fields, "target": "bellwire::log",
    });
    format!("{line}\n")
}
