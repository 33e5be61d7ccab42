//! People who have a page open: the memory of each, and how long a notification takes to their page.
//!
//! Each person is signed in with a session of their own and reads one stream. The time runs from sending the agent's tool call
//! to reading the toast on the stream, so it includes the commit.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::load::{HttpConnection, percentile, request};
use crate::measure::{RunMode, TableRow, grouped, print_section};
use crate::serving::ChildServer;

const JSON: &str = "application/json";
/// A toast that takes longer counts as lost.
const TOAST_TIMEOUT: Duration = Duration::from_secs(10);
/// How many people sign in at the same time.
const SIGN_INS: usize = 32;
/// How many toasts are sent, each to another person.
const TOASTS: usize = 2_000;

pub(crate) fn run(mode: RunMode) {
    print_section("people", "signed in, one stream each; from sending show_notification to reading the toast");
    let people = if mode == RunMode::Quick { 500 } else { 10_000 };
    let hub = ChildServer::hub();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    runtime.block_on(measure(&hub, people));
}

async fn measure(hub: &ChildServer, people: usize) {
    let sessions = sign_in_all(hub, people).await;
    let before = hub.memory();
    let (seen, mut toasts) = mpsc::unbounded_channel();
    let mut reading = Vec::with_capacity(people);
    for (number, token) in sessions.iter().enumerate() {
        let stream = open(hub.address, number, token).await;
        reading.push(tokio::spawn(report_toasts(stream, number, seen.clone())));
    }
    let with_all = hub.memory();
    print_memory(&format!("memory, {} people", grouped(people as f64)), with_all, before, people);
    let mut connection = HttpConnection::open(hub.address).await;
    let toasts_sent = TOASTS.min(people);
    let mut times = Vec::with_capacity(toasts_sent);
    for number in 0..toasts_sent {
        let sent = Instant::now();
        connection.ask(&show(number, &hub.token)).await;
        let toast = tokio::time::timeout(TOAST_TIMEOUT, toasts.recv()).await.expect("the toast comes");
        let (person, at): (usize, Instant) = toast.expect("the readers live");
        assert_eq!(person, number, "only the person it is for gets it");
        times.push(at - sent);
    }
    times.sort_unstable();
    let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
    TableRow::exact(
        format!("toast, {} people", grouped(people as f64)),
        format!("p99 {:.2} ms", p99.as_secs_f64() * 1e3),
    )
    .against(format!("p50 {:.2} ms", p50.as_secs_f64() * 1e3))
    .print();
    print_memory(&format!("memory, after {} toasts", grouped(toasts_sent as f64)), hub.memory(), before, people);
    reading.iter().for_each(|reader| reader.abort());
}

fn print_memory(what: &str, now: u64, before: u64, people: usize) {
    let each = now.saturating_sub(before) / people as u64;
    let megabytes = |bytes: u64| grouped(bytes as f64 / 1e6);
    TableRow::exact(what.to_owned(), format!("{} bytes each", grouped(each as f64)))
        .against(format!("{} MB, {} MB without them", megabytes(now), megabytes(before)))
        .print();
}

/// The tokens of the sessions of all people.
async fn sign_in_all(hub: &ChildServer, people: usize) -> Vec<String> {
    let signing = (0..SIGN_INS).map(|first| {
        let (address, admin) = (hub.address, hub.token.clone());
        tokio::spawn(async move {
            let mut connection = HttpConnection::open(address).await;
            let mut sessions = Vec::new();
            for number in (first..people).step_by(SIGN_INS) {
                sessions.push((number, sign_in(&mut connection, number, &admin).await));
            }
            sessions
        })
    });
    let signing: Vec<_> = signing.collect();
    let mut sessions = Vec::with_capacity(people);
    for one in signing {
        sessions.extend(one.await.expect("everyone can sign in"));
    }
    sessions.sort_unstable();
    sessions.into_iter().map(|(_, token)| token).collect()
}

/// Signs a person in as the hub's pages do; returns the token of the session.
async fn sign_in(connection: &mut HttpConnection, number: usize, admin: &str) -> String {
    let body = json!({"user_id": person(number)}).to_string();
    let made = connection.ask(&request("POST", "/v1/sign_in_codes", admin, JSON, body.as_bytes())).await;
    let body = json!({"code": text(made, "code")}).to_string();
    text(connection.ask(&request("POST", "/v1/sessions", admin, JSON, body.as_bytes())).await, "token")
}

fn text(answer: &[u8], field: &str) -> String {
    let answer: Value = serde_json::from_slice(answer).expect("the response is JSON");
    answer[field].as_str().expect("the response has the field").to_owned()
}

fn person(number: usize) -> String {
    format!("person-{number}")
}

/// Opens a person's stream and reads its first event, the unread count.
async fn open(address: SocketAddr, number: usize, token: &str) -> TcpStream {
    let path = format!("/v1/users/{}/stream", person(number));
    let ask = request("GET", &path, token, "text/plain", b"");
    let mut stream = HttpConnection::open(address).await.follow(&ask).await;
    let mut state = Vec::with_capacity(1024);
    while !state.windows(13).any(|text| text == b"event: unread") {
        assert!(stream.read_buf(&mut state).await.expect("the stream speaks") > 0, "the stream ended");
    }
    stream
}

/// Sends the person's number and the time for every toast on the stream.
async fn report_toasts(mut stream: TcpStream, number: usize, seen: mpsc::UnboundedSender<(usize, Instant)>) {
    let mut text = Vec::new();
    while stream.read_buf(&mut text).await.is_ok_and(|read| read > 0) {
        let at = Instant::now();
        while let Some(found) = text.windows(12).position(|word| word == b"event: toast") {
            text.drain(..found + 12);
            let _ = seen.send((number, at));
        }
    }
}

fn show(number: usize, token: &str) -> Vec<u8> {
    let body = json!({
        "arguments": {"message": "The build is green.", "severity": "success"},
        "context": {"user_id": person(number)},
    });
    request("POST", "/v1/tools/show_notification", token, JSON, body.to_string().as_bytes())
}
