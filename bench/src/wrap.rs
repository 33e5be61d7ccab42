//! What `bellwire wrap` adds to a call of an MCP server on standard input and output.
//!
//! The reference is the same server without it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::hook::beside;
use crate::load::{ask_once, percentile, request};
use crate::measure::RunMode;
use crate::serving::{self, ChildServer};

pub(crate) fn run(mode: RunMode) {
    println!("\nwrap: time from a client's request to the response, one at a time, over pipes");
    let (Some(bellwire), Some(server)) = (beside("bellwire"), beside("mcp_server")) else {
        println!("  not measured: run cargo build --release -p bellwire -p bellwire-bench, or make bench");
        return;
    };
    println!("  {:<44} {:>14} {:>14}", "", "p50", "p99");
    let (hub, home) = (ChildServer::hub(), serving::folder());
    let url = format!("http://{}", hub.address);
    let mut direct = Server::start(&mut Command::new(&server));
    let mut asking = Server::start(&mut wrapped(&bellwire, &server, home.path(), &url, &hub.token));
    let mut away = Server::start(&mut wrapped(&bellwire, &server, home.path(), "http://127.0.0.1:9", "none"));
    let (mut reference, mut passing, mut without, mut silent, mut telling) =
        <(Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
    let telling_every = 4;
    publish(&hub, 0);
    for number in 1..=rounds(mode) {
        reference.push(direct.call(number, "tools/call", false));
        passing.push(asking.call(number, "ping", false));
        without.push(away.call(number, "tools/call", false));
        let tells = number % telling_every == 1;
        let times = if tells { &mut telling } else { &mut silent };
        times.push(asking.call(number, "tools/call", tells));
        if number % telling_every == 0 {
            publish(&hub, number);
        }
    }
    let least = print("the server itself", reference, None);
    print("wrapped, a message that is no tool call", passing, Some(least));
    print("wrapped, a tool call while the hub is away", without, Some(least));
    print("wrapped, a tool call, nothing waits", silent, Some(least));
    print("wrapped, a tool call, with a block", telling, Some(least));
}

const fn rounds(mode: RunMode) -> usize {
    match mode {
        RunMode::Quick => 100,
        RunMode::Full => 4_000,
    }
}

fn wrapped(bellwire: &Path, server: &Path, home: &Path, url: &str, token: &str) -> Command {
    let mut command = Command::new(bellwire);
    command.env_clear().env("HOME", home).env("XDG_STATE_HOME", home);
    command.args(["wrap", "--conversation", "bench", "--user", "me", "--hub-timeout", "5000", "--hub", url]);
    command.args(["--token", token, "--"]).arg(server).stderr(Stdio::null());
    command
}

fn publish(hub: &ChildServer, number: usize) {
    let event = json!({
        "type": "task.background.complete", "source": "ci", "severity": "info", "user_id": "me",
        "conversation_id": "bench", "payload": {"task_id": format!("build-{number}"), "result_summary": "green"},
    });
    ask_once(hub.address, &request("POST", "/v1/events", &hub.token, "application/json", event.to_string().as_bytes()));
}

/// A server as a child process.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program is there");
        let input = child.stdin.take().expect("its input is piped");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let mut server = Self { child, input, output };
        // Starting is not measured.
        server.call(0, "ping", false);
        server
    }

    /// The time of one call, which must carry a block, or must not.
    fn call(&mut self, number: usize, method: &str, tells: bool) -> Duration {
        let params = json!({"name": "read", "arguments": {"path": format!("src/{number}.rs")}});
        let mut message = json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).to_string();
        message.push('\n');
        let (start, mut line) = (Instant::now(), String::new());
        self.input.write_all(message.as_bytes()).and_then(|()| self.input.flush()).expect("it reads");
        self.output.read_line(&mut line).expect("it answers");
        let elapsed = start.elapsed();
        assert_eq!(line.contains("<notifications "), tells, "{number}: {line}");
        elapsed
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints a row; returns the p50.
fn print(what: &str, mut times: Vec<Duration>, least: Option<Duration>) -> Duration {
    times.sort_unstable();
    let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
    let millis = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    let against = least.map(|least| {
        let (added, ratio) = (p50.saturating_sub(least), p50.as_secs_f64() / least.as_secs_f64());
        format!("{:.1} times the server itself, {} more", ratio, millis(added))
    });
    let line = format!("  {what:<44} {:>14} {:>14}   {}", millis(p50), millis(p99), against.unwrap_or_default());
    println!("{}", line.trim_end());
    p50
}
