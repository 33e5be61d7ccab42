//! Templates that fail: while a hub renders them, and before, when a folder is checked.

use std::path::Path;

use crate::hub::Hub;
use crate::program::{assert_output, bellwire, command, finish, shown, text};

/// A folder with one subscriber and this template.
fn write_subscriber(folder: &Path, template: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it is written");
    write("ci.j2", template);
    write(
        "ci.toml",
        "[subscriber]\nid = \"ci\"\nname = \"CI\"\ndescription = \"Builds\"\nversion = \"1.0.0\"\n[events]\n\
         types = [\"ci.build.failed\"]\n[batching]\nwindow_ms = 0\ndedupe_window_ms = 0\n[output]\n\
         priority = \"high\"\ninject_at = \"after_tool\"\naudience = \"both\"\ntemplate = \"ci.j2\"\n",
    );
}

#[test]
fn a_template_that_fails_again_and_again_is_one_line_in_the_log_and_in_every_trace() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("subscribers");
    write_subscriber(&folder, "build: {{ events[0].payload.job }}\n");
    let folder = folder.to_str().expect("the path is text").to_owned();
    let hub = Hub::start_in(home, &["--port", "0", "--subscribers", &folder]);
    let token = hub.agent_token();
    for number in 0..5 {
        let (id, call) = (format!("build-{number}"), format!("call-{number}"));
        let payload = format!(r#"{{"message": "secret {number}"}}"#);
        let emit = ["emit", "ci.build.failed", &payload, "-c", "chat", "--id", &id, "--token", &token];
        assert!(hub.run(&emit).status.success());
        assert!(hub.run(&["inject", "chat", "after_tool", &call, "--token", &token]).status.success());
    }
    assert_output!(shown(&hub.run(&["trace", "build-4", "--token", &token])));
    let (_, log) = hub.stop();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("template failed")).collect();
    let [line] = lines[..] else { panic!("{log}") };
    for part in ["WARN", "\"subscriber\":\"ci\"", "ci.j2:1: a value is missing in `build: {{ events[0].payload.job }}`"]
    {
        assert!(line.contains(part), "{line}");
    }
    assert!(!log.contains("secret"), "the log shows no payload: {log}");
}

#[test]
fn doctor_and_check_agree_on_every_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("subscribers");
    let path = folder.to_str().expect("the path is text");
    let doctor = || {
        let mut command = command(home.path());
        command.env("BELLWIRE_SUBSCRIBERS_DIR", &folder).env("BELLWIRE_LISTEN", "127.0.0.1:1");
        text(&finish(command.args(["doctor", "--json"]), "").stdout)
    };
    let agree = |expected: &str, level: &str| {
        let checked = text(&bellwire(&["subscribers", "check", path], "").stderr);
        assert!(checked.contains(expected), "{checked}");
        let doctor: serde_json::Value = serde_json::from_str(&doctor()).expect("JSON");
        let own = |one: &&serde_json::Value| one["check"] == "subscribers";
        let result = doctor["checks"].as_array().expect("checks").iter().find(own).expect("a result");
        assert_eq!(result["level"], level, "{result}");
        if level != "ok" {
            assert!(result["message"].as_str().expect("a message").contains(expected), "{result}");
        }
    };
    agree("is not a folder", "fail");
    std::fs::create_dir(&folder).expect("a folder");
    agree("holds no *.toml file", "warn");
    write_subscriber(&folder, "build: {{ events[0].payload.job }}\n");
    agree("its template fails if a field is missing: ci.j2:1: a value is missing", "fail");
    write_subscriber(&folder, "{% if %}\n");
    agree("ci.j2:1: syntax error", "fail");
    write_subscriber(&folder, "build: {{ events[0].payload.job|default(\"?\") }}\n");
    agree("1 of 1 subscribers are right", "ok");
}
