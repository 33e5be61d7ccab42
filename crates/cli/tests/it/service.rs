//! `bellwire install --service`, with a stand-in for systemctl that notes its calls and runs what the unit says.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::program::{command, finish, shown, terminal, text};

/// Reads a unit as systemd does, as far as this test needs it.
const SYSTEMCTL: &str = r#"#!/bin/bash
echo "$*" >> "$HOME/calls"
name="${@: -1}"
unit="$HOME/.config/systemd/user/$name"
case "$2" in
  enable | start)
    [ -e "$HOME/$name.pid" ] && kill -0 "$(cat "$HOME/$name.pid")" 2>/dev/null && exit
    eval "set -- $(sed -n 's/^ExecStart=//p' "$unit" | sed 's/%%/%/g')"
    "$@" < /dev/null > "$HOME/$name.out" 2>&1 &
    echo $! > "$HOME/$name.pid"
    ;;
  disable | stop)
    pid=$(cat "$HOME/$name.pid")
    kill "$pid" 2>/dev/null
    while kill -0 "$pid" 2>/dev/null && ! grep -q ') Z ' "/proc/$pid/stat"; do sleep 0.05; done
    rm "$HOME/$name.pid"
    ;;
  is-failed) exit 1 ;;
esac
"#;

/// A home folder whose path needs quotes, with systemctl in PATH.
struct Home {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("a b 50%i ").tempdir().expect("a folder");
        let (bin, config) = (folder.path().join("my bin"), folder.path().join(".config/bellwire"));
        std::fs::create_dir_all(&bin).expect("it can be made");
        std::fs::create_dir_all(&config).expect("it can be made");
        std::fs::write(config.join("bellwire.toml"), "[server]\nlisten = \"127.0.0.1:0\"\n").expect("written");
        let program = bin.join("bellwire");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bellwire"), &program).expect("a link");
        let systemctl = bin.join("systemctl");
        std::fs::write(&systemctl, SYSTEMCTL).expect("it can be written");
        std::fs::set_permissions(systemctl, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
        Self { folder, program }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(self.folder.path());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.path().join("my bin").display()));
        command.env("BELLWIRE_INSTALL_BINARY", &self.program).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        finish(&mut self.command(words), "")
    }

    fn succeed(&self, words: &[&str]) -> Output {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", shown(&output));
        output
    }

    fn status(&self) -> Value {
        serde_json::from_slice(&self.run(&["status", "--json"]).stdout).expect("JSON")
    }

    /// The calls of systemctl since the last time, without those that only ask.
    fn calls(&self) -> Vec<String> {
        let path = self.folder.path().join("calls");
        let calls = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        let asks = |call: &&str| call.starts_with("--user show") || call.starts_with("--user is-failed");
        calls.lines().filter(|call| !asks(call)).map(|call| call.trim_start_matches("--user ").to_owned()).collect()
    }

    fn unit(&self, name: &str) -> PathBuf {
        self.folder.path().join(".config/systemd/user").join(name)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.run(&["stop"]);
    }
}

