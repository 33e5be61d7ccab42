//! `bellwire start`, `stop` and `status`.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::hub::Hub;
use crate::program::{command, finish, shown, text};

/// Stops the hub of this home folder when the test ends.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn run(&self, words: &[&str]) -> Output {
        finish(command(self.0.path()).env("BELLWIRE_LISTEN", "127.0.0.1:0").args(words), "")
    }

    fn status(&self) -> Value {
        serde_json::from_slice(&self.run(&["status", "--json"]).stdout).expect("JSON")
    }

    fn data(&self) -> PathBuf {
        self.0.path().join(".local/share/bellwire")
    }

    /// A file of the data folder, before the first start.
    fn write(&self, name: &str, content: &str) -> PathBuf {
        std::fs::create_dir_all(self.data()).expect("it can be made");
        let path = self.data().join(name);
        std::fs::write(&path, content).expect("it can be written");
        path
    }
}

/// A process that goes on when this is dropped.
struct Stopped<'a>(&'a Value);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        signal("-CONT", self.0);
    }
}

fn signal(name: &str, pid: &Value) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().expect("kill runs");
    assert!(sent.success(), "process {pid} is there");
}

impl Drop for Home {
    fn drop(&mut self) {
        self.run(&["stop"]);
    }
}

#[test]
fn a_hub_runs_in_the_background_until_it_is_stopped() {
    let home = Home::new();
    assert_eq!(home.status()["running"], false);
    assert_eq!(home.run(&["status"]).status.code(), Some(1));
    let started = home.run(&["start"]);
    assert!(started.status.success(), "{}", shown(&started));
    let first = home.status();
    assert_eq!(first["running"], true, "{first}");
    let again = home.run(&["start"]);
    assert!(text(&again.stderr).contains("runs already"), "{}", shown(&again));
    assert_eq!(home.status()["pid"], first["pid"], "there is one hub");
    assert!(home.run(&["token", "list"]).status.success(), "the other commands find it");
    let log = home.0.path().join(".local/share/bellwire/hub.log");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&log).expect("a log").permissions());
    assert_eq!(mode & 0o777, 0o600);

    let stopped = home.run(&["stop"]);
    assert!(stopped.status.success(), "{}", shown(&stopped));
    assert_eq!(home.status()["running"], false);
    assert!(std::fs::read_to_string(&log).expect("a log").contains("has stopped"), "it ended by itself");
    assert!(text(&home.run(&["stop"]).stderr).contains("no hub runs"));
}

#[test]
fn a_hub_that_cannot_start_says_why() {
    let home = Home::new();
    let folder = home.0.path().join(".config/bellwire");
    std::fs::create_dir_all(&folder).expect("it can be made");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let file = format!("[server]\nlisten = \"{}\"\n", taken.local_addr().expect("its address"));
    std::fs::write(folder.join("bellwire.toml"), file).expect("it can be written");
    let refused = finish(command(home.0.path()).args(["start"]), "");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("the hub has ended") && said.contains("in use"), "{said}");
    drop(taken);
}

#[test]
fn a_killed_hub_is_not_taken_for_a_running_one() {
    let home = Home::new();
    assert!(home.run(&["start"]).status.success());
    let pid = home.status()["pid"].to_string();
    signal("-KILL", &home.status()["pid"]);
    assert_eq!(home.status()["running"], false, "its note is still there");
    let again = home.run(&["start"]);
    assert!(again.status.success(), "{}", shown(&again));
    assert_ne!(home.status()["pid"].to_string(), pid);
}

