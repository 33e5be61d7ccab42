//! A wrapped server that is a command: it speaks MCP on its standard input and output.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::calls::Calls;
use super::client_output::ClientOutput;
use super::ending::{Ending, ServerGroup, Signal, Signals};
use super::lines::{Lines, Piece};
use super::proxy::Proxy;
use crate::commands::run::exit_code;
use crate::output::printable;

/// In bytes.
const BUFFER: usize = 64 * 1024;
/// How long to wait for output after the server has ended: a program that it left behind may hold the pipe.
const REST: Duration = Duration::from_secs(1);
/// How long the client may take to read the last messages.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Runs the command between the client and itself; returns the exit code.
pub(super) async fn run(command: &[String], proxy: &Arc<Proxy>) -> Result<i32> {
    let mut child = start(command)?;
    let group = ServerGroup::of(&child);
    let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("the server has no pipes")?;
    let calls = Arc::new(Calls::default());
    proxy.watch(&calls);
    let (output, writer) = ClientOutput::new();
    let mut tasks = Tasks {
        input: Task::spawn(pass_input(stdin, proxy.clone(), calls.clone())),
        server: Task::spawn(pass_output(stdout, output.clone(), proxy.clone(), calls.clone())),
        client: Task::spawn(writer.run(tokio::io::stdout())),
    };
    let status = tasks.until_exit(&mut child, &group).await?;
    if tokio::time::timeout(REST, tasks.server.join()).await.is_err() {
        // A program that the server has left behind holds the pipe, and the client does not know of it.
        group.send(&mut child, Signal::Terminate);
        tasks.server.stop();
    }
    let why = format!("the MCP server '{}' ended ({status}) before it answered", printable(&proxy.server));
    for line in proxy.abandon(&calls, None, &why) {
        output.own_line(line).await;
    }
    drop(output);
    // A client that does not read does not keep this process.
    let _ = tokio::time::timeout(LAST_WORDS, tasks.client.join()).await;
    proxy.news.finish().await;
    Ok(exit_code(status))
}

fn start(command: &[String]) -> Result<Child> {
    let (program, words) = command.split_first().context("there is no command")?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    // Its own group: what it starts is ended with it, and a Ctrl-C reaches it once, by us.
    #[cfg(unix)]
    command.process_group(0);
    command.spawn().with_context(|| format!("'{}' cannot be started", printable(program)))
}

/// The three directions in which something flows. None of them waits for another.
struct Tasks {
    input: Task,
    server: Task,
    client: Task,
}

impl Tasks {
    /// Waits for the server's end, and brings it about when the client is gone.
    async fn until_exit(&mut self, child: &mut Child, group: &ServerGroup) -> Result<ExitStatus> {
        let (mut signals, mut ending) = (Signals::new()?, Ending::default());
        loop {
            tokio::select! {
                status = child.wait() => return status.context("the server's end cannot be awaited"),
                signal = signals.next() => {
                    group.send(child, signal);
                    ending.signalled(signal);
                }
                () = self.input.ended() => ending.closed(),
                () = self.client.ended() => self.input.stop(),
                () = self.server.ended() => self.input.stop(),
                signal = ending.due() => group.send(child, signal),
            }
        }
    }
}

/// Passes what the client says to the server. Ends with either of them, and closes the server's input.
async fn pass_input(mut stdin: ChildStdin, proxy: Arc<Proxy>, calls: Arc<Calls>) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, tokio::io::stdin()));
    while let Some(piece) = lines.next().await? {
        if let Piece::Line(line) = &piece {
            proxy.client_said(&calls, line);
        }
        stdin.write_all(piece.bytes()).await?;
        stdin.flush().await?;
    }
    Ok(())
}

/// Passes what the server says to the client.
async fn pass_output(
    stdout: ChildStdout,
    output: ClientOutput,
    proxy: Arc<Proxy>,
    calls: Arc<Calls>,
) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, stdout));
    while let Some(piece) = lines.next().await? {
        match piece {
            Piece::Line(line) => output.message(line, &proxy, &calls).await,
            Piece::Part(part) => {
                calls.forget_all();
                output.part(part).await;
            }
        }
    }
    Ok(())
}

/// A task that may be awaited more than once.
struct Task {
    handle: JoinHandle<io::Result<()>>,
    is_done: bool,
}

impl Task {
    fn spawn(future: impl Future<Output = io::Result<()>> + Send + 'static) -> Self {
        Self { handle: tokio::spawn(future), is_done: false }
    }

    /// Completes once, when the task ends.
    async fn ended(&mut self) {
        if self.is_done {
            std::future::pending::<()>().await;
        }
        self.join().await;
    }

    /// How it ended is not asked: either side may go away at any time.
    async fn join(&mut self) {
        if !self.is_done {
            let _ = (&mut self.handle).await;
            self.is_done = true;
        }
    }

    fn stop(&self) {
        self.handle.abort();
    }
}
