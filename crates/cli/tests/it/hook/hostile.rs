//! Hooks without a hub, with a strange one, and with strange input.

use super::*;

#[test]
fn without_a_hub_a_hook_is_silent_and_quick() {
    let agent = Agent::start("claude-code");
    let input = after_tool("s1", "toolu_1").to_string();
    let (home, _) = agent.hub.stop();
    for file in ["url = \"http://127.0.0.1:9\"\ntoken = \"x\"\nuser = \"me\"\n", "no toml", ""] {
        std::fs::write(home.path().join(".config/bellwire/hosts/claude-code.toml"), file).expect("it can be written");
        let output = finish(command(home.path()).args(["hook", "claude-code"]), &input);
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
    // A hub that accepts and never answers costs `timeout_ms`; the rest is the time in which a process starts here.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("its address"));
    let file = format!("url = \"{url}\"\ntoken = \"x\"\nuser = \"me\"\ntimeout_ms = 200\n");
    std::fs::write(home.path().join(".config/bellwire/hosts/claude-code.toml"), file).expect("it can be written");
    let begun = Instant::now();
    let output = finish(command(home.path()).args(["hook", "claude-code"]), &input);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for strange in ["", "no json", "[]", "{\"hook_event_name\": 7}"] {
        let output = finish(command(home.path()).args(["hook", "claude-code"]), strange);
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
}

/// A harness takes exit code 2 for a decision: it blocks the prompt, or the end of the turn.
#[test]
fn whatever_it_is_called_with_a_hook_never_fails() {
    let home = tempfile::tempdir().expect("a folder");
    let calls: [&[&str]; 5] = [
        &["hook"],
        &["hook", "no-such-harness"],
        &["hook", "codex", "--new-flag"],
        &["hook", "codex", "a", "b"],
        &["hook", ""],
    ];
    for arguments in calls {
        let output = finish(command(home.path()).args(arguments), "{}");
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{arguments:?} {output:?}"
        );
    }
}

#[test]
fn an_input_that_never_ends_does_not_hold_the_agent() {
    let home = tempfile::tempdir().expect("a folder");
    let mut child = command(home.path()).args(["hook", "codex"]).stdin(Stdio::piped()).spawn().expect("it starts");
    // It stays open.
    let _input = child.stdin.take();
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn results_that_nobody_could_read_do_not_silence_the_agent() {
    let agent = Agent::start("claude-code");
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let long = format!("\"{}\"", "x".repeat(34 * 1024 * 1024));
    for (number, result) in [r#""cut \ud83d""#, "1e999", &deep, &long].into_iter().enumerate() {
        agent.background("s1", &format!("build-{number}"));
        let input = after_tool("s1", &format!("toolu_{number}")).to_string();
        let input = input.replace(r#"{"stdout":"ok"}"#, result);
        assert!(input.contains(result), "it is in the input");
        let told = text(&agent.hub.run_with(&["hook", "claude-code"], &input).stdout);
        assert!(told.contains(&format!("build-{number}")), "{told}");
    }
    let mut nested = after_tool("s1", "toolu_deep");
    nested["tool_input"] = (0..100).fold(json!(1), |inner, _| json!([inner]));
    nested["duration_ms"] = json!(u64::MAX);
    agent.background("s1", "build-deep");
    assert!(agent.context(&nested).contains("build-deep"), "the hub accepts what is reported");
    agent.background("s1", "build-id");
    assert!(agent.context(&after_tool("s1", &"i".repeat(300))).contains("build-id"), "and the id of the call");
}

#[test]
fn a_call_that_the_hub_refuses_is_not_noted() {
    let agent = Agent::start("claude-code");
    let file = agent.hub.home.path().join(".config/bellwire/hosts/claude-code.toml");
    let valid = std::fs::read_to_string(&file).expect("the host's file");
    std::fs::write(&file, valid.replace("token = \"", "token = \"no")).expect("it can be written");
    assert_eq!(agent.context(&after_tool("s1", "toolu_1")), "");
    let notes = agent.notes().join("claude-code%3As1/main");
    assert_eq!(std::fs::read_dir(notes).expect("the folder").count(), 0);
}
