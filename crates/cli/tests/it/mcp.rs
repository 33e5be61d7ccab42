//! `bellwire mcp`: the tools on standard input and output, with and without the initialize handshake.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::hub::Hub;
use crate::program::{command, finish, shown, text};

mod harness;
mod transports;

/// An agent that runs `bellwire mcp` as a child process.
pub(crate) struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().expect("the server starts");
        let stdout = BufReader::new(child.stdout.take().expect("it has a standard output"));
        Self { stdin: child.stdin.take(), child, stdout }
    }

    pub(crate) fn initialized(command: &mut Command) -> Self {
        Self::introduced(command).0
    }

    /// An agent that has sent `initialize`, and the result of that.
    fn introduced(command: &mut Command) -> (Self, Value) {
        let mut agent = Self::start(command);
        let result = agent.ask("initialize", hello())["result"].clone();
        assert_eq!(result["serverInfo"]["name"], "bellwire");
        agent.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (agent, result)
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("nobody closed it");
        writeln!(stdin, "{message}").expect("the server listens");
    }

    /// The next line, which must be a JSON-RPC message: nothing else may be on standard output.
    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server speaks");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.write(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        loop {
            let message = self.read();
            if message["id"] == 7 {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// Closes standard input, on which the server must exit with 0.
    pub(crate) fn leave(mut self) {
        drop(self.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).expect("it ends");
        assert_eq!(rest, "", "it has no last words on standard output");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Fails if the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parameters of `initialize`.
fn hello() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

/// An agent's token that is bound to the conversation `chat` of ada.
fn bound_token(hub: &Hub) -> String {
    let arguments = ["token", "create", "--scope", "agent", "--user", "ada", "--origin", "butler"];
    let output = hub.run(&[&arguments[..], &["--conversation", "chat"]].concat());
    assert!(output.status.success(), "{}", shown(&output));
    text(&output.stdout).trim().to_owned()
}

/// Publishes an event to the conversation.
fn emit(hub: &Hub, kind: &str, payload: &Value) {
    let arguments = ["emit", kind, &payload.to_string(), "--conversation", "chat", "--severity", "error"];
    let output = hub.run(&arguments);
    assert!(output.status.success(), "{}", shown(&output));
}

#[test]
fn the_bridge_offers_the_tools_of_a_running_hub() {
    let hub = Hub::start();
    let token = hub.agent_token();
    let arguments = ["mcp", "--conversation", "chat", "--agent", "main"];
    let mut agent = Agent::initialized(hub.command(&arguments).env("BELLWIRE_TOKEN", &token));
    let left = agent.call("notify_self", json!({"message": "look at the logs"}));
    assert_eq!(left["isError"], false, "{left}");
    emit(&hub, "tool.call.failure", &json!({"tool_name": "grep", "error_type": "timeout"}));
    let read = agent.call("check_notifications", json!({}));
    let block = read["structuredContent"]["notifications"].as_str().expect("a block");
    assert!(block.contains("look at the logs") && block.contains("grep"), "{block}");
    assert_eq!(
        serde_json::from_str::<Value>(read["content"][0]["text"].as_str().expect("text")).ok().as_ref(),
        Some(&read["structuredContent"])
    );
    assert!(read["_meta"]["bellwire/call_id"].is_string(), "{read}");
    let refused = agent.call("notify_self", json!({"message": ""}));
    assert_eq!(
        (&refused["isError"], &refused["structuredContent"]["action"]),
        (&json!(true), &json!("validation_error"))
    );
    assert!(agent.ask("tools/call", json!({"name": "shout"}))["error"].is_object());
    agent.leave();
}

#[test]
fn a_subscribed_client_gets_resource_updates() {
    let hub = Hub::start();
    let mut agent = Agent::initialized(&mut hub.command(&["mcp", "--user", "ada", "--conversation", "chat"]));
    agent.call("check_notifications", json!({}));
    let listed = agent.ask("resources/list", json!({}));
    let uri = listed["result"]["resources"][0]["uri"].clone();
    assert!(agent.ask("resources/subscribe", json!({"uri": uri}))["error"].is_null());
    emit(&hub, "task.background.complete", &json!({"task_id": "b17", "name": "the build"}));
    let told = agent.read();
    assert_eq!((&told["method"], &told["params"]["uri"]), (&json!("notifications/resources/updated"), &uri), "{told}");
    let pending = agent.ask("resources/read", json!({"uri": uri}));
    assert!(pending["result"]["contents"][0]["text"].as_str().expect("text").contains("\"pending\":1"), "{pending}");
    agent.leave();
}

/// Whether the hub has refused a stream because its token has too many.
fn streams_refused(hub: &Hub) -> bool {
    let mut stream = std::net::TcpStream::connect(hub.url.trim_start_matches("http://")).expect("the hub listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the hub reads");
    let mut metrics = String::new();
    std::io::Read::read_to_string(&mut stream, &mut metrics).expect("the hub answers");
    metrics.contains(r#"route="/v1/conversations/{id}/stream",status="429"}"#)
}

#[test]
fn a_client_follows_again_when_its_token_may_open_a_stream_again() {
    let hub = Hub::start_under("export BELLWIRE_LIMITS_STREAMS_PER_TOKEN=1");
    let token = hub.agent_token();
    emit_to(&hub, &token);
    let mut tail = hub.command(&["tail", "chat"]);
    let mut tail = tail.env("BELLWIRE_TOKEN", &token).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let tail = tail.as_mut().expect("tail starts");
    let mut said = BufReader::new(tail.stderr.take().expect("it has a standard error"));
    said.read_line(&mut String::new()).expect("it follows");
    let arguments = ["mcp", "--conversation", "chat", "--agent", "main"];
    let mut agent = Agent::initialized(hub.command(&arguments).env("BELLWIRE_TOKEN", &token));
    let uri = agent.ask("resources/list", json!({}))["result"]["resources"][0]["uri"].clone();
    assert!(agent.ask("resources/subscribe", json!({"uri": uri}))["error"].is_null());
    let started = std::time::Instant::now();
    while !streams_refused(&hub) {
        assert!(started.elapsed() < std::time::Duration::from_secs(30), "the bridge asks for a stream");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    tail.kill().expect("it runs");
    tail.wait().expect("it ends");
    let told = agent.read();
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    agent.leave();
}

/// Publishes an event to the conversation of a token's person.
fn emit_to(hub: &Hub, token: &str) {
    let payload = json!({"tool_name": "grep", "error_type": "timeout"}).to_string();
    let arguments = ["emit", "tool.call.failure", &payload, "--conversation", "chat", "--severity", "error"];
    let output = finish(hub.command(&arguments).env("BELLWIRE_TOKEN", token), "");
    assert!(output.status.success(), "{}", shown(&output));
}

#[test]
fn a_client_of_the_newest_revision_needs_no_initialize() {
    let hub = Hub::start();
    let mut agent = Agent::start(&mut hub.command(&["mcp", "--user", "ada", "--conversation", "chat"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = agent.ask("server/discover", json!({"_meta": meta}));
    assert!(
        found["result"]["supportedVersions"].as_array().expect("versions").contains(&json!("2026-07-28")),
        "{found}"
    );
    let read = agent.ask("tools/call", json!({"name": "check_notifications", "arguments": {}, "_meta": meta}));
    assert_eq!(read["result"]["structuredContent"]["message"], "Nothing new.", "{read}");
    agent.leave();
}

#[test]
fn an_embedded_hub_serves_the_tools() {
    let home = tempfile::tempdir().expect("a folder");
    let mut agent = Agent::initialized(command(home.path()).args(["mcp", "--embedded"]));
    assert_eq!(agent.call("notify_self", json!({"message": "kept"}))["isError"], false);
    // The other commands find the embedded hub; a second one on the same data is refused.
    let second = finish(command(home.path()).args(["mcp", "--embedded"]), "");
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("leave --embedded away"), "{}", shown(&second));
    let doctor = finish(command(home.path()).args(["inject", "default", "after_tool", "call-1"]), "");
    assert!(doctor.status.success(), "{}", shown(&doctor));
    agent.leave();
    let mut agent = Agent::initialized(command(home.path()).args(["mcp", "--embedded"]));
    let read = agent.call("check_notifications", json!({}));
    assert!(read["structuredContent"]["notifications"].as_str().expect("a block").contains("kept"), "{read}");
    agent.leave();
}

#[test]
fn an_unreachable_hub_is_an_error_in_the_tool_result() {
    let home = tempfile::tempdir().expect("a folder");
    let arguments = ["mcp", "--url", "http://127.0.0.1:9", "--token", "bw_x", "--conversation", "chat"];
    let mut agent = Agent::initialized(command(home.path()).args(arguments));
    let refused = agent.call("check_notifications", json!({}));
    assert_eq!(refused["isError"], true);
    assert!(refused["structuredContent"]["message"].as_str().expect("words").contains("no hub answers"), "{refused}");
    let listed = agent.ask("resources/list", json!({}));
    assert!(listed["error"]["message"].as_str().expect("words").contains("no hub answers"), "{listed}");
    agent.leave();
}
