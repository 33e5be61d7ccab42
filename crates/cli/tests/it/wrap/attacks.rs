//! Hostile and unusual traffic, and hubs that are away or slow.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::*;

/// `cat` says whatever the client says: both directions at once.
fn through_cat(input: &[u8]) -> Vec<u8> {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = without_hub(home.path());
    let piped = command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it has a standard input");
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input).expect("it is read"));
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("everything was written");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output.stdout
}

#[test]
fn every_byte_passes_in_both_directions() {
    let mut input = Vec::new();
    for line in [
        "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}".as_bytes(),
        b"{\"id\":1,\"result\":{\"content\":[]}}\r",
        b"\xff\xfe not UTF-8 \x80",
        b"",
        b"\0\0\0",
        b"[{\"id\":1},{\"id\":",
        b"{\"id\":1,\"id\":1e999,\"result\":{\"content\":[{\"a\":\"\\ud800\"}]}}",
        "\u{feff}{\"jsonrpc\": \"2.0\"}".as_bytes(),
        &vec![b'['; 300_000],
        &vec![b'x'; 5_000_000],
    ] {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    input.extend_from_slice(b"no newline at the end");
    assert!(through_cat(&input) == input, "the bytes differ");
}

#[test]
fn a_message_above_the_limit_passes_and_what_follows_is_read_again() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    publish(&hub, "build-7");
    let size = 40 * 1024 * 1024;
    let answer = wrapped.call(1, "huge", json!({ "bytes": size }));
    assert_eq!(answer["result"]["padding"].as_str().map(str::len), Some(size));
    assert_eq!(block(&answer), "", "it is too long to be read");
    let answer = wrapped.call(2, "huge", json!({ "bytes": 10 * 1024 * 1024 }));
    assert!(block(&answer).contains("build-7"), "ten megabytes are not");
    let memory = std::fs::read_to_string(format!("/proc/{}/status", wrapped.child.id())).unwrap_or_default();
    let peak =
        memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(|line| line.split_whitespace().next());
    let peak_kib: u64 = peak.and_then(|peak| peak.parse().ok()).unwrap_or_default();
    assert!(peak_kib < 400 * 1024, "{peak_kib} KiB");
}

#[test]
fn a_thousand_parallel_calls_are_answered_in_order_and_all_reported() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    publish(&hub, "build-7");
    let mut input = wrapped.input.take().expect("it is open");
    let sending = std::thread::spawn(move || {
        for id in 0..1000 {
            writeln!(input, "{}", call(id, "echo", json!({ "id": id }))).expect("it is read");
        }
        input
    });
    let answers: Vec<Value> = (0..1000).map(|_| serde_json::from_str(&wrapped.line()).expect("JSON")).collect();
    let ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids, (0..1000).collect::<Vec<u64>>());
    assert_eq!(answers.iter().filter(|answer| block(answer).contains("build-7")).count(), 1, "once");
    wrapped.input = Some(sending.join().expect("everything was sent"));
    let (_, said, _) = wrapped.finish();
    assert_eq!(said, "");
    assert_eq!(count_reported(&hub), 1000);
}

/// The number of tool events of the conversation.
fn count_reported(hub: &Hub) -> usize {
    let (mut count, mut cursor) = (0, None::<String>);
    loop {
        let mut arguments = vec!["events", "--json", "--conversation", "chat", "--user", "ada", "--limit", "100"];
        arguments.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]));
        let page = hub.json(&arguments);
        let items = page["items"].as_array().expect("a list");
        count += items.iter().filter(|event| event["type"] == "tool.call.success").count();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return count,
        }
    }
}

#[test]
fn a_client_that_does_not_read_does_not_keep_the_server_from_reading() {
    let hub = Hub::start();
    let mut wrapped = Wrapped::scripted(&hub);
    // Ten megabytes that are not read: more than all pipes hold.
    wrapped.send(&call(1, "noise", json!({ "lines": 10_000 })));
    for id in 2..200 {
        wrapped.send(&call(id, "echo", json!({ "padding": "z".repeat(10_000) })));
    }
    let lines: Vec<String> = (0..10_000 + 199).map(|_| wrapped.line()).collect();
    assert!(lines[9_999].contains("\"number\": 9999"), "{}", &lines[9_999][..100]);
    assert!(lines[10_198].contains("\"id\": 199"), "{}", lines[10_198]);
}

#[test]
fn a_killed_hub_costs_nothing_visible_and_is_asked_again_when_it_is_back() {
    let mut hub = Hub::start();
    let mut wrapped = Wrapped::scripted_with(&hub, &["--hub-timeout", "200"]);
    wrapped.news(1);
    hub.kill();
    let begun = Instant::now();
    for id in 2..52 {
        assert_eq!(wrapped.news(id), "");
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "fifty calls took {:?}", begun.elapsed());
    let hub = hub.restart();
    publish(&hub, "build-7");
    let begun = Instant::now();
    let mut id = 100;
    while !wrapped.news(id).contains("build-7") {
        assert!(begun.elapsed().as_secs() < 60, "the hub is back and not asked");
        std::thread::sleep(Duration::from_millis(50));
        id += 1;
    }
    let (_, said, _) = wrapped.finish();
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
}

#[test]
fn a_hub_that_never_answers_delays_one_result_and_then_none() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("its address"));
    let home = tempfile::tempdir().expect("a folder");
    let mut command = command(home.path());
    command.args(["wrap", "--conversation", "chat", "--hub", &url, "--token", "x", "--"]).args(script());
    let mut wrapped = Wrapped::start(command);
    // The server takes a while to start.
    wrapped.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
    wrapped.line();
    let begun = Instant::now();
    wrapped.news(1);
    let first = begun.elapsed();
    assert!(first >= Duration::from_millis(200) && first < Duration::from_secs(1), "{first:?}");
    let begun = Instant::now();
    for id in 2..22 {
        wrapped.news(id);
    }
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
    let (_, said, _) = wrapped.finish();
    assert!(said.contains("the hub does not answer in time"), "{said}");
}

#[test]
fn a_hub_that_answers_nonsense_changes_nothing() {
    let hub = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", hub.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for stream in hub.incoming().flatten() {
            let mut stream = stream;
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n[\"block\"]");
        }
    });
    let home = tempfile::tempdir().expect("a folder");
    let mut command = command(home.path());
    command.args(["wrap", "--conversation", "chat", "--hub", &url, "--token", "x", "--"]).args(script());
    let mut wrapped = Wrapped::start(command);
    assert_eq!(wrapped.call(1, "echo", json!({}))["result"]["content"], json!([{ "type": "text", "text": "ok" }]));
}
