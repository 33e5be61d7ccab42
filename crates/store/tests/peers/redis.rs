//! A real Redis of a test's own, by the project's script. It ends with its owner, also where that fails.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A Redis on loopback that keeps nothing.
pub(crate) struct RedisServer {
    script: Child,
    port: u16,
    process: String,
}

impl RedisServer {
    /// When this returns, it answers.
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    fn start_with(port: Option<u16>) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("scripts/redis"));
        let script = script.into_iter().find(|path| path.exists()).expect("scripts/redis is part of the project");
        let mut script = Command::new(script)
            .args(port.map(|port| port.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the script runs");
        let mut line = String::new();
        let output = script.stdout.take().expect("its output is ours");
        BufReader::new(output).read_line(&mut line).expect("the script says its port");
        let (port, process) = line.trim().split_once(' ').expect("Redis starts; the script has said why not");
        let port = port.parse().expect("a port");
        Self { script, port, process: process.to_owned() }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// It is gone at once, without a word.
    #[allow(dead_code, reason = "not everybody who has a Redis ends it")]
    pub(crate) fn kill(&self) {
        self.signal("-KILL");
    }

    /// It takes connections and answers nothing.
    #[allow(dead_code, reason = "not everybody who has a Redis stops it")]
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// It goes on where it was.
    #[allow(dead_code, reason = "not everybody who has a Redis stops it")]
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Another one in its place, which remembers nothing.
    #[allow(dead_code, reason = "not everybody who has a Redis ends it")]
    pub(crate) fn replace(self) -> Self {
        let port = self.port;
        drop(self);
        Self::start_with(Some(port))
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process]).status().expect("kill is there");
        assert!(sent.success(), "Redis was there to get {signal}");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // The script ends Redis when its input ends.
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
