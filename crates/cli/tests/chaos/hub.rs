//! The real binary as a process: started, killed, asked to stop.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A start or an end that takes longer than this has failed. The machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running hub. It is killed when it goes out of scope.
pub(crate) struct Hub {
    child: Child,
    pub(crate) address: String,
    said: Said,
}

/// What the process writes to standard error.
struct Said {
    /// All of it so far.
    text: Arc<Mutex<String>>,
    /// Ends when there is no more to come.
    reader: Option<JoinHandle<()>>,
}

/// The command that serves this folder on a free port.
pub(crate) fn serve(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwire"));
    command.args(arguments(folder));
    command
}

/// What `serve` is called with; for tests that start it through another program.
pub(crate) fn arguments(folder: &Path) -> Vec<String> {
    ["serve", "--listen", "127.0.0.1:0", "--data-dir", folder.to_str().expect("the path is text")]
        .map(str::to_owned)
        .to_vec()
}

impl Hub {
    /// Starts a hub on this folder and waits until it says where it listens.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(serve(folder))
    }

    pub(crate) fn start_with(command: Command) -> Self {
        let (child, said, lines) = spawn(command);
        let deadline = Instant::now() + PATIENCE;
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

    /// SIGKILL: it cannot say good-bye.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// SIGTERM: it may finish what it accepted.
    pub(crate) fn terminate(&self) {
        let sent = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.pid())]).status();
        assert!(sent.expect("there is a shell").success(), "the signal could not be sent");
    }

    /// Waits for its end; gives how it ended and all it said.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                // Its last words may still be on their way.
                let reader = self.said.reader.take().expect("a process is waited for once");
                reader.join().expect("the reader does not fail");
                return (status, self.said());
            }
            assert!(Instant::now() < deadline, "the hub did not end; it said:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(&mut self) {
        // Both fail only where it has ended by itself, and the tests look at what it left behind either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a hub and kills it before it can have said much, somewhere in its start.
pub(crate) fn start_and_kill(folder: &Path, after: Duration) {
    let (mut child, _, _) = spawn(serve(folder));
    std::thread::sleep(after);
    child.kill().expect("the process can be killed");
    child.wait().expect("the process can be waited for");
}

/// Runs a hub that is expected to refuse to start; gives its exit code and what it said.
pub(crate) fn refused(command: Command) -> (Option<i32>, String) {
    let (child, said, lines) = spawn(command);
    let hub = Hub { child, address: String::new(), said };
    // The lines end when the process does.
    let end = Instant::now() + PATIENCE;
    while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
        assert!(address_in(&line).is_none(), "the hub started: {line}");
    }
    let (status, said) = hub.wait();
    (status.code(), said)
}

fn spawn(mut command: Command) -> (Child, Said, Receiver<String>) {
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.expect("the binary starts");
    let output = BufReader::new(child.stderr.take().expect("its standard error is a pipe"));
    let text = Arc::<Mutex<String>>::default();
    let (sender, lines) = channel();
    let heard = text.clone();
    let reader = std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let mut all = heard.lock().unwrap_or_else(PoisonError::into_inner);
            all.push_str(&line);
            all.push('\n');
            drop(all);
            // Nobody listens after the start, and the pipe must be read all the same.
            let _ = sender.send(line);
        }
    });
    (child, Said { text, reader: Some(reader) }, lines)
}

/// The address in the line that says where it listens.
fn address_in(line: &str) -> Option<String> {
    let rest = line.split_once("listens on http://")?.1;
    Some(rest.split([' ', '/']).next().unwrap_or(rest).to_owned())
}
