use crate::hub::Hub;
use crate::program::{assert_output, shown, text};

const FAILURE: &str = r#"{"tool_name": "vault_search", "error_type": "timeout"}"#;

fn run_ok(hub: &Hub, token: &str, arguments: &[&str], input: &str) -> String {
    let shown = shown(&hub.run_with(&[arguments, &["--token", token]].concat(), input));
    format!("$ bellwire {}\n{shown}\n", arguments.join(" "))
}

#[test]
fn an_event_goes_in_a_block_comes_out_and_a_trace_tells_why() {
    let hub = Hub::start();
    let token = hub.agent_token();
    let emit = ["emit", "tool.call.failure", FAILURE, "-c", "chat", "--severity", "error", "--id", "first"];
    let mut said = run_ok(&hub, &token, &emit, "");
    said += &run_ok(&hub, &token, &emit, "");
    said += &run_ok(&hub, &token, &["inject", "chat", "after_tool", "call_1", "--tool-result", "-"], "File updated.");
    said += &run_ok(&hub, &token, &["inject", "chat", "turn_start", "turn_1"], "");
    said += &run_ok(&hub, &token, &["trace", "first"], "");
    assert_output!(said);
}

#[test]
fn a_payload_without_any_shown_field_gets_a_hint() {
    let hub = Hub::start();
    let token = hub.agent_token();
    let emit = |payload: &str, id: &str| {
        run_ok(
            &hub,
            &token,
            &["emit", "tool.call.failure", payload, "-c", "chat", "--severity", "error", "--id", id],
            "",
        )
    };
    let mut said = emit(r#"{"tool": "grep", "error": "no such file"}"#, "wrong");
    said += &run_ok(&hub, &token, &["trace", "wrong"], "");
    said += &emit(r#"{"tool": "grep", "error_type": "NotFound"}"#, "right");
    assert_output!(said);
}

#[test]
fn a_mistyped_event_type_is_named_with_the_nearest_known_one() {
    let hub = Hub::start();
    let token = hub.agent_token();
    let mut said = run_ok(&hub, &token, &["emit", "tool.call.failed", FAILURE, "-c", "chat", "--id", "typo"], "");
    said += &run_ok(&hub, &token, &["trace", "typo"], "");
    let lines = ["tool.call.failed", "tool.call.failed", "source.file.changd"].map(|kind| {
        format!(r#"{{"type":"{kind}","source":"ci","severity":"info","conversation_id":"chat","payload":{{}}}}"#)
    });
    said += &run_ok(&hub, &token, &["emit", "--ndjson", "-"], &lines.join("\n"));
    assert_output!(said);
}

#[test]
fn a_payload_may_come_from_standard_input_or_a_file() {
    let hub = Hub::start();
    let token = hub.agent_token();
    let file = hub.home.path().join("payload.json");
    std::fs::write(&file, FAILURE).expect("it is written");
    let at_file = format!("@{}", file.display());
    for (payload, input) in [("-", FAILURE), (at_file.as_str(), "")] {
        let arguments = ["emit", "tool.call.failure", payload, "-c", "chat", "--severity", "error", "--json"];
        let output = hub.run_with(&[&arguments[..], &["--token", &token]].concat(), input);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(answer["events"][0]["verdicts"][0]["subscriber"], "tool_failure", "{}", shown(&output));
    }
    let list = hub.run(&["emit", "tool.call.failure", "[1]", "-c", "chat", "--token", &token]);
    assert!(text(&list.stderr).contains("the payload must be a JSON object"), "{}", shown(&list));
}

#[test]
fn many_events_are_published_a_thousand_a_call() {
    let hub = Hub::start();
    let line = |number: usize| {
        format!(
            r#"{{"type":"source.file.changed","source":"watcher","severity":"info","conversation_id":"c{}","payload":{{"path":"{number}"}}}}"#,
            number % 50
        )
    };
    let lines: Vec<String> = (0..1500).map(line).collect();
    let token = hub.agent_token();
    let arguments = ["emit", "--ndjson", "-", "--token", &token];
    let output = hub.run_with(&arguments, &lines.join("\n"));
    let said = text(&output.stdout);
    assert!(said.starts_with("1500 events published: "), "{}", shown(&output));
    let bad = hub.run_with(&arguments, "{\"type\": \"nothing\"}\n");
    assert_eq!(bad.status.code(), Some(2), "{}", shown(&bad));
    let empty = hub.run_with(&arguments, "\n");
    assert!(text(&empty.stderr).contains("write one JSON object per line"), "{}", shown(&empty));
}

#[test]
fn an_operators_event_that_names_both_creates_the_conversation() {
    let hub = Hub::start();
    let emit = ["emit", "task.background.complete", r#"{"task_id": "b17"}"#, "--conversation", "chat"];
    let nobodys = hub.run(&emit);
    assert_eq!(nobodys.status.code(), Some(2));
    assert!(text(&nobodys.stderr).contains("with --user ID"), "{}", shown(&nobodys));
    let adas = hub.run(&[&emit[..], &["--user", "ada"]].concat());
    assert!(adas.status.success(), "{}", shown(&adas));
    let block = hub.run(&["inject", "chat", "turn_start", "turn_1"]);
    assert!(text(&block.stdout).contains("b17"), "{}", shown(&block));
}

#[test]
fn a_notification_for_a_person_is_logged_without_its_text() {
    let hub = Hub::start();
    let token = hub.agent_token();
    let emit = ["emit", "agent.input.needed", r#"{"message": "may I delete it?"}"#, "-c", "chat", "--token", &token];
    let output = hub.run(&emit);
    assert!(output.status.success(), "{}", shown(&output));
    let (_, log) = hub.stop();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let created: Vec<_> = lines.filter(|line| line["fields"]["message"] == "notification created").collect();
    assert_eq!(created.len(), 1, "{log}");
    let fields = &created[0]["fields"];
    assert_eq!((&created[0]["level"], &fields["user_id"]), (&"INFO".into(), &"ada".into()));
    assert_eq!(fields["conversation_id"], "chat");
    for field in ["notification_id", "origin"] {
        assert!(fields[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {fields}");
    }
    assert!(!log.contains("delete it"), "{log}");
}
