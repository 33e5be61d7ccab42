//! `bellwire install` and `uninstall` in a user's files.

mod plugin;
mod project;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::hub::Hub;
use crate::program::{command, finish, shown, text};

const HOSTS: [&str; 6] = ["claude-code", "codex", "gemini", "opencode", "cursor", "copilot"];

fn install(hub: &Hub, words: &[&str]) -> Output {
    let mut all = vec!["install"];
    all.extend(words);
    all.extend(["--binary", env!("CARGO_BIN_EXE_bellwire")]);
    hub.run(&all)
}

fn uninstall(hub: &Hub, words: &[&str]) -> Output {
    hub.run(&[&["uninstall"], words].concat())
}

/// Every file of the home folder but the hub's own.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if name.contains("/bellwire") && path.is_dir() {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((name, fs::read_to_string(&path).expect("a text")));
        }
    }
    found.sort();
    found
}

#[test]
fn in_an_empty_home_it_makes_files_and_removes_them_again() {
    let hub = Hub::start();
    for host in HOSTS {
        let before = files(hub.home.path());
        let dry = install(&hub, &[host, "--dry-run"]);
        assert!(dry.status.success() && text(&dry.stdout).contains("+++ "), "{}", shown(&dry));
        assert_eq!(files(hub.home.path()), before, "--dry-run changes nothing");
        let nothing = uninstall(&hub, &[host]);
        assert!(nothing.status.success() && text(&nothing.stderr).contains("was not connected"), "{}", shown(&nothing));
        let done = install(&hub, &[host]);
        assert!(done.status.success(), "{}", shown(&done));
        let installed = files(hub.home.path());
        assert!(installed.len() > before.len());
        let file = hub.home.path().join(format!(".config/bellwire/hosts/{host}.toml"));
        let secret = fs::read_to_string(&file).expect("the host's file");
        let again = install(&hub, &[host]);
        assert!(text(&again.stderr).contains("was connected already"), "{}", shown(&again));
        assert_eq!(files(hub.home.path()), installed);
        assert_eq!(fs::read_to_string(&file).expect("the host's file"), secret, "the token stays");
        let token =
            secret.lines().find_map(|line| line.strip_prefix("token = \"")).expect("a token").trim_end_matches('"');
        assert!(installed.iter().all(|(_, content)| !content.contains(token)), "no token in a harness's file");
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).expect("a file").permissions());
        assert_eq!(mode & 0o777, 0o600);
        let list = ["conversations", "--json", "--token", token];
        assert!(hub.run(&list).status.success());

        let removed = uninstall(&hub, &[host]);
        assert!(removed.status.success(), "{}", shown(&removed));
        assert_eq!(files(hub.home.path()), before, "{host}");
        assert!(!file.exists());
        assert!(!hub.run(&list).status.success(), "its token is revoked");
    }
}

