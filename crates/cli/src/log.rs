//! The log of a hub, on standard error or in a file.

mod queue;
pub(crate) mod rotating_file;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal as _, stderr};
use std::panic::PanicHookInfo;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwire_server::config::{LogConfig, LogFormat};
use serde_json::{Value, json};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use self::queue::LogQueue;
use self::rotating_file::RotatingFile;

/// How long the process waits at its end for queued log lines to be written.
const FLUSH_MAX: Duration = Duration::from_millis(500);

/// Standard error of a hub. Dropping it waits at most [`FLUSH_MAX`] until all queued lines are written.
pub(crate) struct Log {
    queue: LogQueue,
    colours: bool,
}

impl Log {
    /// Installs the global `tracing` subscriber and the panic hook. The log goes to `file`, if there is one.
    pub(crate) fn start(settings: &LogConfig, file: Option<&Path>) -> Result<Self> {
        let format = match settings.format {
            LogFormat::Auto if stderr().is_terminal() => LineFormat::Text,
            LogFormat::Text => LineFormat::Text,
            LogFormat::Auto | LogFormat::Json => LineFormat::Json,
        };
        // The MCP library logs every session; `rmcp=info` behind the level turns that on.
        let level = match settings.level.as_str() {
            silent @ ("off" | "error") => silent.to_owned(),
            level => format!("rmcp=warn,{level}"),
        };
        let dropped_line = move |lines: u64| format.line("WARN", DROPPED, &[("lines", lines.into())]);
        let queue = match file.map(RotatingFile::open).transpose().context("the log cannot be opened")? {
            Some(file) => LogQueue::start(file, dropped_line),
            None => LogQueue::start(stderr(), dropped_line),
        };
        let queue = queue.context("cannot start the log's thread")?;
        let writer = queue.clone();
        let filter: Targets = level.parse().context("log.level cannot be read")?;
        let lines = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let registry = tracing_subscriber::registry().with(filter);
        match format {
            LineFormat::Text => registry.with(lines.with_ansi(stderr().is_terminal())).init(),
            LineFormat::Json => registry.with(lines.json().with_span_list(false)).init(),
        }
        let panics = queue.clone();
        // The standard hook writes to standard error directly, and would block if its reader has stalled.
        std::panic::set_hook(Box::new(move |panic| report_panic(panic, &panics, format)));
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
const PANICKED: &str = "a task panicked";

/// How a line is written that does not come from `tracing`.
#[derive(Copy, Clone)]
enum LineFormat {
    Text,
    Json,
}

impl LineFormat {
    fn line(self, level: &str, message: &str, fields: &[(&str, Value)]) -> String {
        let time = jiff::Timestamp::now();
        match self {
            Self::Text => {
                let fields: String = fields.iter().map(|(name, value)| format!(" {name}={}", as_text(value))).collect();
                format!("{time} {level} bellwire::log: {message}{fields}\n")
            }
            Self::Json => {
                let mut all = json!({ "message": message });
                fields.iter().for_each(|(name, value)| all[*name] = value.clone());
                let target = "bellwire::log";
                format!(
                    "{}\n",
                    json!({ "timestamp": time.to_string(), "level": level, "fields": all, "target": target })
                )
            }
        }
    }
}

/// The value as a line of text has it: strings without quotes, so that a backtrace keeps its lines.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Logs a panic, with its backtrace if `RUST_BACKTRACE` asks for one. A panic may end the hub, so its line is written whatever
/// `log.level` is.
fn report_panic(panic: &PanicHookInfo<'_>, queue: &LogQueue, format: LineFormat) {
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    if tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!(%panic, backtrace, "{PANICKED}");
        return;
    }
    let backtrace = backtrace.map(|backtrace| ("backtrace", backtrace.into()));
    let fields: Vec<(&str, Value)> = [("panic", panic.to_string().into())].into_iter().chain(backtrace).collect();
    queue.push(format.line("ERROR", PANICKED, &fields).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_process::TestProcess;

    /// Panics in a thread of a process with this log.
    fn panic_with(level: &str, format: LogFormat) -> ! {
        let log = Log::start(&LogConfig { level: level.to_owned(), format }, None).expect("the log starts");
        let panicked = std::thread::spawn(|| panic!("on purpose")).join();
        drop(log);
        std::process::exit(i32::from(panicked.is_ok()));
    }

    #[test]
    fn a_panic_is_logged_also_when_the_log_is_off() {
        let this = TestProcess::new("log::tests::a_panic_is_logged_also_when_the_log_is_off");
        if this.is_child() {
            let level = std::env::var("LEVEL").expect("it is set");
            panic_with(&level, if std::env::var_os("JSON").is_some() { LogFormat::Json } else { LogFormat::Text });
        }
        for level in ["off", "info"] {
            let said = |json: bool, backtrace: &str| {
                let output = this.run(|command| {
                    command.env("LEVEL", level).env("RUST_BACKTRACE", backtrace);
                    if json {
                        command.env("JSON", "1");
                    }
                });
                assert!(output.status.success(), "{output:?}");
                String::from_utf8_lossy(&output.stderr).into_owned()
            };
            for json in [false, true] {
                let (short, long) = (said(json, "0"), said(json, "1"));
                assert!(short.contains("a task panicked") && short.contains("on purpose"), "{level}: {short}");
                assert_eq!(short.matches("on purpose").count(), 1, "{level}: {short}");
                assert!(!short.contains("panic_with") && long.contains("panic_with"), "{level}: {long}");
            }
            let line = said(true, "0");
            let line: Value = serde_json::from_str(line.lines().last().expect("a line")).expect("JSON");
            assert_eq!((&line["level"], &line["fields"]["message"]), (&json!("ERROR"), &json!(PANICKED)));
        }
    }
}