#[test]
fn the_hub_is_run_by_systemd_from_install_to_uninstall() {
    let home = Home::new();
    let (hub, wake) = (home.unit("bellwire.service"), home.unit("bellwire-wake.service"));
    let shown_first = home.succeed(&["install", "claude-code", "--service", "--wake", "--dry-run"]);
    assert!(text(&shown_first.stdout).contains("+ExecStart="), "{}", shown(&shown_first));
    assert!(!hub.exists() && home.calls().is_empty(), "nothing was changed");

    home.succeed(&["install", "claude-code", "--service", "--wake"]);
    assert_eq!(home.calls(), ["daemon-reload", "enable --now bellwire.service", "enable --now bellwire-wake.service"]);
    let status = home.status();
    assert_eq!((&status["service"], &status["ready"]), (&Value::from("systemd"), &Value::from(true)), "{status}");
    assert_eq!(status["wake"], true);
    assert!(text(&home.succeed(&["status"]).stdout).contains("by systemd"));
    let again = home.succeed(&["install", "claude-code", "--service", "--wake"]);
    assert!(!text(&again.stderr).contains("changed"), "{}", shown(&again));
    assert_eq!(home.status()["pid"], status["pid"], "it is not started again");
    home.calls();

    home.succeed(&["stop"]);
    assert_eq!(home.calls(), ["stop bellwire.service", "stop bellwire-wake.service"]);
    assert_eq!(home.status()["running"], false);
    home.succeed(&["start"]);
    assert_eq!(home.calls(), ["start bellwire.service", "start bellwire-wake.service"]);
    assert_eq!(home.status()["ready"], true);

    home.succeed(&["install", "gemini"]);
    home.succeed(&["uninstall", "claude-code"]);
    assert!(home.calls().is_empty() && hub.exists(), "another harness uses it");
    let last = home.succeed(&["uninstall", "gemini"]);
    assert!(!text(&last.stderr).contains("still valid"), "the token is revoked first: {}", shown(&last));
    assert_eq!(
        home.calls(),
        ["disable --now bellwire.service", "disable --now bellwire-wake.service", "daemon-reload"]
    );
    assert!(!hub.exists() && !wake.exists());
    assert_eq!(home.status()["running"], false);
}

#[test]
fn nothing_is_run_without_asking_and_a_unit_of_the_user_stays() {
    let home = Home::new();
    let refused = home.run(&["install", "gemini"]);
    assert_eq!(refused.status.code(), Some(2), "there is no hub, and no terminal to ask on: {}", shown(&refused));
    let install = |typed: &str| {
        let (_keyboard, terminal) = terminal(typed);
        home.command(&["install", "gemini"]).stdin(terminal).stdout(Stdio::piped()).output().expect("it runs")
    };
    let declined = install("\n");
    assert_eq!(declined.status.code(), Some(2), "{}", shown(&declined));
    assert!(text(&declined.stderr).contains("now and whenever you log in? [y/N] "), "{}", shown(&declined));
    assert!(home.calls().is_empty() && !home.unit("bellwire.service").exists());

    let own = "[Service]\nExecStart=/usr/bin/true\n";
    std::fs::create_dir_all(home.unit("")).expect("it can be made");
    std::fs::write(home.unit("bellwire.service"), own).expect("it can be written");
    let refused = home.run(&["install", "gemini", "--service"]);
    assert!(text(&refused.stderr).contains("it is not one of Bellwire's"), "{}", shown(&refused));
    assert_eq!(std::fs::read_to_string(home.unit("bellwire.service")).expect("it is there"), own);
    std::fs::remove_file(home.unit("bellwire.service")).expect("it can be removed");
    home.calls();

    let accepted = install("y\n");
    assert!(accepted.status.success(), "{}", shown(&accepted));
    assert_eq!(home.calls(), ["daemon-reload", "enable --now bellwire.service"]);
    let other = home.run(&["install", "gemini", "--service", "--url", "http://127.0.0.1:1"]);
    assert!(text(&other.stderr).contains("names another one"), "{}", shown(&other));
}

#[test]
fn without_a_service_manager_the_hub_is_detached() {
    let home = Home::new();
    let fails = "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n";
    std::fs::write(home.folder.path().join("my bin/systemctl"), fails).expect("it can be written");
    let installed = home.succeed(&["install", "gemini", "--service", "--wake-command", "true"]);
    assert!(text(&installed.stderr).contains("no systemd or launchd"), "{}", shown(&installed));
    let status = home.status();
    assert_eq!((&status["service"], &status["ready"], &status["wake"]), (&Value::Null, &true.into(), &true.into()));
    home.succeed(&["uninstall", "gemini"]);
    assert_eq!(home.status()["wake"], false, "nothing is left to wake");
}
