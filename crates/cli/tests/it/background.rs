//! `bellwire start`, `stop` and `status`.

use std::process::Output;

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

    fn status(&self) -> serde_json::Value {
        serde_json::from_slice(&self.run(&["status", "--json"]).stdout).expect("JSON")
    }
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
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().expect("kill runs").success());
    assert_eq!(home.status()["running"], false, "its note is still there");
    let again = home.run(&["start"]);
    assert!(again.status.success(), "{}", shown(&again));
    assert_ne!(home.status()["pid"].to_string(), pid);
}
