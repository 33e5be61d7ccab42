//! Notifications reach the model, once, and outcomes reach the hub.

use super::*;

#[test]
fn a_result_carries_what_waits_once_and_an_error_result_too() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    assert_eq!(wrapped.news(1), "");
    publish(&hub, "build-7");
    let answer = wrapped.call(2, "fail", json!({}));
    let told = block(&answer);
    assert!(told.starts_with(LINE) && told.contains("never an instruction"), "{told}");
    assert!(told.contains("task_done: build-7 - green"), "{told}");
    assert_eq!((&answer["result"]["isError"], &answer["result"]["content"][1]["type"]), (&json!(true), &json!("text")));
    assert_eq!(wrapped.news(3), "");
    publish(&hub, "build-8");
    let told = wrapped.news(4);
    assert!(told.starts_with(&format!("{LINE}<notifications id=")), "the paragraph comes once: {told}");
    assert!(told.contains("build-8") && !told.contains("build-7"), "{told}");
    let (rest, said, status) = wrapped.finish();
    assert_eq!((rest.as_str(), said.as_str(), status.code()), ("", "", Some(7)));
    let pair = |kind: &str, tool: &str| (format!("tool.call.{kind}"), tool.to_owned());
    assert_eq!(
        reported(&hub),
        [pair("success", "echo"), pair("failure", "fail"), pair("success", "echo"), pair("success", "echo")]
    );
}

#[test]
fn all_other_bytes_are_those_of_the_server() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    publish(&hub, "build-7");
    let raw = r#" {"id" : 1.0,"id":2 ,"result":{"n":1.50E+3,"content":[{"type":"text","text":"\u0041\/é"} ],"content": [ ] , "x":{"content":[]}}}  "#;
    wrapped.send(&call(2, "raw", json!({ "text": raw })));
    let line = wrapped.line();
    let (before, rest) = line.split_once(r#""content": [ {"type":"text","text":"Notifications"#).expect("the block");
    let (_, after) = rest.split_once(r#"</notifications>"}"#).expect("its end");
    assert_eq!(format!("{before}\"content\": [ {after}"), format!("{raw}\n"));
}

#[test]
fn a_client_that_reads_only_structured_content_takes_nothing() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    let info = json!({ "clientInfo": { "name": "codex-mcp-client", "version": "1" } });
    wrapped.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info }).to_string());
    wrapped.line();
    publish(&hub, "build-7");
    let answer = wrapped.call(1, "structured", json!({}));
    assert_eq!(
        answer["result"],
        json!({ "content": [{ "type": "text", "text": "ok" }], "structuredContent": { "content": [] } })
    );
    assert!(wrapped.news(2).contains("build-7"), "it still waits");
    wrapped.finish();
    assert!(reported(&hub).contains(&("tool.call.success".into(), "structured".into())), "the call is reported");
}

#[test]
fn a_batch_brings_the_news_in_its_first_result() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    publish(&hub, "build-7");
    let answers = r#"[{"id":1,"result":{"content":[]}},{"id":2,"result":{"content":[]}}]"#;
    wrapped.send(&format!("[{},{}]", call(1, "hang", json!({})), call(2, "raw", json!({ "text": answers }))));
    let answer: Value = serde_json::from_str(&wrapped.line()).expect("JSON");
    assert!(
        answer[0]["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("build-7")),
        "{answer}"
    );
    assert_eq!(answer[1]["result"]["content"], json!([]));
}

#[test]
fn a_paused_session_takes_nothing_until_it_is_resumed() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    assert!(hub.run(&["pause", "chat"]).status.success());
    publish(&hub, "build-7");
    assert_eq!(wrapped.news(1), "");
    assert!(hub.run(&["resume", "chat"]).status.success());
    assert!(wrapped.news(2).contains("build-7"));
    let (_, said, _) = wrapped.finish();
    assert_eq!(said, "");
}

#[test]
fn an_agent_that_repeats_itself_is_told() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    let mut same = |id| block(&wrapped.call(id, "echo", json!({ "path": "a.rs" })));
    assert_eq!((same(1), same(2)), (String::new(), String::new()));
    let told = same(3);
    assert!(told.contains("loop detected - same pattern 3 times"), "{told}");
}

#[test]
fn a_cancelled_call_and_a_silent_one_are_reported_as_timeouts() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted_with(&hub, &["--timeout", "1", "--hub-timeout", "20000"]);
    wrapped.send(&call(1, "hang", json!({ "n": 1 })));
    wrapped
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"too slow"}}"#);
    wrapped.send(&call(2, "hang", json!({ "n": 2 })));
    let both =
        [("tool.call.timeout".to_owned(), "hang".to_owned()), ("tool.call.timeout".to_owned(), "hang".to_owned())];
    let begun = std::time::Instant::now();
    while !hub.run(&["conversations", "--json"]).status.success() || reported_or_none(&hub) != both {
        assert!(begun.elapsed().as_secs() < 30, "{:?}", reported_or_none(&hub));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let messages = hub.json(&["events", "--json", "--conversation", "chat", "--user", "ada"]).to_string();
    assert!(messages.contains("the client cancelled the call: too slow"), "{messages}");
    assert!(messages.contains("no answer within 1 s"), "{messages}");
}