#[test]
fn what_others_wrote_before_and_after_stays() {
    let hub = Hub::start();
    let settings = hub.home.path().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().expect("a folder")).expect("it can be made");
    let mine = "{\n    // not yet\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": \
                [{\"type\": \"command\", \"command\": \"say done\"}]}\n        ]\n    }\n}\n";
    fs::write(&settings, mine).expect("it can be written");
    assert!(install(&hub, &["claude-code"]).status.success());
    let installed = fs::read_to_string(&settings).expect("a file");
    assert!(
        installed.contains("// not yet") && installed.contains("say done") && installed.contains(" hook claude-code")
    );
    assert_eq!(fs::read_to_string(settings.with_file_name("settings.json.before-bellwire")).expect("a backup"), mine);
    // Somebody adds a hook behind ours.
    let theirs = "\"PostToolUse\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"other\"}]},";
    let changed = installed.replacen("\"PostToolUse\": [", theirs, 1);
    assert_ne!(changed, installed);
    fs::write(&settings, &changed).expect("it can be written");
    assert!(uninstall(&hub, &["claude-code"]).status.success());
    let left = fs::read_to_string(&settings).expect("a file");
    assert!(!left.contains("bellwire"), "{left}");
    assert!(left.contains("// not yet") && left.contains("say done") && left.contains("\"other\""), "{left}");
    let doctor = hub.json(&["doctor", "--json"]);
    assert!(!doctor.to_string().contains("claude-code"), "{doctor}");
}

#[test]
fn without_a_hub_or_with_a_program_that_may_vanish_nothing_is_changed() {
    let home = tempfile::tempdir().expect("a folder");
    let refused = finish(command(home.path()).args(["install", "claude-code"]), "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("lies in a build folder"), "{}", shown(&refused));
    let binary = env!("CARGO_BIN_EXE_bellwire");
    let refused = finish(command(home.path()).args(["install", "claude-code", "--binary", binary]), "");
    assert_eq!(refused.status.code(), Some(2), "{}", shown(&refused));
    fs::create_dir_all(home.path().join(".claude")).expect("it can be made");
    fs::write(home.path().join(".claude/settings.json"), "{\"hooks\": 7}").expect("it can be written");
    let refused = finish(command(home.path()).args(["install", "claude-code", "--dry-run", "--binary", binary]), "");
    assert!(text(&refused.stderr).contains("settings.json cannot be edited"), "{}", shown(&refused));
    assert_eq!(files(home.path()).len(), 1);
}

#[test]
fn a_token_of_the_environment_is_never_given_to_a_harness() {
    let hub = Hub::start();
    let admin = fs::read_to_string(hub.home.path().join(".local/share/bellwire/admin.token")).expect("a token");
    let words = ["install", "gemini", "--binary", env!("CARGO_BIN_EXE_bellwire")];
    for _ in 0..2 {
        let done = finish(hub.command(&words).env("BELLWIRE_TOKEN", admin.trim()).env("BELLWIRE_URL", &hub.url), "");
        assert!(done.status.success(), "{}", shown(&done));
        let file = fs::read_to_string(hub.home.path().join(".config/bellwire/hosts/gemini.toml")).expect("a file");
        assert!(!file.contains(admin.trim()), "it would make the agent the operator");
    }
}

/// The names of the tokens that `install` made and that are valid.
fn tokens(hub: &Hub) -> Vec<String> {
    let list = hub.json(&["token", "list", "--json"]);
    let valid = list["items"].as_array().expect("a list").iter().filter(|token| token["revoked_at"].is_null());
    let names = valid.filter_map(|token| token["name"].as_str().map(str::to_owned));
    names.filter(|name| name.starts_with("install")).collect()
}

#[test]
fn no_token_is_forgotten() {
    let hub = Hub::start();
    // Two at once make one.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(install(&hub, &["codex"]).status.success()));
        }
    });
    assert_eq!(tokens(&hub), ["install codex"]);
    // Another person's replaces it.
    let other = install(&hub, &["codex", "--user", "ada"]);
    assert!(other.status.success() && !text(&other.stderr).contains("still valid"), "{}", shown(&other));
    assert_eq!(tokens(&hub), ["install codex"]);
    let file = hub.home.path().join(".config/bellwire/hosts/codex.toml");
    let installed = fs::read_to_string(&file).expect("the host's file");
    let id =
        installed.lines().find_map(|line| line.strip_prefix("token_id = \"")).expect("an id").trim_end_matches('"');
    // A token of another hub is not revoked here.
    fs::write(&file, installed.replace(&hub.url, "http://127.0.0.1:9")).expect("it can be written");
    let away = uninstall(&hub, &["codex"]);
    let said = text(&away.stderr);
    assert!(away.status.success() && said.contains("the hub at http://127.0.0.1:9"), "{}", shown(&away));
    assert!(said.contains(&format!("bellwire token revoke {id} --url http://127.0.0.1:9")), "{said}");
    assert_eq!((tokens(&hub).len(), file.exists()), (1, false));
    let (home, _) = hub.stop();
    fs::write(&file, &installed).expect("it can be written");
    let away = finish(command(home.path()).args(["uninstall", "codex"]), "");
    let said = text(&away.stderr);
    assert!(away.status.success() && said.contains(id) && said.contains("is still valid"), "{said}");
    fs::write(&file, "no toml").expect("it can be written");
    let unknown = finish(command(home.path()).args(["uninstall", "codex"]), "");
    assert!(text(&unknown.stderr).contains("may still be valid"), "{}", shown(&unknown));
}

