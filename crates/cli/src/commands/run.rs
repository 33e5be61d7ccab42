mod last_lines;
pub(crate) mod target;

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::{Value, json};

use crate::client::Connection;
use crate::output::{printable, warn};
use last_lines::LastLines;
use target::Targets;

/// Run a command, and tell the agents that work in this folder how it ended
///
/// The command's input, output and exit code are its own. When it ends, task.background.complete or task.background.failed is
/// published, with the last lines of its output if that is not a terminal.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// The conversation to tell [default: the session in whose shell this runs, else the open conversations whose folder
    /// contains the current one]
    #[arg(long, short, value_name = "ID")]
    conversation: Option<String>,
    /// The id of the conversation's owner; without --conversation, the token's person or `user.default` of the configuration
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The name under which agents are told of it [default: the command]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    connection: Connection,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// In characters.
const NAME_MAX: usize = 100;

pub(crate) fn run(arguments: &RunArgs) -> Result<bool> {
    // Before the command starts: an agent that cannot be told is noticed now and not in an hour.
    let targets = Targets::find(arguments.conversation.as_deref(), arguments.user.as_deref(), &arguments.connection)?;
    let begun = Instant::now();
    let (status, last) = arguments.carry_out(&targets)?;
    let event = arguments.event(status, &last, begun);
    if let Err(error) = targets.publish(&event) {
        warn(&format!("the command has ended, but the hub could not be told: {error:#}"));
    }
    std::process::exit(exit_code(status))
}

impl RunArgs {
    fn carry_out(&self, targets: &Targets) -> Result<(ExitStatus, String)> {
        let (program, words) = self.command.split_first().context("there is no command")?;
        let mut command = Command::new(program);
        command.args(words);
        let mut lines = LastLines::default();
        let outputs = lines.connect(&mut command)?;
        let child = command.stdin(Stdio::inherit()).spawn();
        let child = child.with_context(|| format!("'{}' cannot be started", printable(program)))?;
        // What holds the ends of the pipes for writing.
        drop(command);
        let status = targets.block_on(wait(child))?;
        Ok((status, lines.finish(&outputs)))
    }

    fn event(&self, status: ExitStatus, last: &str, begun: Instant) -> Value {
        let name: String = self.name.clone().unwrap_or_else(|| self.command.join(" ")).chars().take(NAME_MAX).collect();
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut payload = json!({ "task_id": name, "duration_ms": duration_ms, "exit_code": exit_code(status) });
        let (kind, severity) = match status.success() {
            true => ("task.background.complete", "info"),
            false => ("task.background.failed", "error"),
        };
        match status.success() {
            true if last.is_empty() => {}
            true => payload["result_summary"] = json!(last),
            false => payload["error_message"] = json!(format!("{status}\n{last}").trim_end()),
        }
        json!({ "type": kind, "source": "bellwire run", "severity": severity, "payload": payload })
    }
}

/// Waits for the command. Ctrl-C reaches it from the terminal and is its own business; a polite kill is passed on.
async fn wait(mut child: Child) -> Result<ExitStatus> {
    let pid = child.id();
    // After the start of the command: it must not inherit that signals are handled.
    let mut signals = Signals::new()?;
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    loop {
        tokio::select! {
            ended = &mut ended => return Ok(ended??),
            is_kill = signals.next() => if is_kill {
                crate::background::terminate(pid)?;
            },
        }
    }
}

/// The signals that would end this process.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (interrupt, quit) = (signal(SignalKind::interrupt())?, signal(SignalKind::quit())?);
        Ok(Self { interrupt, quit, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for a signal; true if it was sent to this process only.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.quit.recv() => false,
            _ = self.terminate.recv() => true,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> bool {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        false
    }
}

/// The code with which a shell would report this end.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(crate::EXIT_FAILED.into())
}
