use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::hub::Hub;
use crate::program::{assert_output, bellwire, text};

/// A server that is not a hub and sends the same bytes to every client.
fn other_server(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    address.to_string()
}

fn error(url: &str) -> String {
    let output = bellwire(&["trace", "x", "--token", "bw_1", "--url", url], "");
    assert_eq!(output.status.code(), Some(2));
    text(&output.stderr)
}

#[test]
fn every_way_not_to_reach_a_hub_has_its_own_words() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let page = other_server(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>");
    let closing = other_server(b"");
    let said = [
        error(&format!("http://{free}")),
        error("http://nowhere.invalid"),
        error(&format!("https://{page}")),
        error(&format!("http://{page}")),
        error(&format!("http://{closing}")),
        error("somewhere"),
        error("ftp://127.0.0.1"),
    ];
    assert_output!(said.concat());
}

#[test]
fn what_the_hub_refuses_is_said_in_its_words() {
    let hub = Hub::start();
    let runs: [&[&str]; 6] = [
        &["trace", "x", "--token", "bw_1"],
        &["trace", "x"],
        &["emit", "tool.call.failure", "-c", "chat"],
        &["emit", "Tool", "-c", "chat"],
        &["inject", "chat", "sometime", "call_1"],
        &["tail", "chat"],
    ];
    let said = runs.map(|arguments| {
        let output = hub.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        format!("$ bellwire {}\n{}", arguments.join(" "), text(&output.stderr))
    });
    assert_output!(said.concat());
}

#[test]
fn without_a_token_the_way_to_one_is_named() {
    assert_output!(text(&bellwire(&["trace", "x"], "").stderr));
}
