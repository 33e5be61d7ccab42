//! The server ends, the client ends, or one of them is killed.

use super::*;
use crate::hub::terminate;

fn error_of(line: &str) -> (Value, String) {
    let error: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"));
    (error["id"].clone(), error["error"]["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_server_that_ends_answers_its_open_requests_with_an_error_and_gives_its_exit_code() {
    let hub = Hub::start();
    for (tool, arguments, code, status) in
        [("exit", json!({ "code": 3 }), 3, "exit status: 3"), ("kill", json!({}), 137, "signal: 9 (SIGKILL)")]
    {
        let mut wrapped = Wrapped::scripted(&hub);
        wrapped.send(r#"{"jsonrpc":"2.0","id":"a\u0062","method":"hang"}"#);
        wrapped.send(&call(1, tool, arguments));
        let (mut one, mut other) = (wrapped.line(), wrapped.line());
        if other.contains("u0062") {
            std::mem::swap(&mut one, &mut other);
        }
        assert!(one.contains(r#""id":"a\u0062","error""#), "the id is that of the client: {one}");
        let (id, message) = error_of(&other);
        assert_eq!(id, 1);
        assert!(message.starts_with("the MCP server 'python3' ended") && message.contains(status), "{message}");
        let (rest, said, exited) = wrapped.finish();
        assert_eq!((rest.as_str(), said.as_str(), exited.code()), ("", "", Some(code)));
    }
    let pair = |tool: &str| ("tool.call.failure".to_owned(), tool.to_owned());
    assert_eq!(reported(&hub), [pair("exit"), pair("kill")]);
}

#[test]
fn a_client_that_leaves_ends_the_server_also_one_that_ignores_it() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    let pid = wrapped.call(1, "stubborn", json!({}))["result"]["pid"].as_u64().expect("its pid");
    let begun = std::time::Instant::now();
    let (_, _, status) = wrapped.finish();
    assert_eq!(status.code(), Some(137), "after the end of its input and SIGTERM, SIGKILL");
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_signal_reaches_the_server() {
    let hub = Hub::start();
    for (signal, code) in [("-TERM", 143), ("-HUP", 129)] {
        let mut wrapped = Wrapped::scripted(&hub);
        assert_eq!(wrapped.news(1), "");
        terminate(&wrapped.child, signal);
        assert_eq!(wrapped.child.wait().expect("it ends").code(), Some(code));
    }
}

#[test]
fn a_killed_wrap_leaves_no_server_behind() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    let server = wrapped.call(1, "echo", json!({}))["result"]["pid"].to_string();
    assert!(is_running(&server));
    wrapped.child.kill().expect("it runs");
    wrapped.child.wait().expect("it ends");
    let begun = std::time::Instant::now();
    while is_running(&server) {
        assert!(begun.elapsed().as_secs() < 30, "the server {server} has lost its input and still runs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A zombie has ended: only its parent has not looked.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

#[test]
fn what_a_dead_server_left_behind_is_ended() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    let pid = wrapped.call(1, "leave", json!({}))["result"]["pid"].to_string();
    let (_, _, status) = wrapped.finish();
    assert_eq!(status.code(), Some(0));
    let begun = std::time::Instant::now();
    while is_running(&pid) {
        assert!(begun.elapsed().as_secs() < 30, "{pid} still runs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_command_that_does_not_exist_is_an_error_for_people() {
    let home = tempfile::tempdir().expect("a folder");
    let output = crate::program::finish(without_hub(home.path()).arg("no-such-server"), "");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("'no-such-server' cannot be started: No such file"),
        "{}",
        text(&output.stderr)
    );
}
