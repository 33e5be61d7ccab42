//! The real binary as a child process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest a start or stop may take; generous, because the machine may be busy with other tests.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running hub, killed on drop.
pub(crate) struct Hub {
    child: Child,
    pub(crate) address: String,
    said: StderrLog,
}

/// The standard error of the process.
struct StderrLog {
    /// Everything written so far.
    text: Arc<Mutex<String>>,
    /// The reading thread; it ends with the process.
    reader: Option<JoinHandle<()>>,
}

/// The command that serves this folder on a free port.
pub(crate) fn serve(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwire"));
    command.args(arguments(folder));
    // So little that mailboxes leave memory and the log while the tests kill the hub.
    command.env("BELLWIRE_DATA_MAILBOX_CACHE_BYTES", "262144").env("BELLWIRE_DATA_MAILBOX_LOG_BYTES", "4096");
    command
}

/// The arguments of `serve`, for tests that start it through another program.
pub(crate) fn arguments(folder: &Path) -> Vec<String> {
    ["serve", "--listen", "127.0.0.1:0", "--data-dir", folder.to_str().expect("the path is text")]
        .map(str::to_owned)
        .to_vec()
}

impl Hub {
    /// Starts a hub on this folder and waits until it prints its address.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(serve(folder))
    }

    pub(crate) fn start_with(command: Command) -> Self {
        let (child, said, lines) = spawn(command);
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                let hub = Self { child, address: String::new(), said };
                panic!("the hub did not start; it said:\n{}", hub.said());
            };
            if let Some(address) = address_in(&line) {
                return Self { child, address, said };
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn said(&self) -> String {
        self.said.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the hub has said this: its log is written by a thread of its own, after the answer.
    pub(crate) fn wait_until_said(&self, expected: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.said().contains(expected) {
            assert!(Instant::now() < deadline, "it never said {expected:?}:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// Sends SIGTERM, on which the hub stops gracefully.
    pub(crate) fn terminate(&self) {
        let sent = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.pid())]).status();
        assert!(sent.expect("there is a shell").success(), "the signal could not be sent");
    }

    /// Waits until the process exits; returns its status and its standard error.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                // The thread may still have to read the last lines.
                let reader = self.said.reader.take().expect("a process is waited for once");
                reader.join().expect("the reader does not fail");
                return (status, self.said());
            }
            assert!(Instant::now() < deadline, "the hub did not end; it said:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(&mut self) {
        // Both fail only if the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a hub and kills it during its start.
pub(crate) fn start_and_kill(folder: &Path, after: Duration) {
    let (mut child, _, _) = spawn(serve(folder));
    std::thread::sleep(after);
    child.kill().expect("the process can be killed");
    child.wait().expect("the process can be waited for");
}

/// Runs a hub that must refuse to start; returns its exit code and its standard error.
pub(crate) fn refused(command: Command) -> (Option<i32>, String) {
    let (child, said, lines) = spawn(command);
    let hub = Hub { child, address: String::new(), said };
    // The channel closes when the process exits.
    let end = Instant::now() + TIMEOUT;
    while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
        assert!(address_in(&line).is_none(), "the hub started: {line}");
    }
    let (status, said) = hub.wait();
    (status.code(), said)
}

fn spawn(mut command: Command) -> (Child, StderrLog, Receiver<String>) {
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.expect("the binary starts");
    let output = BufReader::new(child.stderr.take().expect("its standard error is a pipe"));
    let text = Arc::<Mutex<String>>::default();
    let (sender, lines) = channel();
    let log = text.clone();
    let reader = std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let mut all = log.lock().unwrap_or_else(PoisonError::into_inner);
            all.push_str(&line);
            all.push('\n');
            drop(all);
            // After the start nothing receives the lines, but the pipe must still be read.
            let _ = sender.send(line);
        }
    });
    (child, StderrLog { text, reader: Some(reader) }, lines)
}

/// The address in the line that the hub prints when it listens.
fn address_in(line: &str) -> Option<String> {
    let rest = line.split_once("listens on http://")?.1;
    Some(rest.split([' ', '/']).next().unwrap_or(rest).to_owned())
}
