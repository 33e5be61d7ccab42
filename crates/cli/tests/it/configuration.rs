use std::path::Path;

use crate::program::{assert_output, bellwire, command, finish, shown, text};

fn home_with(config: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/bellwire");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("bellwire.toml"), config).expect("it is written");
    home
}

fn config(home: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> std::process::Output {
    finish(command(home).arg("config").args(arguments).envs(variables.iter().copied()), "")
}

#[test]
fn the_effective_configuration_says_where_each_value_comes_from() {
    let home = home_with("[limits]\nstreams = 500\n\n[log]\nlevel = \"warn\"\n");
    let variables = [("BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR", "7"), ("BELLWIRE_LIMITS_STREAM", "9")];
    assert_output!(shown(&config(home.path(), &["--data-dir", "/var/lib/bellwire"], &variables)));
}

#[test]
fn what_is_wrong_is_named_all_at_once_with_file_line_and_fix() {
    let home = home_with("[limits]\nstreems = 500\nbatch_events = 2000\n\n[server]\nallowed_origins = [\"*\"]\n");
    assert_output!(shown(&config(home.path(), &[], &[("BELLWIRE_LISTEN", "everywhere")])));
}

#[test]
fn the_default_file_is_printed_as_it_is() {
    let output = bellwire(&["config", "--default"], "");
    let file = std::fs::read(crate::program::root().join("bellwire.default.toml")).expect("the default file");
    assert_eq!(output.stdout, file);
}

#[test]
fn the_configuration_is_also_json() {
    let output = bellwire(&["config", "--json"], "");
    let config: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(config["limits.batch_events"], serde_json::json!({"value": 1000, "from": "default"}));
    assert_eq!(config["data.dir"]["from"], "platform");
}

#[test]
fn a_file_is_named_by_flag_or_variable_and_never_found_in_the_current_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("bellwire.toml");
    std::fs::write(&file, "[limits]\nstreams = 500\n").expect("it is written");
    let streams = |command: &mut std::process::Command| {
        let output = finish(command.arg("config").arg("--json"), "");
        let config: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        config["limits.streams"]["value"].clone()
    };
    assert_eq!(streams(command(home.path()).current_dir(home.path())), 10_000);
    assert_eq!(streams(command(home.path()).env("BELLWIRE_CONFIG", &file)), 500);
    let output = finish(command(home.path()).args(["config", "--json", "--config"]).arg(&file), "");
    assert!(text(&output.stdout).contains("bellwire.toml:2"), "{}", shown(&output));
    let missing = finish(command(home.path()).args(["config", "--config", "absent.toml"]), "");
    assert_eq!(
        shown(&missing),
        "exit 2\n--- stdout\n--- stderr\nerror: absent.toml does not exist; leave out --config to use the defaults\n"
    );
}

#[test]
fn an_xdg_folder_goes_before_the_home() {
    let home = home_with("[limits]\nstreams = 500\n");
    let other = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(other.path().join("bellwire")).expect("a folder");
    std::fs::write(other.path().join("bellwire/bellwire.toml"), "[limits]\nstreams = 600\n").expect("it is written");
    let variable = [("XDG_CONFIG_HOME", other.path().to_str().expect("a path"))];
    let output = config(home.path(), &["--json"], &variable);
    let config: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(config["limits.streams"]["value"], 600);
}
