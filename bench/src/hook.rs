//! Wall time of `bellwire hook`, one process at a time, as a harness runs it after every tool call.
//!
//! The reference is a program that only starts and connects to the hub's socket.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::load::{ask_once, percentile, request};
use crate::measure::RunMode;
use crate::serving::{self, ChildServer};

const SESSION: &str = "bench";
const CONVERSATION: &str = "claude-code:bench";

pub(crate) fn run(mode: RunMode) {
    println!("\nhook: wall time of a process from its start to its end, one at a time");
    let (Some(bellwire), Some(connect)) = (beside("bellwire"), beside("connect")) else {
        println!("  not measured: run cargo build --release -p bellwire -p bellwire-bench, or make bench");
        return;
    };
    println!("  {:<44} {:>20} {:>20}", "", "p50", "p99");
    let harness = Harness::start(bellwire);
    let (mut connects, mut versions, mut silent, mut telling) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..rounds(mode) {
        connects.push(timed(Command::new(&connect).arg(harness.hub.address.to_string())).0);
        versions.push(timed(Command::new(&harness.program).arg("--version")).0);
        silent.push(harness.hook(&format!("silent-{number}"), false));
        harness.publish(number);
        telling.push(harness.hook(&format!("telling-{number}"), true));
    }
    let least = print("start and connect to the socket", connects, None, "");
    print("bellwire --version", versions, Some(least), "");
    print("bellwire hook after a tool, nothing waits", silent, Some(least), "aim p50 10 ms");
    print("bellwire hook after a tool, with a block", telling, Some(least), "aim p50 10 ms");
}

const fn rounds(mode: RunMode) -> usize {
    match mode {
        RunMode::Quick => 50,
        RunMode::Full => 1_000,
    }
}

/// A program that was built together with this one.
pub(crate) fn beside(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().expect("a running program has a path").with_file_name(name);
    program.exists().then_some(program)
}

/// A hub, and a home folder in which `bellwire hook claude-code` finds it.
struct Harness {
    program: PathBuf,
    hub: ChildServer,
    home: TempDir,
}

impl Harness {
    fn start(program: PathBuf) -> Self {
        let harness = Self { program, hub: ChildServer::hub(), home: serving::folder() };
        let token =
            harness.ask("POST", "/v1/tokens", &json!({"scope": "agent", "user_id": "me", "origin": "claude-code"}));
        let file = format!(
            "url = \"http://{}\"\ntoken = {}\nuser = \"me\"\ntimeout_ms = 5000\n",
            harness.hub.address, token["token"]
        );
        let folder = harness.home.path().join("bellwire/hosts");
        std::fs::create_dir_all(&folder).expect("the folder is new");
        std::fs::write(folder.join("claude-code.toml"), file).expect("the folder is there");
        // From now on it knows the paragraph, so that each hook makes one request.
        harness.run(
            &json!({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup", "cwd": "/src"}),
        );
        harness
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        ask_once(self.hub.address, &request(method, path, &self.hub.token, "application/json", body.as_bytes()))
    }

    fn publish(&self, number: usize) {
        let event = json!({
            "type": "task.background.complete", "source": "ci", "severity": "info", "user_id": "me",
            "conversation_id": CONVERSATION, "payload": {"task_id": format!("build-{number}"), "result_summary": "green"},
        });
        self.ask("POST", "/v1/events", &event);
    }

    /// The time of a hook after a tool, which must answer with a block, or be silent.
    fn hook(&self, call: &str, tells: bool) -> Duration {
        let (elapsed, output) = self.run(&json!({
            "session_id": SESSION, "cwd": "/src", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": call,
            "tool_input": {"command": format!("make {call}")}, "tool_response": {"stdout": "ok"}, "duration_ms": 5,
        }));
        assert_eq!(output.contains("<notifications "), tells, "{call}: {output}");
        elapsed
    }

    fn run(&self, input: &Value) -> (Duration, String) {
        let path: &Path = &self.home.path().join("input.json");
        std::fs::write(path, input.to_string()).expect("the folder is there");
        let mut command = Command::new(&self.program);
        command.args(["hook", "claude-code"]).env_clear().env("HOME", self.home.path());
        command.env("XDG_CONFIG_HOME", self.home.path()).env("XDG_STATE_HOME", self.home.path());
        timed(command.stdin(File::open(path).expect("it was just written")))
    }
}

/// Runs a process; returns its wall time and what it printed.
fn timed(command: &mut Command) -> (Duration, String) {
    let start = Instant::now();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the program is there");
    let output = child.wait_with_output().expect("its output can be read");
    let elapsed = start.elapsed();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    (elapsed, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Prints a row; returns the p50.
fn print(what: &str, mut times: Vec<Duration>, least: Option<Duration>, aim: &str) -> Duration {
    times.sort_unstable();
    let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
    let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let against = least.map(|least| format!("{:.1} times start and connect", p50.as_secs_f64() / least.as_secs_f64()));
    let line =
        format!("  {what:<44} {:>20} {:>20}   {:<38} {aim}", millis(p50), millis(p99), against.unwrap_or_default());
    println!("{}", line.trim_end());
    p50
}
