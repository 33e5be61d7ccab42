//! `bellwire wake` with a command of the user's. The harnesses' own ways are tested with the harnesses, in tests/agents.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hub::Hub;
use crate::program::{shown, text};

/// Its characters would be code for a shell that reads it.
const HOSTILE: &str = "s1'\"; touch evil; $(touch evil) `touch evil`";

/// A hub, and idle sessions of Gemini CLI, which has no way of its own.
struct Waking {
    hub: Hub,
    folder: PathBuf,
}

/// Ends a process when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Waking {
    fn start() -> Self {
        let hub = Hub::start();
        let token = hub.agent_token_of("me");
        let hosts = hub.home.path().join(".config/bellwire/hosts");
        std::fs::create_dir_all(&hosts).expect("the folder can be made");
        let file = format!("url = \"{}\"\ntoken = \"{token}\"\nuser = \"me\"\ntimeout_ms = 20000\n", hub.url);
        std::fs::write(hosts.join("gemini.toml"), file).expect("it can be written");
        let folder = hub.home.path().join("a folder");
        std::fs::create_dir(&folder).expect("the folder can be made");
        Self { hub, folder }
    }

    fn hook(&self, session: &str, event: &str) {
        let input = json!({
            "session_id": session, "cwd": self.folder, "hook_event_name": event, "prompt": "go",
            "timestamp": "2026-11-18T12:00:00.000Z",
        });
        let output = self.hub.run_with(&["hook", "gemini"], &input.to_string());
        assert!(output.status.success(), "{}", shown(&output));
    }

    /// A session that has done a turn.
    fn idle_session(&self, session: &str) {
        self.hook(session, "BeforeAgent");
        self.hook(session, "AfterAgent");
    }

    fn publish(&self, session: &str, task: &str) {
        let (conversation, payload) = (format!("gemini:{session}"), json!({ "task_id": task }).to_string());
        let words = ["emit", "task.background.complete", "--conversation", &conversation, "--user", "me", &payload];
        let output = self.hub.run(&words);
        assert!(output.status.success(), "{}", shown(&output));
    }

    /// `bellwire wake`, which writes its log to a file.
    fn wake(&self, words: &[&str]) -> Running {
        let log = std::fs::File::options().create(true).append(true).open(self.log()).expect("a file");
        let mut command = self.hub.command(&["wake"]);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Running(command.spawn().expect("it starts"))
    }

    fn log(&self) -> PathBuf {
        self.hub.home.path().join("wake.log")
    }

    fn log_text(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Waits until the log has `count` lines with this text.
    fn until_logged(&self, text: &str, count: usize) -> String {
        until(|| Some(self.log_text()).filter(|log| log.matches(text).count() >= count), &|| self.log_text())
    }
}

fn until<T>(check: impl Fn() -> Option<T>, otherwise: &dyn Fn() -> String) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "never; {}", otherwise());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prints the variables of a wake, one a line, and the folder.
const SHOW: &str = "printf '%s\\n' \"$BELLWIRE_WAKE_HOST\" \"$BELLWIRE_WAKE_SESSION\" \"$BELLWIRE_WAKE_CONVERSATION\" \
                    \"$BELLWIRE_WAKE_COUNT\" \"$BELLWIRE_WAKE_MESSAGE\" \"$BELLWIRE_WAKE_FOLDER\" \"$PWD\" >> wakes";

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_command_is_told_of_the_session_in_variables_and_runs_once_for_a_notification() {
    let waking = Waking::start();
    waking.idle_session(HOSTILE);
    waking.publish(HOSTILE, "build-1");
    let waker = waking.wake(&["gemini", "--command", &format!("{SHOW}; echo said; echo also >&2")]);
    let log = waking.until_logged("Bellwire: 1 notifications wait.\n  said\n", 1);
    assert!(log.contains("waking sessions of Gemini CLI") && log.contains("  also\n"), "{log}");
    let wakes = waking.folder.join("wakes");
    let folder = waking.folder.to_str().expect("text");
    let conversation = format!("gemini:{HOSTILE}");
    let expected = ["gemini", HOSTILE, &conversation, "1", "Bellwire: 1 notifications wait.", folder, folder];
    assert_eq!(lines(&wakes), expected);
    assert!(!waking.folder.join("evil").exists() && !waking.hub.home.path().join("evil").exists());

    // Another waker, and the same after a restart, know for what the session was woken.
    drop(waker);
    let _waker = waking.wake(&["gemini", "--command", SHOW]);
    waking.publish(HOSTILE, "build-2");
    waking.until_logged(" woke ", 2);
    assert_eq!(lines(&wakes).len(), 2 * expected.len(), "once for each: {}", waking.log_text());
    assert_eq!(lines(&wakes)[expected.len() + 3], "2", "all that wait are counted");
}

#[test]
fn a_wake_that_fails_is_tried_again_when_the_stream_is_new_and_its_failure_is_told() {
    let waking = Waking::start();
    waking.idle_session("s1");
    waking.publish("s1", "build-1");
    let failing = waking.wake(&["gemini", "--command", "echo no such door >&2; exit 7"]);
    let log = waking.until_logged("cannot be woken", 1);
    let expected = "gemini:s1 cannot be woken: sh has failed (exit status: 7); it printed: no such door";
    assert!(log.contains(expected), "{log}");
    drop(failing);
    let _waker = waking.wake(&["gemini", "--command", SHOW]);
    waking.until_logged(" woke gemini:s1", 1);
}

#[test]
fn only_what_the_user_allowed_is_woken_and_a_paused_or_ended_session_is_not() {
    let waking = Waking::start();
    for session in ["s1", "s2", "s3"] {
        waking.idle_session(session);
        waking.publish(session, "build-1");
    }
    assert!(waking.hub.run(&["pause", "gemini:s1"]).status.success());
    waking.hook("s2", "SessionEnd");
    let waker = waking.wake(&[]);
    waking.until_logged("no harness may be woken yet; bellwire install HOST --wake allows it", 1);
    drop(waker);
    let refused = waking.hub.run(&["wake", "gemini"]);
    assert_eq!(text(&refused.stderr), "error: Gemini CLI has no way to be woken; say --command\n");

    // As `bellwire install gemini --wake-command` writes it, while the waker runs.
    let _waker = waking.wake(&[]);
    let file = waking.hub.home.path().join(".config/bellwire/hosts/gemini.toml");
    let before = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, format!("{before}wake_command = {}\n", Value::from(SHOW))).expect("it can be written");
    let log = waking.until_logged(" woke gemini:s3", 1);
    assert_eq!(log.matches(" woke ").count(), 1, "{log}");
}
