use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::hub::{Hub, terminate};
use crate::program::text;

/// A running `tail --json`.
struct Follower {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follower {
    fn start(hub: &Hub) -> Self {
        let mut command = hub.command(&["tail", "chat", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("it has a standard output"));
        Self { child, lines }
    }

    /// Reads lines up to the next event of this name.
    fn until(&mut self, name: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("it speaks") > 0, "it ended before it said {name}");
            let event: Value = serde_json::from_str(&line).expect("every line is JSON");
            if event["event"] == name {
                return event;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn emit(hub: &Hub, token: &str, task: &str) {
    let payload = format!(r#"{{"task_id": "{task}", "name": "{task}"}}"#);
    let output = hub.run(&["emit", "task.background.complete", &payload, "-c", "chat", "--token", token]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_conversation_is_followed_live_across_a_restart_until_ctrl_c() {
    let hub = Hub::start();
    let token = hub.agent_token();
    emit(&hub, &token, "one");
    let mut follower = Follower::start(&hub);
    assert_eq!(follower.until("pending")["data"]["count"], 1, "the state on connect");
    emit(&hub, &token, "two");
    assert_eq!(follower.until("wake")["data"]["agent"], "main");
    hub.run(&["inject", "chat", "turn_start", "turn_1", "--token", &token]);
    let told = follower.until("message");
    assert!(told["data"]["content"].as_str().is_some_and(|content| content.contains("task_done")), "{told}");

    let port = hub.url.rsplit(':').next().expect("a port").to_owned();
    let (home, _) = hub.stop();
    let hub = Hub::start_in(home, &["--port", &port]);
    emit(&hub, &token, "three");
    let pending = follower.until("pending");
    assert!(pending["data"]["count"].as_u64().is_some_and(|count| count <= 1), "{pending}");

    terminate(&follower.child, "-INT");
    assert_eq!(follower.child.wait().expect("it ends").code(), Some(0));
}
