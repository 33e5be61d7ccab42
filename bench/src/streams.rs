//! Idle event streams: memory per stream, and the latency of a wake hint.
//!
//! The latency is measured from sending the publish to reading the hint, so it includes the commit. Every conversation has
//! one stream and gets fewer wakes than the limit per hour.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::hub::agent_token;
use crate::load::{HttpConnection, percentile, request};
use crate::measure::{RunMode, TableRow, grouped, print_section};
use crate::serving::ChildServer;

/// A hint that takes longer counts as lost.
const HINT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(mode: RunMode) {
    print_section(
        "streams",
        "server-sent events, one stream a conversation; from sending a publish to reading the hint",
    );
    let many = if mode == RunMode::Quick { 500 } else { 5_000 };
    for (clients, wakes) in [(200, 800), (many, 2_000.min(many))] {
        let hub = ChildServer::hub();
        let token = agent_token(&hub);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
        runtime.block_on(measure(&hub, &token, clients, wakes));
    }
}

async fn measure(hub: &ChildServer, token: &str, clients: usize, wakes: usize) {
    let mut connection = HttpConnection::open(hub.address).await;
    for number in 0..clients {
        connection.ask(&put(number, token)).await;
    }
    let before = hub.memory();
    let (seen, mut hints) = mpsc::unbounded_channel();
    let mut reading = Vec::with_capacity(clients);
    for number in 0..clients {
        let stream = open(hub.address, number, token).await;
        reading.push(tokio::spawn(report_wakes(stream, number, seen.clone())));
    }
    let each = hub.memory().saturating_sub(before) / clients as u64;
    TableRow::exact(
        format!("memory, {} idle clients", grouped(clients as f64)),
        format!("{} bytes each", grouped(each as f64)),
    )
    .print();
    let mut times = Vec::with_capacity(wakes);
    for number in 0..wakes {
        let sent = Instant::now();
        connection.ask(&finished(number % clients, number, token)).await;
        let hint = tokio::time::timeout(HINT_TIMEOUT, hints.recv()).await.expect("the hint comes");
        let (woken, at): (usize, Instant) = hint.expect("the readers live");
        assert_eq!(woken, number % clients, "only the addressed conversation is woken");
        times.push(at - sent);
    }
    times.sort_unstable();
    let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
    TableRow::exact(
        format!("wake-up, {} clients", grouped(clients as f64)),
        format!("p99 {:.2} ms", p99.as_secs_f64() * 1e3),
    )
    .against(format!("p50 {:.2} ms", p50.as_secs_f64() * 1e3))
    .aim("p99 at most 50 ms")
    .print();
    reading.iter().for_each(|reader| reader.abort());
}

/// Opens a stream and reads its first event, the current state.
async fn open(address: SocketAddr, number: usize, token: &str) -> TcpStream {
    let path = format!("/v1/conversations/stream-{number}/stream");
    let ask = request("GET", &path, token, "text/plain", b"");
    let mut stream = HttpConnection::open(address).await.follow(&ask).await;
    let mut state = Vec::with_capacity(1024);
    while !state.windows(14).any(|text| text == b"event: pending") {
        assert!(stream.read_buf(&mut state).await.expect("the stream speaks") > 0, "the stream ended");
    }
    stream
}

/// Sends the stream's number and the time for every wake hint it reads.
async fn report_wakes(mut stream: TcpStream, number: usize, seen: mpsc::UnboundedSender<(usize, Instant)>) {
    let mut text = Vec::new();
    while stream.read_buf(&mut text).await.is_ok_and(|read| read > 0) {
        let at = Instant::now();
        while let Some(found) = text.windows(11).position(|word| word == b"event: wake") {
            text.drain(..found + 11);
            let _ = seen.send((number, at));
        }
    }
}

fn put(number: usize, token: &str) -> Vec<u8> {
    let body = json!({"user_id": "bench"}).to_string();
    request("PUT", &format!("/v1/conversations/stream-{number}"), token, "application/json", body.as_bytes())
}

fn finished(conversation: usize, number: usize, token: &str) -> Vec<u8> {
    let body = json!({
        "type": "task.background.complete", "source": "ci", "severity": "info",
        "conversation_id": format!("stream-{conversation}"), "payload": {"task_id": format!("task-{number}")},
    });
    request("POST", "/v1/events", token, "application/json", body.to_string().as_bytes())
}
