//! An agent's shell does not act as its person or as the operator with the machine's own token.

use crate::hub::Hub;
use crate::program::{assert_output, finish, shown, text};

const ACTING: [&[&str]; 19] = [
    &["say", "chat", "hello"],
    &["settings", "--user", "ada"],
    &["settings", "set", "--toasts", "off", "--user", "ada"],
    &["settings", "confirm", "123456", "--user", "ada"],
    &["inbox", "read", "--all", "--user", "ada"],
    &["inbox", "dismiss", "0198c0de-0000-7000-8000-000000000000", "--user", "ada"],
    &["inbox", "press", "0198c0de-0000-7000-8000-000000000000", "0", "--user", "ada"],
    &["token", "create", "--scope", "admin"],
    &["token", "list"],
    &["token", "revoke", "0198c0de-0000-7000-8000-000000000000"],
    &["erase", "ada", "--yes"],
    &["mail", "test", "ada@example.org"],
    &["telegram", "pair", "ada"],
    &["notify", "telegram", "hello", "--user", "ada"],
    &["remind", "hello", "--at", "2h", "--user", "ada"],
    &["remind", "--cancel", "0198c0de-0000-7000-8000-000000000000"],
    &["deliveries", "--retry", "0198c0de-0000-7000-8000-000000000000"],
    &["deliveries", "--cancel", "0198c0de-0000-7000-8000-000000000000"],
    &["install", "codex", "--binary", env!("CARGO_BIN_EXE_bellwire")],
];

/// Commands that do not act as a person or as the operator of a running hub: they read, work on files of this machine, or do
/// what an agent does.
const OTHERS: &[&str] = &[
    "serve",
    "start",
    "stop",
    "status",
    "demo",
    "emit",
    "inject",
    "mcp",
    "hook",
    "uninstall",
    "pause",
    "resume",
    "run",
    "wake",
    "tail",
    "trace",
    "events",
    "conversations",
    "ledger",
    "config",
    "doctor",
    "migrate",
    "simulate",
    "subscribers",
    "completions",
    "help",
    "ingest",
    "watch",
    "wrap",
];

/// A new command has to be put into one of the two lists.
#[test]
fn of_every_command_it_is_known_whether_it_acts_for_a_person() {
    let help = text(&crate::program::bellwire(&["--help"], "").stdout);
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the commands");
    let names = list.lines().filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    for name in names {
        let acts = ACTING.iter().any(|arguments| arguments[0] == name);
        assert!(acts != OTHERS.contains(&name), "{name}: does it act as a person or as the operator?");
    }
}

#[test]
fn an_agents_shell_needs_a_token_of_its_own_to_act_as_a_person() {
    let hub = Hub::start();
    let mut said = String::new();
    for arguments in ACTING {
        let refused = finish(hub.command(arguments).env("CLAUDECODE", "1"), "");
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(text(&refused.stderr).contains("CLAUDECODE is set"), "{arguments:?}: {}", shown(&refused));
        said = text(&refused.stderr);
    }
    assert_output!(said);
    let toasts = &hub.json(&["settings", "--json", "--user", "ada"])["toasts"]["enabled"];
    assert_eq!(toasts, true, "nothing was changed");
}

#[test]
fn every_harness_is_known_and_a_named_token_is_accepted() {
    let hub = Hub::start();
    let token = hub.user_token_of("ada");
    for variable in ["CLAUDECODE", "CODEX_SESSION_ID", "GEMINI_CLI", "OPENCODE"] {
        let run = |arguments: &[&str]| finish(hub.command(arguments).env(variable, "1"), "");
        assert_eq!(run(&["settings", "--user", "ada"]).status.code(), Some(2), "{variable}");
        let flag = run(&["settings", "--token", &token]);
        assert!(flag.status.success(), "{variable}: {}", shown(&flag));
        let environment = finish(hub.command(&["settings"]).env(variable, "1").env("BELLWIRE_TOKEN", &token), "");
        assert!(environment.status.success(), "{variable}: {}", shown(&environment));
        let reading = run(&["inbox", "--user", "ada"]);
        assert!(reading.status.success(), "{variable}: {}", shown(&reading));
    }
    let unset = finish(hub.command(&["settings", "--user", "ada"]).env("CLAUDECODE", ""), "");
    assert!(unset.status.success(), "an empty variable is not set: {}", shown(&unset));
}
