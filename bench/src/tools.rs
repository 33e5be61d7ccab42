//! `send_notification` calls over HTTP. The response to each is sent after its inbox row is committed.
//!
//! The ceiling is an empty handler on the same HTTP stack, measured in alternating laps.

use serde_json::json;

use crate::hub::print;
use crate::load::{self, Lap, request};
use crate::measure::{RunMode, print_section};
use crate::serving::ChildServer;

/// A prime number, as for the conversations of the `hub` section.
const PEOPLE: usize = 1_999;
const REQUESTS: usize = 60_000;

pub(crate) fn run(mode: RunMode) {
    print_section("tools", "durable send_notification over HTTP, 1 999 people, server and load on the same cores");
    let hub = ChildServer::hub_with(&[("BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR", "10000")]);
    let empty = ChildServer::empty();
    let mut sent = 0;
    for connections in [8, 64] {
        let (mut calls, mut ceiling, mut group) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..mode.laps(5) {
            let requests: Vec<_> = (sent..sent + REQUESTS).map(|number| call(&hub.token, number)).collect();
            sent += REQUESTS;
            let bare = requests.iter().map(|one| to_empty_route(one)).collect();
            ceiling.push(load::send(empty.address, connections, bare));
            let commits = hub.commits();
            let lap = load::send(hub.address, connections, requests);
            group = lap.answers as f64 / f64::from(hub.commits().wrapping_sub(commits).max(1));
            calls.push(lap);
        }
        let most = print(&format!("empty handler, {connections} connections"), "req", ceiling, "");
        let best = calls.iter().map(Lap::per_second).fold(0.0, f64::max);
        let against = format!("{:.2} of empty, {group:.1} a commit", best / most);
        print(&format!("send_notification, {connections} connections"), "calls", calls, &against);
    }
}

fn call(token: &str, number: usize) -> Vec<u8> {
    let body = json!({
        "arguments": {"message": format!("Build {number} is green; deploy it when you like."), "type": "info"},
        "context": {"user_id": format!("person-{}", number % PEOPLE)},
    });
    request("POST", "/v1/tools/send_notification", token, "application/json", body.to_string().as_bytes())
}

/// The same request with the path that the empty server serves.
fn to_empty_route(request: &[u8]) -> Vec<u8> {
    let line_end = request.iter().position(|byte| *byte == b'\r').unwrap_or(0);
    [b"POST /v1/events HTTP/1.1".as_slice(), &request[line_end..]].concat()
}
