//! `bellwire erase`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::hub::Hub;
use crate::program::{assert_output, bellwire, shown, text};

fn hub_with_ada() -> Hub {
    let hub = Hub::start();
    let agent = hub.agent_token();
    let opened = hub.run(&["inject", "chat", "turn_start", "turn_1", "--token", &agent]);
    assert!(opened.status.success(), "{}", shown(&opened));
    hub.tool(&agent, "send_notification", &serde_json::json!({ "message": "Buy milk" }));
    hub
}

fn has_data(hub: &Hub) -> bool {
    hub.json(&["conversations", "--user", "ada", "--json"])["items"][0].is_object()
}

#[test]
fn without_a_terminal_a_person_is_erased_only_on_request() {
    let hub = hub_with_ada();
    let own = hub.user_token_of("ada");
    let refused = hub.run_with(&["erase", "ada"], "ada\n");
    assert!(has_data(&hub), "{}", shown(&refused));
    let mistyped = hub.run(&["erase", "adda", "--yes"]);
    let erased = hub.run(&["erase", "ada", "--yes"]);
    assert!(!has_data(&hub), "{}", shown(&erased));
    let token = hub.run(&["inbox", "--token", &own]);
    assert_eq!(token.status.code(), Some(2), "the person's token is gone: {}", shown(&token));
    assert_output!([&refused, &mistyped, &erased].map(shown).join("\n"));
}

#[test]
fn a_person_erases_themselves_and_nobody_else() {
    let hub = hub_with_ada();
    let bob = hub.user_token_of("bob");
    let foreign = hub.run(&["erase", "ada", "--yes", "--token", &bob]);
    assert_eq!(foreign.status.code(), Some(2), "{}", shown(&foreign));
    assert!(has_data(&hub));
    let own = hub.run(&["erase", "ada", "--yes", "--token", &hub.user_token_of("ada")]);
    assert!(own.status.success() && !has_data(&hub), "{}", shown(&own));
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_the_id_is_asked_for() {
    let hub = hub_with_ada();
    let erase = |typed: &str| {
        let (_keyboard, terminal) = crate::program::terminal(typed);
        hub.command(&["erase", "ada"]).stdin(terminal).output().expect("it runs")
    };
    let declined = erase("y\n");
    assert_eq!(declined.status.code(), Some(2), "{}", shown(&declined));
    assert!(has_data(&hub), "{}", shown(&declined));
    let confirmed = erase("ada\n");
    assert!(confirmed.status.success() && !has_data(&hub), "{}", shown(&confirmed));
    assert_output!([&declined, &confirmed].map(shown).join("\n"));
}

/// A hub that needs some time: it answers 503 to the first two requests to erase, and then like `last`. Requests to read
/// are answered like `read`.
fn slow_hub(read: &'static str, last: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut deletes = 0;
        for stream in listener.incoming().flatten() {
            answer(stream, &mut deletes, (read, last));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, deletes: &mut usize, (read, last): (&str, &str)) {
    let mut request = [0; 4096];
    let length = stream.read(&mut request).unwrap_or(0);
    let is_delete = request[..length].starts_with(b"DELETE /v1/users/ada ");
    *deletes += usize::from(is_delete);
    let (head, body) = match (is_delete, *deletes) {
        (false, _) if read.starts_with("409") => (read, r#"{"error":{"code":"conflict","message":"being erased"}}"#),
        (false, _) => (read, r#"{"items":[],"next_cursor":null}"#),
        (true, 1 | 2) => {
            ("503 Service Unavailable\r\nretry-after: 0", r#"{"error":{"code":"try_again","message":"under way"}}"#)
        }
        (true, _) if last.starts_with("204") => (last, ""),
        (true, _) => (last, r#"{"error":{"code":"gone","message":"gone"}}"#),
    };
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let _ = stream.write_all(format!("HTTP/1.1 {head}\r\n{length}connection: close\r\n\r\n{body}").as_bytes());
}

#[test]
fn a_long_erasure_is_followed_to_its_end() {
    for (last, code) in [
        ("204 No Content", 0),
        ("404 Not Found", 0),
        ("401 Unauthorized", 0),
        ("403 Forbidden", 2),
        ("500 Internal Server Error", 2),
    ] {
        let url = slow_hub("200 OK", last);
        let output = bellwire(&["erase", "ada", "--yes", "--url", &url, "--token", "bw_1"], "");
        assert_eq!(output.status.code(), Some(code), "{last}: {}", shown(&output));
        let waited = text(&output.stderr).matches("the erasure is under way").count();
        assert_eq!(waited, 2, "{last}: {}", shown(&output));
    }
}

#[test]
fn an_erasure_that_has_begun_is_followed_without_a_question() {
    let url = slow_hub("409 Conflict", "204 No Content");
    let output = bellwire(&["erase", "ada", "--yes", "--url", &url, "--token", "bw_1"], "");
    assert!(output.status.success(), "{}", shown(&output));
    assert!(text(&output.stderr).starts_with("the erasure of ada has begun already\n"), "{}", shown(&output));
}
