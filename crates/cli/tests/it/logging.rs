//! The hub does not depend on the program that reads its log.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::hub::terminate;
use crate::program::command;

/// Longer than any answer takes, and short enough that a hub that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

struct Hub {
    home: tempfile::TempDir,
    child: Child,
    address: String,
}

impl Hub {
    /// Starts a hub that logs every request, and gives the end its log is read from.
    fn start() -> (Self, BufReader<ChildStderr>) {
        let home = tempfile::tempdir().expect("a folder");
        let mut serve = command(home.path());
        serve.args(["serve", "--port", "0"]).env("BELLWIRE_LOG_LEVEL", "debug");
        let serve = serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = serve.spawn().expect("the hub starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it has a standard error"));
        let mut said = String::new();
        while !said.contains(" doctor") {
            assert_ne!(stderr.read_line(&mut said).expect("it speaks"), 0, "it ended: {said}");
        }
        let address = said.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next());
        let address = address.expect("its address").to_owned();
        (Self { home, child, address }, stderr)
    }

    fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {}\r\nContent-Length: {length}\r\n\r\n{body}",
            self.token(),
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers in time");
        answer.lines().next().unwrap_or_default().to_owned()
    }

    fn token(&self) -> String {
        let path = self.home.path().join(".local/share/bellwire/admin.token");
        std::fs::read_to_string(path).expect("a token").trim().to_owned()
    }

    /// A call that changes something, and a probe.
    fn assert_works(&self) {
        assert_eq!(self.ask("PUT /v1/conversations/chat", r#"{"user_id":"ada"}"#), "HTTP/1.1 200 OK");
        let event = r#"{"type":"tool.call.failure","source":"ci","severity":"error","conversation_id":"chat",
            "payload":{"tool_name":"build"}}"#;
        assert_eq!(self.ask("POST /v1/events", event), "HTTP/1.1 202 Accepted");
        assert_eq!(self.ask("GET /healthz", ""), "HTTP/1.1 200 OK");
    }

    /// Stops it as an operator would.
    fn stop(mut self) -> ExitStatus {
        terminate(&self.child, "-TERM");
        let started = Instant::now();
        loop {
            match self.child.try_wait().expect("it is ours") {
                Some(status) => return status,
                None => assert!(started.elapsed() < PATIENCE, "it does not stop"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_closed_log_pipe_changes_nothing() {
    let (hub, stderr) = Hub::start();
    drop(stderr);
    for _ in 0..3 {
        hub.assert_works();
    }
    assert!(hub.stop().success());
}

#[test]
fn a_log_that_is_never_read_stops_nothing() {
    let (hub, _unread) = Hub::start();
    // Every request is a line of over 200 bytes, and a pipe takes 64 KiB.
    for _ in 0..150 {
        hub.assert_works();
    }
    assert!(hub.stop().success());
}
