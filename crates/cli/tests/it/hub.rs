//! A hub as a child process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::Value;

use crate::program::{command, finish, text};

/// A hub on a free port with its own home folder, in which the other commands find it.
pub(crate) struct Hub {
    pub(crate) home: tempfile::TempDir,
    pub(crate) url: String,
    /// Its standard error up to the line that says it is ready.
    pub(crate) said: String,
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Hub {
    pub(crate) fn start() -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), &["--port", "0"])
    }

    pub(crate) fn start_in(home: tempfile::TempDir, arguments: &[&str]) -> Self {
        let mut serve = command(home.path());
        serve.arg("serve").args(arguments);
        Self::started(home, serve)
    }

    /// A hub with this configuration file.
    pub(crate) fn configured(file: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(".config/bellwire");
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(folder.join("bellwire.toml"), file).expect("it can be written");
        Self::start_in(home, &["--port", "0"])
    }

    /// A hub that is started by a shell which has run this first, such as `ulimit -n 300`.
    pub(crate) fn start_under(shell: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let program = command(home.path());
        let mut serve = Command::new("bash");
        serve.args(["-c", &format!("{shell}; exec \"$0\" serve --port 0")]).arg(program.get_program());
        serve.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self::started(home, serve)
    }

    fn started(home: tempfile::TempDir, mut serve: Command) -> Self {
        let mut child =
            serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the hub starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it has a standard error"));
        let mut said = String::new();
        while !said.contains(" doctor") {
            let before = said.len();
            stderr.read_line(&mut said).expect("it speaks");
            assert!(said.len() > before, "the hub ended before it was ready:\n{said}");
        }
        let url = said.split_whitespace().find(|word| word.starts_with("http://")).expect("its address").to_owned();
        Self { home, url, said, child, stderr }
    }

    /// Reads its standard error up to the line with this text.
    pub(crate) fn read_until(&mut self, text: &str) -> String {
        let mut said = String::new();
        while !said.contains(text) {
            assert_ne!(self.stderr.read_line(&mut said).expect("it speaks"), 0, "it ended: {said}");
        }
        said
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as SIGKILL does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Starts it again after [`Hub::kill`], with the same folder and address.
    pub(crate) fn restart(mut self) -> Self {
        let home = std::mem::replace(&mut self.home, tempfile::tempdir().expect("a folder"));
        let port = self.url.rsplit(':').next().expect("an address has a port").to_owned();
        Self::start_in(home, &["--port", &port])
    }

    /// Another command with the same home folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.home.path());
        command.args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        finish(&mut self.command(arguments), input)
    }

    /// The JSON that a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// An agent token bound to the user ada.
    pub(crate) fn agent_token(&self) -> String {
        self.agent_token_of("ada")
    }

    /// A token for an agent of this person's.
    pub(crate) fn agent_token_of(&self, user: &str) -> String {
        let output = self.run(&["token", "create", "--scope", "agent", "--user", user, "--origin", "butler"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// A token of this person's own.
    pub(crate) fn user_token_of(&self, user: &str) -> String {
        let output = self.run(&["token", "create", "--scope", "user", "--user", user]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// Calls an agent's tool over HTTP, for which there is no command.
    pub(crate) fn tool(&self, token: &str, name: &str, arguments: &Value) -> Value {
        let host = self.url.trim_start_matches("http://");
        let body = serde_json::json!({ "arguments": arguments }).to_string();
        let request = format!(
            "POST /v1/tools/{name} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: \
             application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = std::net::TcpStream::connect(host).expect("the hub listens");
        stream.write_all(request.as_bytes()).expect("it can be sent");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("it answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let result: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(result["success"], true, "{result}");
        result
    }

    /// Stops the hub with SIGTERM; returns its home folder and the rest of its standard error.
    pub(crate) fn stop(mut self) -> (tempfile::TempDir, String) {
        terminate(&self.child, "-TERM");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stderr, &mut rest).expect("it speaks");
        assert!(self.child.wait().expect("it ends").success(), "{rest}");
        let home = std::mem::replace(&mut self.home, tempfile::tempdir().expect("a folder"));
        (home, rest)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Fails if the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a child process.
pub(crate) fn terminate(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success(), "the process is there");
}
