//! `bellwire events` and `bellwire conversations`.

use crate::hub::Hub;
use crate::program::{assert_output, shown, text};

const FAILURE: &str = r#"{"tool_name": "vault_search", "error_type": "timeout"}"#;

fn emit(hub: &Hub, arguments: &[&str]) {
    let output = hub.run(&[&["emit"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", shown(&output));
}

#[test]
fn events_answer_why_an_agent_was_not_told_without_an_id() {
    let hub = Hub::start();
    emit(&hub, &["tool.call.failure", FAILURE, "-c", "chat", "--user", "ada", "--severity", "info"]);
    emit(&hub, &["tool.call.failure", FAILURE, "-c", "chat", "--user", "ada", "--severity", "error"]);
    emit(&hub, &["deploy.started", "{}", "-c", "ops", "--user", "bob", "--source", "ci"]);
    emit(&hub, &["tool.call.failed", FAILURE, "-c", "side", "--user", "carl"]);
    let list = hub.run(&["events"]);
    let filtered = hub.run(&["events", "--conversation", "chat", "--verdict", "filtered", "--since", "1h"]);
    let count = |arguments: &[&str]| {
        let list = hub.json(&[&["events", "--json"], arguments].concat());
        list["items"].as_array().map(Vec::len)
    };
    assert_eq!(count(&["--user", "ada"]), Some(2));
    assert_eq!(count(&["--type", "tool.*", "--limit", "1"]), Some(1));
    assert_eq!(count(&["--type", "deploy.*"]), Some(1));
    assert_eq!(count(&["--token", &hub.user_token_of("bob")]), Some(1));
    let nothing = hub.run(&["events", "--type", "deploy.ended"]);
    let wrong = hub.run(&["events", "--verdict", "lost"]);
    let future = hub.run(&["events", "--since", "2999-01-01T00:00:00Z"]);
    assert_output!([&list, &filtered, &nothing, &wrong, &future].map(shown).join("\n"));
}

#[test]
fn a_rare_event_is_found_behind_many_others() {
    let hub = Hub::start();
    let line = |kind: &str, number: usize| {
        format!(
            r#"{{"type":"{kind}","source":"ci","severity":"info","conversation_id":"c{}","user_id":"ada","payload":{{"n":{number}}}}}"#,
            number % 50
        )
    };
    emit(&hub, &["deploy.started", "{}", "-c", "ops", "--user", "ada"]);
    let others: Vec<String> = (0..5500).map(|number| line("cli.event", number)).collect();
    let published = hub.run_with(&["emit", "--ndjson", "-"], &others.join("\n"));
    assert!(published.status.success(), "{}", shown(&published));
    let found = hub.json(&["events", "--type", "deploy.started", "--json"]);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "the first page of the hub has none: {found}");
    assert!(found["next_cursor"].is_null(), "{found}");
    let page = hub.run(&["events", "--type", "cli.event", "--limit", "3"]);
    assert_eq!(text(&page.stdout).lines().filter(|line| line.contains("cli.event [ci]")).count(), 3);
    assert!(text(&page.stderr).contains("there are more: --cursor "), "{}", shown(&page));
}

#[test]
fn the_ids_of_sessions_stand_apart_from_their_people() {
    let hub = Hub::start();
    let session = "claude-code:c6942e8f-72e3-400e-8a85-569cb6edb1a4";
    let longer = "x".repeat(100);
    for id in [session, &longer, "chat"] {
        emit(&hub, &["task.background.complete", r#"{"task_id": "b17"}"#, "-c", id, "--user", "ada"]);
    }
    let listed = hub.run(&["conversations"]);
    let listed = text(&listed.stdout);
    assert_eq!(listed.lines().count(), 4, "{listed}");
    let row = |id: &str| listed.lines().find(|line| line.starts_with(id)).expect("it is listed");
    for id in [session, &longer, "chat"] {
        assert_eq!(row(id).split_whitespace().nth(1), Some("ada"), "{listed}");
    }
    assert_eq!(row(session).find("ada"), row("chat").find("ada"), "{listed}");
    assert_eq!(row(session).find("ada"), row("ID").find("USER"), "{listed}");
}

#[test]
fn conversations_are_listed_with_what_waits_in_them() {
    let hub = Hub::start();
    let agent = hub.agent_token();
    emit(&hub, &["task.background.complete", r#"{"task_id": "b17"}"#, "-c", "chat", "--user", "ada"]);
    emit(&hub, &["tool.call.failure", FAILURE, "-c", "ops", "--user", "bob"]);
    let opened = hub.run(&["inject", "side", "turn_start", "turn_1", "--token", &agent]);
    assert!(opened.status.success(), "{}", shown(&opened));
    let adas = hub.json(&["conversations", "--user", "ada", "--json"]);
    assert_eq!(adas["items"].as_array().map(Vec::len), Some(2), "{adas}");
    let page = hub.json(&["conversations", "--limit", "1", "--json"]);
    let cursor = page["next_cursor"].as_str().expect("there are more");
    let next = hub.json(&["conversations", "--limit", "1", "--cursor", cursor, "--json"]);
    assert_ne!(page["items"][0]["id"], next["items"][0]["id"]);
    let one = hub.run(&["conversations", "--conversation", "chat"]);
    let recent = hub.json(&["conversations", "--since", "1h", "--json"]);
    assert_eq!(recent["items"].as_array().map(Vec::len), Some(3), "{recent}");
    let both = hub.run(&["conversations", "--conversation", "chat", "--since", "1h"]);
    assert_output!([&one, &both].map(shown).join("\n"));
}
