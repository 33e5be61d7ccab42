//! Servers that are reached over streamable HTTP, for clients on standard input and output and for clients of HTTP.

use std::net::TcpStream;

use super::*;

/// A scripted server over HTTP.
struct Remote {
    child: Child,
    url: String,
}

impl Remote {
    fn start() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/wrap/http_server.py");
        let mut child = Command::new("python3").arg(path).stdout(Stdio::piped()).spawn().expect("python3 runs");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut port).expect("its port");
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }

    /// What it was asked so far.
    fn log(&self) -> Vec<Value> {
        let (_, body) = http(&self.url.replace("/mcp", "/log"), "GET", &[], "");
        serde_json::from_str(&body).expect("JSON")
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The head and the body of a response, as they came.
fn http(url: &str, method: &str, headers: &[(&str, &str)], body: &str) -> (String, String) {
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let host_line = if more.contains("host:") { String::new() } else { format!("host: {host}\r\n") };
    let request = format!(
        "{method} /{path} HTTP/1.1\r\n{host_line}{more}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(host).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it can be sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let body =
        if head.to_ascii_lowercase().contains("transfer-encoding: chunked") { unchunked(body) } else { body.into() };
    (head.to_owned(), body)
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

fn stdio(hub: &Hub, remote: &Remote) -> Wrapped {
    let mut command = hub.command(&["wrap", "--conversation", "chat", "--user", "ada", "--hub-timeout", "20000"]);
    command.args(["--url", &remote.url, "--header", "X-Key: ${KEY}"]).env("KEY", "s3cret");
    Wrapped::start(command)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"clientInfo":{"name":"x"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[test]
fn a_client_on_standard_input_reaches_a_server_over_http() {
    let (hub, remote) = (Hub::start(), Remote::start());
    let mut wrapped = stdio(&hub, &remote);
    wrapped.send(INITIALIZE);
    let hello = wrapped.line();
    assert!(hello.contains("2025-11-25") && hello.ends_with("}\n"), "one line: {hello:?}");
    wrapped.send(INITIALIZED);
    assert_eq!(
        wrapped.line(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/pushed\"}\n",
        "on the server's own stream"
    );
    for (id, tool) in (1..).zip(["json", "pretty", "sse", "resumed"]) {
        publish(&hub, &format!("build-{id}"));
        let answer = wrapped.call(id, tool, json!({}));
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("ok")), "{tool}");
        assert!(block(&answer).contains(&format!("build-{id}")), "{tool}: {answer}");
    }
    let answer = wrapped.call(9, "lines", json!({}));
    assert_eq!(answer["id"], 9);
    assert_eq!(wrapped.line(), "{\"method\":\"after\"}\n");
    let (rest, said, status) = wrapped.finish();
    assert_eq!((rest.as_str(), said.as_str(), status.code()), ("", "", Some(0)));
    let log = remote.log();
    let calls: Vec<&Value> = log.iter().filter(|asked| asked["body"].to_string().contains("tools/call")).collect();
    assert_eq!(calls.len(), 5);
    for asked in calls {
        let header = |name: &str| asked["headers"][name].as_str().unwrap_or_default();
        assert_eq!((header("mcp-session-id"), header("mcp-protocol-version")), ("s-1", "2025-11-25"), "{asked}");
        assert_eq!((header("x-key"), header("accept")), ("s3cret", "application/json, text/event-stream"), "{asked}");
    }
    assert!(log.iter().any(|asked| asked["headers"]["last-event-id"] == "7"), "the stream was resumed");
    let last = log.last().expect("it was asked");
    assert_eq!((&last["method"], &last["headers"]["mcp-session-id"]), (&json!("DELETE"), &json!("s-1")));
}

#[test]
fn a_request_that_gets_no_answer_over_http_gets_an_error_that_says_why() {
    let (hub, mut remote) = (Hub::start(), Remote::start());
    let mut wrapped = stdio(&hub, &remote);
    wrapped.send(INITIALIZE);
    wrapped.line();
    let mut error = |id, tool| wrapped.call(id, tool, json!({}))["error"]["message"].to_string();
    let refused = error(1, "refused");
    assert!(refused.contains("answers 401 Unauthorized; give it a token with --header"), "{refused}");
    let gone = error(2, "gone");
    assert!(gone.contains("it has ended the session"), "{gone}");
    assert_eq!(error(3, "wrong"), "\"bad\"", "an answer of the server is its own");
    let closed = error(4, "closed");
    let origin = remote.url.trim_end_matches("/mcp");
    assert!(
        closed.contains(origin) && !closed.contains("/mcp") && closed.contains("closed the stream before it answered"),
        "{closed}"
    );
    remote.child.kill().expect("it runs");
    remote.child.wait().expect("it ends");
    let away = error(5, "json");
    assert!(away.contains("cannot be reached"), "{away}");
    let (_, said, _) = wrapped.finish();
    assert!(!said.contains("s3cret"), "{said}");
    let failures: Vec<_> = reported(&hub).into_iter().filter(|(kind, _)| kind == "tool.call.failure").collect();
    assert_eq!(failures.len(), 5);
}

/// A local address in front of the server, and its URL.
fn listening(hub: &Hub, remote: &Remote) -> (Wrapped, String) {
    let mut command = hub.command(&["wrap", "--conversation", "chat", "--user", "ada", "--hub-timeout", "20000"]);
    command.args(["--url", &remote.url, "--header", "X-Key: k", "--listen", "127.0.0.1:0"]);
    let mut wrapped = Wrapped::start(command);
    let mut said = String::new();
    let stderr = wrapped.child.stderr.as_mut().expect("it has a standard error");
    // Byte by byte, so that nothing is read too far.
    while !said.ends_with('\n') {
        let mut byte = [0];
        stderr.read_exact(&mut byte).expect("it says where it listens");
        said.push(char::from(byte[0]));
    }
    let url = said.split_whitespace().next().expect("its address").to_owned();
    (wrapped, url)
}

const HEADERS: [(&str, &str); 3] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-session-id", "s-1"),
];

#[test]
fn an_http_client_gets_the_bytes_of_the_server_and_the_block() {
    let (hub, remote) = (Hub::start(), Remote::start());
    let (_wrapped, url) = listening(&hub, &remote);
    let (head, direct) = http(&remote.url, "POST", &HEADERS[..2], INITIALIZE);
    let (through_head, through) = http(&url, "POST", &HEADERS[..2], INITIALIZE);
    assert!(through_head.starts_with("HTTP/1.1 200") && through_head.contains("mcp-session-id: s-1"), "{through_head}");
    assert!(head.contains("Mcp-Session-Id: s-1"), "{head}");
    assert_eq!(direct, through);
    for (id, tool) in (1..).zip(["json", "pretty", "sse", "lines"]) {
        let request = call(id, tool, json!({}));
        let (_, before) = http(&url, "POST", &HEADERS, &request);
        let (_, direct) = http(&remote.url, "POST", &HEADERS, &request);
        assert_eq!(before, direct, "{tool}: without news, every byte is the server's");
        publish(&hub, &format!("build-{id}"));
        let (head, body) = http(&url, "POST", &HEADERS, &request);
        let (before, rest) = body
            .split_once(r#",{"type":"text","text":"Notifications"#)
            .unwrap_or_else(|| panic!("{tool}: {head} {body}"));
        let (news, after) = rest.split_once(r#"</notifications>"}"#).expect("its end");
        assert!(news.contains(&format!("build-{id}")), "{news}");
        assert_eq!(format!("{before}{after}"), direct, "{tool}");
    }
    publish(&hub, "build-9");
    http(&url, "POST", &HEADERS, &call(9, "resumed", json!({})));
    let (_, resumed) = http(&url, "GET", &[HEADERS[2], ("last-event-id", "7")], "");
    assert!(resumed.starts_with("id: 8\ndata: ") && resumed.contains("build-9"), "on another stream: {resumed}");
    let notes = hub.home.path().join(".local/state/bellwire/hooks/sessions/chat/main");
    let left: Vec<_> = std::fs::read_dir(notes).expect("a folder").flatten().map(|note| note.file_name()).collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new(), "what a client has read is not noted as lost");
}

#[test]
fn what_is_not_mcp_passes_an_http_listener_and_foreign_pages_do_not() {
    let (hub, mut remote) = (Hub::start(), Remote::start());
    let (_wrapped, url) = listening(&hub, &remote);
    let (_, other) = http(&url.replace("/mcp", "/.well-known/x?a=b"), "GET", &[], "");
    assert_eq!(other, "some text");
    let asked = remote.log().pop().expect("it was asked");
    assert_eq!((&asked["path"], &asked["headers"]["x-key"]), (&json!("/.well-known/x?a=b"), &json!("k")));
    for foreign in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let (head, _) = http(&url, "POST", &[foreign], "{}");
        assert!(head.starts_with("HTTP/1.1 403"), "{foreign:?}: {head}");
    }
    let (head, body) = http(&url, "POST", &HEADERS, &call(1, "refused", json!({})));
    assert!(head.starts_with("HTTP/1.1 401") && body == "who are you?", "{head} {body}");
    let long = call(2, "huge", json!({ "bytes": 40 * 1024 * 1024 }));
    let (_, body) = http(&url, "POST", &HEADERS, &long);
    assert!(body.len() > 40 * 1024 * 1024, "a body above the limit passes: {}", body.len());
    remote.child.kill().expect("it runs");
    remote.child.wait().expect("it ends");
    let (head, body) = http(&url, "POST", &HEADERS, &call(3, "json", json!({})));
    let error: Value = serde_json::from_str(&body).expect("JSON");
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    assert_eq!(error["id"], 3);
    assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains("cannot be reached")), "{error}");
}

#[test]
fn wrong_options_are_explained() {
    let home = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str]| {
        let output = crate::program::finish(command(home.path()).arg("wrap").args(arguments), "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    assert!(refused(&[]).contains("--url <URL>"), "{}", refused(&[]));
    assert!(refused(&["--listen", "127.0.0.1:1", "--", "cat"]).contains("--url"));
    let open = refused(&["--url", "http://127.0.0.1:1/mcp", "--listen", "0.0.0.0:8931"]);
    assert!(open.contains("only an address of this machine, such as 127.0.0.1:8931"), "{open}");
    assert!(refused(&["--url", "ftp://x"]).contains("'ftp://x' is not an address"));
    let unset = refused(&["--url", "http://127.0.0.1:1/mcp", "--header", "Authorization: Bearer ${NONE}"]);
    assert!(unset.contains("the variable NONE is not set"), "{unset}");
}