#[test]
fn starts_at_the_same_time_start_one_hub_and_all_succeed() {
    let home = Home::new();
    let start = || {
        let mut command = command(home.0.path());
        command.env("BELLWIRE_LISTEN", "127.0.0.1:0").arg("start").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let running: Vec<_> = (0..4).map(|_| start()).collect();
    let outputs: Vec<Output> = running.into_iter().map(|child| child.wait_with_output().expect("it ends")).collect();
    let said: Vec<String> = outputs.iter().map(shown).collect();
    assert!(outputs.iter().all(|output| output.status.success()), "{said:?}");
    assert_eq!(said.iter().filter(|said| said.contains("runs already")).count(), 3, "{said:?}");
    assert_eq!(home.status()["ready"], true);
}

#[test]
fn a_process_that_has_the_id_of_an_ended_hub_is_not_ended() {
    let home = Home::new();
    // Another hub has taken the address, and another program the process id.
    let other = Hub::start();
    let mut program = Command::new("sleep").arg("600").spawn().expect("it starts");
    let note = json!({ "url": other.url, "pid": program.id(), "version": "0.1.0", "started": 1 });
    home.write("hub.json", &note.to_string());
    let refused = home.run(&["stop"]);
    assert_eq!(refused.status.code(), Some(2), "{}", shown(&refused));
    assert!(text(&refused.stderr).contains("not the process that this data folder knows"), "{}", shown(&refused));
    // Nor a process of a note that does not say when it started.
    home.write("hub.json", &json!({ "url": other.url, "pid": program.id() }).to_string());
    assert_eq!(home.run(&["stop"]).status.code(), Some(2));
    home.write("wake.json", &json!({ "pid": program.id(), "started": 1 }).to_string());
    home.run(&["stop"]);
    assert!(program.try_wait().expect("it can be asked").is_none(), "it still runs");
    home.write("hub.json", &note.to_string());
    let started = home.run(&["start"]);
    assert!(started.status.success(), "the other hub is not taken for ours: {}", shown(&started));
    assert_ne!(home.status()["url"], json!(other.url));
    program.kill().expect("it runs");
    program.wait().expect("it ends");
}

#[test]
fn a_hub_that_hangs_is_told_from_one_that_runs_and_stops_nobody() {
    let home = Home::new();
    assert!(home.run(&["start"]).status.success());
    let pid = home.status()["pid"].clone();
    signal("-STOP", &pid);
    // Also if the test fails: a stopped process does not end when it is asked to.
    let stopped = Stopped(&pid);
    let begun = Instant::now();
    let status = home.run(&["status"]);
    assert!(begun.elapsed().as_secs() < 30, "it does not wait for it");
    assert_eq!(status.status.code(), Some(1));
    assert!(text(&status.stdout).contains(&format!("(process {pid}) does not answer")), "{}", shown(&status));
    let hung = home.status();
    assert_eq!((&hung["running"], &hung["ready"]), (&json!(true), &json!(false)));
    let refused = home.run(&["start"]);
    assert!(text(&refused.stderr).contains("does not answer; bellwire stop ends it"), "{}", shown(&refused));
    drop(stopped);
    assert_eq!(home.status()["ready"], true);
}

#[test]
fn what_a_killed_start_leaves_does_not_hold_the_next_one_up() {
    let home = Home::new();
    home.write("start.lock", "");
    home.write("hub.json", "{\"url\": \"http://127.0.0.1:1\", \"pid\": 4, \"started\"");
    let started = home.run(&["start"]);
    assert!(started.status.success(), "{}", shown(&started));
}

#[test]
fn a_full_log_is_moved_aside_and_a_log_that_cannot_be_written_stops_no_hub() {
    let home = Home::new();
    let log = home.write("hub.log", &"x".repeat(6 * 1024 * 1024));
    assert!(home.run(&["start"]).status.success());
    let size = |path: &PathBuf| std::fs::metadata(path).expect("it is there").len();
    assert!(size(&log) < 100_000 && size(&home.data().join("hub.log.1")) > 6_000_000);
    assert!(home.run(&["stop"]).status.success());
    std::fs::remove_file(&log).expect("it can be removed");
    // Every write to it fails, as on a full disk.
    std::os::unix::fs::symlink("/dev/full", &log).expect("a link");
    let started = home.run(&["start"]);
    assert!(started.status.success(), "{}", shown(&started));
    assert_eq!(home.status()["ready"], true);
}

#[test]
fn a_data_folder_that_cannot_be_written_is_an_error_that_names_it() {
    let home = Home::new();
    let file = home.0.path().join("file");
    std::fs::write(&file, "").expect("it can be written");
    let refused = home.run(&["start", "--data-dir", file.to_str().expect("text")]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("cannot make the data folder"), "{}", shown(&refused));
    home.write("hub.json", "{}");
    std::fs::create_dir(home.data().join("hub.log")).expect("it can be made");
    let refused = home.run(&["start"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("cannot write") && text(&refused.stderr).contains("hub.log"),
        "{}",
        shown(&refused)
    );
}

#[test]
fn the_waker_runs_beside_the_hub_if_a_harness_may_be_woken() {
    let home = Home::new();
    assert!(home.run(&["start"]).status.success());
    assert_eq!(home.status()["wake"], false);
    let words = ["install", "gemini", "--wake-command", "true", "--binary", env!("CARGO_BIN_EXE_bellwire")];
    let installed = home.run(&words);
    assert!(text(&installed.stderr).contains("let bellwire wake run"), "{}", shown(&installed));
    assert!(home.run(&["start"]).status.success());
    assert_eq!(home.status()["wake"], true);
    let note = |home: &Home| std::fs::read_to_string(home.data().join("wake.json")).expect("a note");
    let first = note(&home);
    assert!(home.run(&["start"]).status.success());
    assert_eq!(note(&home), first, "there is one");
    assert!(home.run(&["stop"]).status.success());
    assert_eq!(home.status()["wake"], false);
}
