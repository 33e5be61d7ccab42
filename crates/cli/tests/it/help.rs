use crate::program::{bellwire, text, transcript};

const COMMANDS: &[&[&str]] = &[
    &["serve"],
    &["start"],
    &["stop"],
    &["status"],
    &["demo"],
    &["emit"],
    &["inject"],
    &["mcp"],
    &["hook"],
    &["install"],
    &["uninstall"],
    &["run"],
    &["wrap"],
    &["wake"],
    &["watch"],
    &["pause"],
    &["resume"],
    &["tail"],
    &["trace"],
    &["events"],
    &["conversations"],
    &["inbox"],
    &["inbox", "read"],
    &["inbox", "dismiss"],
    &["inbox", "press"],
    &["say"],
    &["notify"],
    &["remind"],
    &["settings"],
    &["settings", "set"],
    &["settings", "confirm"],
    &["deliveries"],
    &["ledger"],
    &["ingest", "list"],
    &["ingest", "test"],
    &["mail", "test"],
    &["telegram", "pair"],
    &["token", "create"],
    &["erase"],
    &["config"],
    &["doctor"],
    &["migrate"],
    &["simulate"],
    &["completions"],
];

#[test]
fn the_help_teaches() {
    insta::assert_snapshot!(transcript(&["--help"], ""));
}

#[test]
fn every_command_explains_itself() {
    let mut said = String::new();
    for command in COMMANDS {
        said.push_str(&format!("$ bellwire {} --help\n", command.join(" ")));
        let output = bellwire(&[*command, &["--help"]].concat(), "");
        assert!(output.status.success(), "{command:?}");
        said.push_str(&text(&output.stdout));
        said.push('\n');
    }
    insta::assert_snapshot!(said);
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = bellwire(&["completions", shell], "");
        assert!(output.status.success());
        let script = text(&output.stdout);
        for command in COMMANDS {
            assert!(script.contains(command[0]), "{shell} does not know {}", command[0]);
        }
    }
}