#[test]
fn the_folders_that_variables_name_are_used() {
    let hub = Hub::start();
    let folder = hub.home.path().join("elsewhere");
    let cases = [
        ("claude-code", "CLAUDE_CONFIG_DIR", vec!["settings.json", ".claude.json"]),
        ("codex", "CODEX_HOME", vec!["hooks.json", "config.toml"]),
        ("gemini", "GEMINI_CLI_HOME", vec![".gemini/settings.json"]),
        ("copilot", "COPILOT_HOME", vec!["hooks/bellwire.json", "mcp-config.json"]),
    ];
    for (host, variable, names) in cases {
        let words = ["install", host, "--binary", env!("CARGO_BIN_EXE_bellwire")];
        let done = finish(hub.command(&words).env(variable, &folder), "");
        assert!(done.status.success(), "{}", shown(&done));
        for name in names {
            assert!(folder.join(name).exists(), "{host}: {name}");
        }
        assert!(finish(hub.command(&["uninstall", host]).env(variable, &folder), "").status.success());
        assert_eq!(files(&folder), Vec::new(), "{host}");
        // One that depends on where a program runs is passed over.
        let dry = finish(hub.command(&words).arg("--dry-run").env(variable, "relative"), "");
        assert!(dry.status.success() && !text(&dry.stdout).contains("relative"), "{}", shown(&dry));
    }
}

#[test]
fn a_program_that_could_not_be_found_again_is_refused_and_an_empty_file_is_used() {
    let hub = Hub::start();
    let other = hub.home.path().join("bw");
    fs::copy(env!("CARGO_BIN_EXE_bellwire"), &other).expect("a copy");
    let words = ["install", "gemini", "--binary", other.to_str().expect("text")];
    let refused = hub.run(&words);
    assert!(text(&refused.stderr).contains("must begin with bellwire"), "{}", shown(&refused));
    fs::create_dir_all(hub.home.path().join(".gemini")).expect("it can be made");
    let settings = hub.home.path().join(".gemini/settings.json");
    fs::write(&settings, "").expect("it can be written");
    let done = install(&hub, &["gemini"]);
    assert!(done.status.success(), "{}", shown(&done));
    assert!(fs::read_to_string(&settings).expect("a file").contains(" hook gemini"));
}

/// What `doctor` says of one harness.
fn doctor(hub: &Hub, host: &str) -> Value {
    let output = hub.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = report["checks"].as_array().expect("a list").iter().find(|check| check["check"] == host);
    found.cloned().unwrap_or(Value::Null)
}

#[test]
fn doctor_sees_whether_a_harness_is_installed_and_alive() {
    let hub = Hub::start();
    assert_eq!(doctor(&hub, "codex"), Value::Null);
    assert!(install(&hub, &["codex"]).status.success());
    let silent = doctor(&hub, "codex");
    let skipped = "it skips the hooks that you do not trust: SessionStart, UserPromptSubmit, PostToolUse, PostCompact, Stop, \
                   SubagentStop, SessionEnd";
    let never = format!("is installed and has never asked; {skipped}");
    assert_eq!((&silent["level"], &silent["message"]), (&json!("warn"), &json!(never)));
    assert!(silent["fix"].as_str().is_some_and(|fix| fix.contains("/hooks")), "{silent}");
    let input = json!({
        "session_id": "s1", "hook_event_name": "PostToolUse", "turn_id": "1", "tool_name": "t", "tool_use_id": "c1",
    });
    // Longer than the default, for a machine under load.
    let file = hub.home.path().join(".config/bellwire/hosts/codex.toml");
    let slow = fs::read_to_string(&file).expect("a file").replace("timeout_ms = 200", "timeout_ms = 20000");
    fs::write(&file, slow).expect("it can be written");
    assert!(hub.run_with(&["hook", "codex"], &input.to_string()).status.success());
    let alive = doctor(&hub, "codex");
    assert_eq!(alive["message"], format!("is installed and last asked less than a minute ago; {skipped}"), "{alive}");
    assert!(install(&hub, &["gemini"]).status.success());
    assert_eq!(doctor(&hub, "gemini")["message"], "is installed; it has never asked");
    fs::write(hub.home.path().join(".codex/hooks.json"), "{}").expect("it can be written");
    let half = doctor(&hub, "codex");
    assert_eq!(half["message"], "some of its entries are missing or older", "{half}");
    // As after an installation that was killed between two files.
    assert!(install(&hub, &["codex"]).status.success());
    let again = doctor(&hub, "codex");
    assert!(
        again["message"].as_str().is_some_and(|message| message.starts_with("is installed and last asked")),
        "{again}"
    );
    fs::remove_file(&file).expect("it can be removed");
    assert_eq!(doctor(&hub, "codex")["message"], "its hooks have no token, so they are silent");
}

#[test]
fn without_a_harness_the_command_lists_them() {
    let home = tempfile::tempdir().expect("a folder");
    for name in ["install", "uninstall"] {
        let output = finish(command(home.path()).arg(name), "");
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(HOSTS.iter().all(|host| text(&output.stderr).contains(host)), "{}", shown(&output));
    }
}
