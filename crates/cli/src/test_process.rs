//! Runs a test's own program once more, for what concerns a whole process: its panics, its exit code, its standard error.

use std::process::{Command, Output, Stdio};

const CHILD: &str = "BELLWIRE_TEST_CHILD";

/// A test that runs itself in a process of its own.
pub(crate) struct TestProcess {
    /// The test's full name.
    name: &'static str,
}

impl TestProcess {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Whether this is the process that the test started.
    pub(crate) fn is_child(&self) -> bool {
        std::env::var_os(CHILD).is_some()
    }

    /// Runs the test as a child process to its end, with a standard input that stays open.
    pub(crate) fn run(&self, change: impl FnOnce(&mut Command)) -> Output {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", self.name, "--nocapture"]).env(CHILD, "1");
        change(&mut command);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdin = child.stdin.take();
        let output = child.wait_with_output().expect("it ends");
        drop(stdin);
        output
    }
}
