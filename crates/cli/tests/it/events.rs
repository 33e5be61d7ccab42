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
    // The line is that of the file, not that of the request: blank lines and earlier requests count.
    let wrong = format!("\n{}\n\n{}\n", lines[..1200].join("\n"), lines[1200].replace("info", "loud"));
    let bad = hub.run_with(&arguments, &wrong);
    let expected = "-, line 1203: severity: 'loud' must be one of: debug, info, warning, error, critical (400)";
    let said = text(&bad.stderr);
    assert!(said.contains(expected) && said.contains("1000 events were published before this"), "{}", shown(&bad));
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
    let event = r#"{"type": "agent.input.needed", "source": "ci", "severity": "info", "conversation_id": "chat",
        "correlation_id": "job-17", "payload": {"message": "may I delete it?"}}"#;
    let output = hub.run_with(&["emit", "--ndjson", "-", "--token", &token], &event.replace('\n', " "));
    assert!(output.status.success(), "{}", shown(&output));
    let (_, log) = hub.stop();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let created: Vec<_> = lines.filter(|line| line["fields"]["message"] == "notification created").collect();
    assert_eq!(created.len(), 1, "{log}");
    let fields = &created[0]["fields"];
    assert_eq!((&created[0]["level"], &fields["user_id"]), (&"INFO".into(), &"ada".into()));
    assert_eq!((&fields["conversation_id"], &fields["correlation_id"]), (&"chat".into(), &"job-17".into()));
    for field in ["notification_id", "origin"] {
        assert!(fields[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {fields}");
    }
    assert!(!log.contains("delete it"), "{log}");
}

#[test]
fn the_operator_traces_an_event_by_its_senders_id() {
    let hub = Hub::start();
    let emit = |user: &str| {
        let payload = r#"{"tool_name": "grep"}"#;
        let event = ["emit", "tool.call.failure", payload, "-c", "chat", "--severity", "error", "--id", "build-17"];
        let token = hub.agent_token_of(user);
        let output = hub.run(&[&event[..], &["--token", &token]].concat());
        assert!(output.status.success(), "{}", shown(&output));
        let first = text(&output.stdout).lines().next().expect("a line").to_owned();
        first.strip_prefix("build-17  ").unwrap_or_else(|| panic!("no id of the hub: {first}")).to_owned()
    };
    let adas = emit("ada");
    assert_eq!(hub.json(&["trace", "build-17", "--json"])["id"], adas);
    let bobs = emit("bob");
    let several = hub.run(&["trace", "build-17"]);
    let said = text(&several.stderr);
    assert_eq!(several.status.code(), Some(2), "{}", shown(&several));
    for expected in ["2 events have this id", &adas, &bobs, "user ada, conversation chat, tool.call.failure"] {
        assert!(said.contains(expected), "{expected}: {}", shown(&several));
    }
    assert_eq!(hub.json(&["trace", &bobs, "--json"])["id"], bobs);
}

#[test]
fn events_with_one_dedupe_key_are_shown_once() {
    let hub = Hub::start();
    let emit = |tool: &str, key: &[&str]| {
        let payload = format!(r#"{{"tool_name": "{tool}", "error_type": "timeout"}}"#);
        let event =
            ["emit", "tool.call.failure", &payload, "-c", "chat", "--user", "ada", "--severity", "error", "--json"];
        let answer = hub.json(&[&event[..], key].concat());
        answer["events"][0]["verdicts"][0]["verdict"].clone()
    };
    assert_eq!(emit("search", &["--dedupe-key", "vault"]), "held");
    assert_eq!(emit("write", &["--dedupe-key", "vault"]), "duplicate");
    assert_eq!(emit("write", &["--dedupe-key", "disk"]), "held");
    assert_eq!(emit("read", &[]), "held");
    let both = hub.run(&["emit", "--ndjson", "-", "--dedupe-key", "vault"]);
    assert!(text(&both.stderr).contains("cannot be used with"), "{}", shown(&both));
}

#[test]
fn an_injection_is_limited_shaped_and_taken_back() {
    let hub = Hub::start();
    for task in ["b1", "b2", "b3"] {
        let payload = format!(r#"{{"task_id": "{task}", "result_summary": "{}"}}"#, "all of it is done ".repeat(6));
        let output =
            hub.run(&["emit", "task.background.complete", &payload, "-c", "chat", "--user", "ada", "--source", task]);
        assert!(output.status.success(), "{}", shown(&output));
    }
    let inject = |arguments: &[&str]| hub.json(&[&["inject", "chat", "turn_start", "--json"], arguments].concat());
    let one = inject(&["call_1", "--max-items", "1"]);
    assert_eq!((&one["showing"], &one["pending"]), (&1.into(), &2.into()), "{one}");
    let again = inject(&["call_2", "--unseen", "call_1", "--max-tokens", "64"]);
    assert_eq!(again["count"], 3, "the first is pending again: {again}");
    assert!(again["showing"].as_u64() < Some(3), "64 tokens are few: {again}");
    let openai = inject(&[
        "call_3",
        "--unseen",
        "call_1",
        "--unseen",
        "call_2",
        "--style",
        "synthetic",
        "--shape",
        "openai_chat",
    ]);
    assert!(openai["messages"][0]["tool_calls"].is_array(), "{openai}");
    let anthropic = inject(&["call_4", "--unseen", "call_3", "--style", "synthetic", "--shape", "anthropic"]);
    assert_eq!(anthropic["messages"][0]["content"][0]["type"], "tool_use", "{anthropic}");
    let unknown = hub.run(&["inject", "chat", "turn_start", "call_5", "--unseen", "never"]);
    let wrong = hub.run(&["inject", "chat", "turn_start", "call_6", "--max-items", "0"]);
    let shape = hub.run(&["inject", "chat", "turn_start", "call_7", "--style", "synthetic", "--shape", "gemini"]);
    assert_output!([&unknown, &wrong, &shape].map(shown).join("\n"));
}
