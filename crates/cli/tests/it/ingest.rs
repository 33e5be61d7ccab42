//! `bellwire ingest`, and a whole run: a sender calls the hub with curl, an agent reads it, `doctor` knows of it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::hub::Hub;
use crate::program::{assert_output, command, finish, shown, text};

const CONFIG: &str = r#"
[ingest.github]
kind = "github"
secret = "It's a Secret to Everybody"
conversation = "chat"

[ingest.pages]
kind = "json"
secret = "a token of sufficient length"
origin = "Statuspage"
[[ingest.pages.event]]
when = { "/down" = true }
type = "agent.input.needed"
severity = "warning"
payload = { message = "{/page} is down" }
"#;

fn run_json(conclusion: &str) -> String {
    let run = json!({"id": 7, "run_attempt": 1, "name": "CI", "head_branch": "main", "head_sha": "1a2b3c4d5e6f",
        "conclusion": conclusion, "display_title": "Fix the parser", "html_url": "https://github.com/octo/app/runs/7"});
    json!({"action": "completed", "repository": {"full_name": "octo/app"}, "workflow_run": run}).to_string()
}

/// Tries a call in a folder with the configuration.
fn test(folder: &Path, body: &str, arguments: &[&str]) -> Output {
    std::fs::write(folder.join("bellwire.toml"), CONFIG).expect("it is written");
    std::fs::write(folder.join("call.json"), body).expect("it is written");
    let mut command = command(folder);
    command.current_dir(folder).args(["ingest", "test", "call.json", "--config", "bellwire.toml"]).args(arguments);
    finish(&mut command, "")
}

#[test]
fn a_stored_call_shows_its_event_its_readers_and_why_it_is_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut said = String::new();
    let mut tell = |body: &str, arguments: &[&str]| {
        said.push_str(&format!("$ bellwire ingest test {}\n", arguments.join(" ")));
        said.push_str(&shown(&test(folder.path(), body, arguments)));
    };
    tell(&run_json("failure"), &["--source", "github"]);
    tell(&run_json("skipped"), &["--source", "github", "--header", "X-GitHub-Event: workflow_run"]);
    tell(&run_json("failure"), &["--source", "github", "--header", "X-Hub-Signature-256: sha256=00"]);
    tell(r#"{"down": true, "page": "Search"}"#, &["--source", "pages"]);
    tell(r#"{"down": false}"#, &["--source", "pages"]);
    tell("{nonsense", &["--source", "pages"]);
    tell("{}", &["--source", "github"]);
    tell("{}", &["--source", "gitlab"]);
    tell("{}", &[]);
    tell("{}", &["--source", "pages", "--header", "nonsense"]);
    assert_output!(said);
    assert!(!said.contains("Everybody"));
}

#[test]
fn a_stored_call_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = test(folder.path(), &run_json("failure"), &["--source", "github", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["events"][0]["for"], "the conversation chat of me");
    assert_eq!((&answer["authentic"], &answer["problem"]), (&Value::Null, &Value::Null));
    assert!(answer["block"].as_str().is_some_and(|block| block.contains("task_failed")), "{answer}");
}

/// Calls the hub as GitHub does; `openssl` signs.
fn call(hub: &Hub, body: &str, secret: &str) -> String {
    let file = hub.home.path().join("body");
    std::fs::write(&file, body).expect("it is written");
    let script = r#"
        signature=$(openssl dgst -sha256 -hmac "$SECRET" <"$FILE" | sed 's/.*= *//')
        curl -s -X POST "$URL/v1/ingest/github" -H "X-GitHub-Event: workflow_run" -H "X-GitHub-Delivery: one" \
             -H "X-Hub-Signature-256: sha256=$signature" -H "Content-Type: application/json" --data-binary "@$FILE""#;
    let mut shell = Command::new("bash");
    shell.args(["-ec", script]).env("URL", &hub.url).env("FILE", &file).env("SECRET", secret);
    text(&finish(&mut shell, "").stdout)
}

#[test]
fn a_failed_workflow_on_github_reaches_the_agent_and_a_wrong_secret_reaches_doctor() {
    let hub = Hub::configured(CONFIG);
    let accepted = call(&hub, &run_json("failure"), "It's a Secret to Everybody");
    assert!(accepted.contains(r#""id":"one""#), "{accepted}");
    let told = text(&hub.run(&["inject", "chat", "after_tool", "c1", "--user", "me"]).stdout);
    assert!(told.contains("[github] task_failed: \"CI on main of octo/app - failure, commit 1a2b3c4"), "{told}");
    let doctor = text(&hub.run(&["doctor"]).stdout);
    assert!(doctor.contains("ok   ingest          github last called at "), "{doctor}");
    assert!(doctor.contains("ok   ingest          pages has not called since the hub started"), "{doctor}");
    let refused = call(&hub, &run_json("failure"), "another secret");
    assert!(refused.contains("X-Hub-Signature-256 is not the signature of this body"), "{refused}");
    let doctor = text(&hub.run(&["doctor"]).stdout);
    assert!(doctor.contains("was not taken: refused: X-Hub-Signature-256 is not the signature"), "{doctor}");
    assert!(doctor.contains("fix: compare its settings with [ingest.github]"), "{doctor}");
    assert_output!(shown(&hub.run(&["ingest", "list"])));
    let (_, log) = hub.stop();
    assert!(log.contains("a webhook call was not taken") && !log.contains("Everybody"), "{log}");
}

#[test]
fn the_configuration_is_printed_without_secrets_and_a_hub_without_one_does_not_start() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("bellwire.toml");
    std::fs::write(&path, CONFIG).expect("it is written");
    for arguments in [&["config"][..], &["config", "--json"]] {
        let printed = text(&finish(command(home.path()).args(arguments).arg("--config").arg(&path), "").stdout);
        assert!(printed.contains("Statuspage") && printed.contains("(hidden)"), "{printed}");
        assert!(!printed.contains("Everybody") && !printed.contains("sufficient"), "{printed}");
    }
    std::fs::write(&path, "[ingest.ci]\nkind = \"github\"\n").expect("it is written");
    let refused = finish(command(home.path()).args(["serve", "--port", "0", "--config"]).arg(&path), "");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("ingest.ci has no secret, so that anybody could publish: set secret_file, secret or"),
        "{said}"
    );
}
