//! A real hub with a hostile client: memory and file descriptors stay within bounds, and other clients are served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::hub::Hub;

const MIB: usize = 1024 * 1024;
/// Nearly the maximum size of a body.
const LARGE: usize = 14 * MIB;
const LONG: Duration = Duration::from_secs(60);

/// A value of `/proc/…/status` of the hub, in bytes.
fn memory(hub: &Hub, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.id())).expect("the hub runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
    let kibibytes = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<usize>();
    kibibytes.expect("a number") * 1024
}

/// The peak memory of the hub while `happens` runs, minus its memory before.
fn growth(hub: &Hub, happens: impl FnOnce()) -> usize {
    // Resets the kernel's record of the peak.
    std::fs::write(format!("/proc/{}/clear_refs", hub.id()), "5").expect("the hub is ours");
    let before = memory(hub, "VmRSS");
    happens();
    memory(hub, "VmHWM").saturating_sub(before)
}

fn connect(hub: &Hub) -> TcpStream {
    let stream = TcpStream::connect(hub.url.trim_start_matches("http://")).expect("the hub listens");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    stream.set_write_timeout(Some(LONG)).expect("a timeout");
    stream
}

fn head(path: &str, token: &str, kind: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

fn post(hub: &Hub, path: &str, token: &str, kind: &str, body: &[u8]) -> String {
    let mut stream = connect(hub);
    stream.write_all(head(path, token, kind, body.len()).as_bytes()).expect("the head is taken");
    // The hub may refuse it before it has read all of it.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn event(payload: &str) -> String {
    format!(r#"{{"type":"cli.event","source":"shell","severity":"info","conversation_id":"chat","payload":{payload}}}"#)
}

/// A JSON list of this value, about `bytes` long.
fn list(value: &str, bytes: usize) -> String {
    let values = vec![value; bytes / (value.len() + 1)];
    format!("[{}]", values.join(","))
}

#[test]
fn a_refused_body_costs_a_few_times_its_size() {
    let hub = Hub::start();
    let agent = hub.agent_token();
    let zeros = list("0", LARGE);
    let dense = event(&format!(r#"{{"a":{}}}"#, list("0", 65_000)));
    let too_dense = format!("[{}]", vec![dense.as_str(); 200].join(","));
    let dense = event(&format!(r#"{{"a":{}}}"#, list("1000000000000000", 65_000)));
    let last_is_wrong = format!("[{},{}]", vec![dense.as_str(); 200].join(","), event("7"));
    let call = r#""point":"after_tool","call_id":"c""#;
    let observed = format!(r#"{{{call},"observed":{{"tool_name":"t","outcome":"success","arguments":{zeros}}}}}"#);
    let (json, inject) = ("application/json", "/v1/conversations/chat/inject");
    let tool = format!(r#"{{"arguments":{{"message":{zeros}}}}}"#);
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{zeros}}}}}}}"#
    );
    let bodies: [(&str, &str, &str, String); 11] = [
        ("numbers", "/v1/events", json, zeros.clone()),
        ("a payload of numbers", "/v1/events", json, event(&format!(r#"{{"a":{zeros}}}"#))),
        ("many payloads of numbers", "/v1/events", json, too_dense),
        ("the last of many large events", "/v1/events", json, last_is_wrong),
        ("lines", "/v1/events", "application/x-ndjson", "0\n".repeat(LARGE / 2)),
        ("CloudEvents", "/v1/events", "application/cloudevents-batch+json", list("{}", LARGE)),
        ("one CloudEvent", "/v1/events", "application/cloudevents+json", format!(r#"{{"data":{zeros}}}"#)),
        ("a tool's arguments, observed", inject, json, observed),
        ("unseen calls", inject, json, format!(r#"{{{call},"unseen":{}}}"#, list("\"a\"", LARGE))),
        ("a tool's arguments", "/v1/tools/notify_self", json, tool),
        ("a message of MCP", "/mcp", json, message),
    ];
    for (what, path, kind, body) in bodies {
        let mut answer = String::new();
        let grown = growth(&hub, || answer = post(&hub, path, &agent, kind, body.as_bytes()));
        let refused = answer.starts_with("HTTP/1.1 4");
        assert!(refused, "{what}: {}", answer.chars().take(300).collect::<String>());
        assert!(grown < 4 * body.len() + 8 * MIB, "{what}: {} MiB for {} MiB", grown / MIB, body.len() / MIB);
    }
}

#[test]
fn a_body_over_the_publishing_limit_costs_a_few_times_its_size() {
    let limits = "PUBLISH_PER_SECOND=1 BELLWIRE_LIMITS_PUBLISH_BURST=250 BELLWIRE_LIMITS_BATCH_EVENTS=250";
    let hub = Hub::start_under(&format!("export BELLWIRE_LIMITS_{limits}"));
    let agent = hub.agent_token();
    let call = |body: &str| post(&hub, "/v1/events", &agent, "application/json", body.as_bytes());
    // An injection opens the conversation.
    for chat in ["a", "b"] {
        let body = br#"{"point":"after_tool","call_id":"c"}"#;
        let answer = post(&hub, &format!("/v1/conversations/{chat}/inject"), &agent, "application/json", body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let dense = event(&format!(r#"{{"a":{}}}"#, list("1000000000000000", 65_000)));
    let to_chat = format!("[{}]", vec![dense.as_str(); 200].join(","));
    let to_person = to_chat.replace(r#""conversation_id":"chat""#, r#""user_id":"ada""#);
    let refused = |status: &str, body: &str| {
        let mut answer = String::new();
        let grown = growth(&hub, || answer = call(body));
        assert!(answer.starts_with(status), "{}", answer.chars().take(600).collect::<String>());
        assert!(grown < 4 * body.len() + 8 * MIB, "{status}: {} MiB for {} MiB", grown / MIB, body.len() / MIB);
        answer
    };
    let answer = refused("HTTP/1.1 422", &to_person);
    assert!(answer.contains("too_costly") && answer.contains("costs 400"), "{answer}");
    let answer = call(&format!("[{}]", vec![event("{}"); 200].join(",")));
    assert!(answer.starts_with("HTTP/1.1 202"), "what is refused costs nothing: {answer}");
    refused("HTTP/1.1 429", &to_chat);
}

#[test]
fn an_accepted_body_costs_a_few_times_its_size() {
    let hub = Hub::start();
    let agent = hub.agent_token();
    // As many values as a batch may have, nearly.
    let dense = event(&format!(r#"{{"a":{}}}"#, list("0", 65_000)));
    let sparse = event(&format!(r#"{{"a":"{}"}}"#, "x".repeat(65_000)));
    let events: Vec<&str> = vec![dense.as_str(); 31].into_iter().chain(vec![sparse.as_str(); 180]).collect();
    let body = format!("[{}]", events.join(","));
    let mut answer = String::new();
    let grown = growth(&hub, || answer = post(&hub, "/v1/events", &agent, "application/json", body.as_bytes()));
    assert!(answer.starts_with("HTTP/1.1 202"), "{}", answer.chars().take(300).collect::<String>());
    assert!(grown < 12 * body.len(), "{} MiB for {} MiB", grown / MIB, body.len() / MIB);
}

#[test]
fn half_sent_bodies_of_one_token_take_a_bounded_share_of_memory() {
    let hub = Hub::start();
    let agent = hub.agent_token();
    let half = vec![b' '; LARGE];
    let mut held = Vec::new();
    let grown = growth(&hub, || {
        for _ in 0..60 {
            let mut stream = connect(&hub);
            stream.write_all(head("/v1/events", &agent, "application/json", LARGE + 1).as_bytes()).expect("it is read");
            // Bytes above the token's limit are refused during sending.
            let _ = stream.write_all(&half);
            held.push(stream);
        }
        let other = post(&hub, "/v1/events", &hub.agent_token_of("bob"), "application/json", event("{}").as_bytes());
        assert!(other.starts_with("HTTP/1.1 202"), "others are not hurt: {other}");
    });
    assert!(grown < 100 * MIB, "{} MiB", grown / MIB);
}

/// The soft limit of the hub's file descriptors.
fn descriptors_max(hub: &Hub) -> usize {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", hub.id())).expect("the hub runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the kernel tells it");
    line.split_whitespace().nth(3).and_then(|soft| soft.parse().ok()).expect("a number")
}

#[test]
fn the_soft_limit_of_file_descriptors_is_raised_at_start() {
    let hub = Hub::start_under("ulimit -Sn 200; ulimit -Hn 1500");
    assert_eq!(descriptors_max(&hub), 1500);
    assert!(hub.said.contains("file descriptors") && hub.said.contains("limits.streams"), "it warns: {}", hub.said);
}

#[test]
fn a_thousand_idle_connections_do_not_shut_others_out() {
    let hub = Hub::start_under("ulimit -n 300");
    let mut idle = Vec::new();
    for _ in 0..500 {
        // Connections that are not accepted yet wait in the kernel.
        idle.push(connect(&hub));
    }
    let started = Instant::now();
    let answer = loop {
        let mut stream = connect(&hub);
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        // A connection that waited for long may be closed to free its slot.
        if stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && !answer.is_empty()
        {
            break answer;
        }
        assert!(started.elapsed() < LONG, "the hub does not answer");
    };
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let closed = answer.lines().find_map(|line| line.strip_prefix("bellwire_connections_closed_early_total "));
    assert!(closed.is_some_and(|count| count.parse::<f64>().is_ok_and(|count| count >= 100.0)), "{closed:?}");
    drop(idle);
    let (_, rest) = hub.stop();
    assert!(rest.contains("too many connections"), "it is in the log: {rest}");
}

/// Sets the soft limit of the hub's file descriptors.
#[cfg(target_os = "linux")]
fn set_descriptors_max(hub: &Hub, soft: u64) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let process = Pid::from_raw(i32::try_from(hub.id()).expect("a process id")).expect("a process id");
    // The hub was started with the limits of this process.
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(Some(process), Resource::Nofile, Rlimit { current: Some(soft), maximum }).expect("the hub is ours");
}

#[cfg(target_os = "linux")]
#[test]
fn connections_that_cannot_be_accepted_are_counted_and_logged_and_accepted_later() {
    let mut hub = Hub::start();
    let before = descriptors_max(&hub) as u64;
    set_descriptors_max(&hub, 3);
    let mut stream = connect(&hub);
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("the kernel takes it");
    let logged = hub.read_until("too many connections");
    assert!(logged.contains("Too many open files"), "{logged}");
    set_descriptors_max(&hub, before);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the hub answers when it can");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let failed = answer.lines().find_map(|line| line.strip_prefix("bellwire_connections_failed_total "));
    assert!(failed.is_some_and(|count| count.parse::<f64>().is_ok_and(|count| count >= 1.0)), "{failed:?}");
    let (_, rest) = hub.stop();
    assert!(!rest.contains("ERROR"), "{rest}");
}
