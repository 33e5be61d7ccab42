//! `bellwire mcp --host`: which session of the harness calls.

use super::*;

/// A hub with the host file of this harness, as `bellwire install` writes it.
fn hub_of_host(host: &str) -> Hub {
    let hub = Hub::start();
    let folder = hub.home.path().join(".config/bellwire/hosts");
    std::fs::create_dir_all(&folder).expect("it can be made");
    let file = format!("url = \"{}\"\ntoken = \"{}\"\nuser = \"me\"\n", hub.url, hub.agent_token_of("me"));
    std::fs::write(folder.join(format!("{host}.toml")), file).expect("it can be written");
    hub
}

/// The conversations of the person's notifications, the newest first.
fn conversations_notified(hub: &Hub) -> Vec<Value> {
    let inbox = hub.json(&["inbox", "--user", "me", "--json"]);
    inbox["items"].as_array().expect("a list").iter().map(|item| item["conversation_id"].clone()).collect()
}

#[test]
fn a_server_of_codex_knows_the_session_by_the_call() {
    let hub = hub_of_host("codex");
    let mut agent = Agent::initialized(&mut hub.command(&["mcp", "--host", "codex"]));
    let arguments = json!({"message": "hello"});
    for meta in [json!({"threadId": "t1"}), json!({"threadId": "t2"}), json!({})] {
        let call = json!({"name": "send_notification", "arguments": arguments, "_meta": meta});
        let result = agent.ask("tools/call", call)["result"].clone();
        assert_eq!(result["isError"], false, "{result}");
    }
    assert_eq!(conversations_notified(&hub), [Value::Null, json!("codex:t2"), json!("codex:t1")]);
}

#[test]
fn a_server_of_claude_code_knows_the_session_by_a_hook_and_else_by_its_environment() {
    let hub = hub_of_host("claude-code");
    let mut server = hub.command(&["mcp", "--host", "claude-code"]);
    let mut agent = Agent::initialized(server.env("CLAUDE_CODE_SESSION_ID", "named"));
    assert_eq!(hub.json(&["conversations", "--json"])["items"], json!([]), "connecting makes no conversation");
    agent.call("send_notification", json!({"message": "hello"}));
    // This test started the server and starts the hook, as a harness does.
    let start = json!({"session_id": "resumed", "hook_event_name": "SessionStart", "source": "resume", "cwd": "/src"});
    assert!(hub.run_with(&["hook", "claude-code"], &start.to_string()).status.success());
    agent.call("send_notification", json!({"message": "hello again"}));
    assert_eq!(conversations_notified(&hub), [json!("claude-code:resumed"), json!("claude-code:named")]);
}

#[test]
fn a_server_of_a_process_with_several_sessions_says_that_it_cannot_tell() {
    let hub = hub_of_host("gemini");
    let mut agent = Agent::initialized(&mut hub.command(&["mcp", "--host", "gemini"]));
    for session in ["one", "two"] {
        let input = json!({
            "session_id": session, "hook_event_name": "SessionStart", "source": "startup", "timestamp": "2026-11-16T10:00:00Z",
        });
        assert!(hub.run_with(&["hook", "gemini"], &input.to_string()).status.success());
        let result = agent.call("send_notification", json!({"message": session}));
        let said = result["content"].to_string().contains("does not know which session called");
        assert_eq!(said, session == "two", "{result}");
    }
    let end = json!({"session_id": "one", "hook_event_name": "SessionEnd", "timestamp": "2026-11-16T10:00:00Z"});
    assert!(hub.run_with(&["hook", "gemini"], &end.to_string()).status.success());
    agent.call("send_notification", json!({"message": "only two is left"}));
    assert_eq!(conversations_notified(&hub), [json!("gemini:two"), Value::Null, json!("gemini:one")]);
}

/// Gemini runs in a shell of OpenCode, whose variables it does not give to its hooks.
#[test]
fn a_harness_in_the_shell_of_another_keeps_its_sessions() {
    let hub = hub_of_host("gemini");
    let mut server = hub.command(&["mcp", "--host", "gemini"]);
    let mut agent = Agent::initialized(server.env("OPENCODE_PID", "1"));
    let start = json!({"session_id": "one", "hook_event_name": "SessionStart", "timestamp": "2026-11-16T10:00:00Z"});
    assert!(hub.run_with(&["hook", "gemini"], &start.to_string()).status.success());
    agent.call("send_notification", json!({"message": "hello"}));
    assert_eq!(conversations_notified(&hub), [json!("gemini:one")]);
}