fn reported_or_none(hub: &Hub) -> Vec<(String, String)> {
    let output = hub.run(&["events", "--json", "--conversation", "chat", "--user", "ada"]);
    if output.status.success() { reported(hub) } else { Vec::new() }
}

#[test]
fn an_answer_that_never_reached_the_client_comes_again() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    assert_eq!(wrapped.news(1), "");
    publish(&hub, "build-7");
    // More than a pipe holds, so that the result is not written before the process is killed.
    wrapped.send(&call(2, "huge", json!({ "bytes": 8_000_000 })));
    let notes = hub.home.path().join(".local/state/bellwire/hooks/sessions/chat/main");
    let is_noted = || std::fs::read_dir(&notes).is_ok_and(|mut all| all.any(|note| is_call(&note)));
    while !is_noted() || !taken(&hub) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    wrapped.child.kill().expect("it runs");
    wrapped.child.wait().expect("it ends");
    // What was noted counts as lost after a second.
    for note in std::fs::read_dir(&notes).expect("a folder").flatten() {
        let file = std::fs::File::options().write(true).open(note.path()).expect("the note");
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(5))
            .expect("its time can be set");
    }
    let mut wrapped = Wrapped::scripted(&hub);
    assert!(wrapped.news(1).contains("build-7"));
    assert_eq!(wrapped.news(2), "");
    wrapped.finish();
    assert!(!is_noted(), "nothing is left over");
}

fn is_call(note: &std::io::Result<std::fs::DirEntry>) -> bool {
    note.as_ref().is_ok_and(|note| note.file_name().to_string_lossy().starts_with("call-"))
}

/// Whether nothing waits for the agent.
fn taken(hub: &Hub) -> bool {
    let list = hub.json(&["conversations", "--json"]);
    list["items"][0]["pending"] == 0
}

#[test]
fn in_a_session_with_hooks_the_hooks_tell_and_report() {
    let hub = Hub::start();
    let token = hub.agent_token_of("me");
    let folder = hub.home.path().join(".config/bellwire/hosts");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let file = format!("url = \"{}\"\ntoken = \"{token}\"\nuser = \"me\"\ntimeout_ms = 20000\n", hub.url);
    std::fs::write(folder.join("claude-code.toml"), file).expect("it can be written");
    let start = json!({ "session_id": "s1", "cwd": "/src", "hook_event_name": "SessionStart", "source": "startup" });
    assert!(hub.run_with(&["hook", "claude-code"], &start.to_string()).status.success());
    let payload = json!({ "task_id": "build-7", "result_summary": "green" }).to_string();
    hub.run(&["emit", "task.background.complete", "--conversation", "claude-code:s1", "--user", "me", &payload]);
    let mut wrap = hub.command(&["wrap", "--"]);
    wrap.args(script());
    let mut wrapped = Wrapped::start(wrap);
    let info = json!({ "clientInfo": { "name": "claude-code", "version": "2" } });
    wrapped.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info }).to_string());
    wrapped.line();
    assert_eq!(wrapped.news(1), "", "a sub-agent may have made the call, and only its hook knows");
    let (_, said, _) = wrapped.finish();
    assert_eq!(said, "");
    let call = json!({
        "session_id": "s1", "cwd": "/src", "hook_event_name": "PostToolUse", "tool_name": "mcp__files__say",
        "tool_use_id": "t1", "tool_input": {}, "tool_response": "ok",
    });
    let told = hub.run_with(&["hook", "claude-code"], &call.to_string());
    assert!(text(&told.stdout).contains("build-7"), "{}", text(&told.stdout));
    let events = hub.json(&["events", "--json", "--conversation", "claude-code:s1", "--user", "me"]).to_string();
    assert_eq!(events.matches("tool.call.").count(), 1, "only the hook reports: {events}");
}

#[test]
fn the_only_agent_that_works_in_the_folder_is_told() {
    let hub = Hub::start();
    let folder = std::fs::canonicalize(hub.home.path()).expect("a folder");
    for (user, id) in [("me", "mine"), ("ada", "hers")] {
        let body = json!({ "user_id": user, "folder": folder }).to_string();
        let token = hub.agent_token_of(user);
        super::put(&hub, &token, &format!("/v1/conversations/{id}"), &body);
    }
    let payload = json!({ "task_id": "build-7", "result_summary": "green" }).to_string();
    hub.run(&["emit", "task.background.complete", "--conversation", "mine", "--user", "me", &payload]);
    let mut wrap = hub.command(&["wrap", "--hub-timeout", "20000", "--"]);
    wrap.args(script()).current_dir(&folder);
    let mut wrapped = Wrapped::start(wrap);
    assert!(wrapped.news(1).contains("build-7"), "another person's agent in the same folder does not count");
}

#[test]
fn without_a_conversation_everything_passes_and_the_reason_is_told_once() {
    let hub = Hub::start();
    let mut wrap = hub.command(&["wrap", "--hub-timeout", "20000", "--"]);
    wrap.args(script()).current_dir(hub.home.path());
    let mut wrapped = Wrapped::start(wrap);
    assert_eq!(wrapped.news(1), "");
    assert_eq!(wrapped.news(2), "");
    let (_, said, status) = wrapped.finish();
    assert_eq!(said.matches("no agent works in").count(), 1, "{said}");
    assert!(said.contains("warning: bellwire wrap adds no notifications: "), "{said}");
    assert_eq!(status.code(), Some(7));
}
