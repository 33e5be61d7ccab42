//! The hub over HTTP: durable publishes, batches and injections per second.
//!
//! Two ceilings are measured in the same run, in alternating laps: an empty handler on the same HTTP stack (the limit of
//! HTTP), and raw inserts of the same events in groups of the hub's commit size (the limit of the disk).

use std::time::Duration;

use serde_json::{Value, json};

use crate::events::draft;
use crate::load::{self, HttpConnection, Lap, request};
use crate::measure::{RunMode, grouped, print_section};
use crate::mixes::UNIQUE;
use crate::rows;
use crate::serving::ChildServer;

/// A prime number, so that every conversation gets every type of event.
const CONVERSATIONS: usize = 1_999;
const REQUESTS: usize = 60_000;
const RAW_MAX: Duration = Duration::from_millis(1_500);
const JSON: &str = "application/json";

pub(crate) fn run(mode: RunMode) {
    let about = "durable over HTTP, 1 999 conversations, the bundled subscribers, server and load on the same cores";
    print_section("hub", about);
    let (hub, empty) = (ChildServer::hub(), ChildServer::empty());
    let mut bench = Bench { token: agent_token(&hub), hub, empty, sent: 0 };
    bench.publishes(8, mode.laps(5));
    bench.publishes(64, mode.laps(5));
    bench.batches(mode.laps(3));
    bench.injections(mode.laps(3));
}

struct Bench {
    hub: ChildServer,
    empty: ChildServer,
    token: String,
    /// The number of events built so far; it makes every event unique.
    sent: usize,
}

impl Bench {
    fn publishes(&mut self, connections: usize, laps: usize) {
        let (mut hub, mut empty, mut raw, mut group) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
        for _ in 0..laps {
            let requests: Vec<_> = (0..REQUESTS).map(|_| self.publish()).collect();
            empty.push(load::send(self.empty.address, connections, requests.clone()));
            let commits = self.hub.commits();
            let lap = load::send(self.hub.address, connections, requests);
            group = lap.answers as f64 / f64::from(self.hub.commits().wrapping_sub(commits).max(1));
            hub.push(lap);
            raw.push(rows::insert(&self.hub.database(), group.round() as usize, RAW_MAX));
        }
        let ceiling = print(&format!("empty handler, {connections} connections"), "req", empty, "");
        raw.sort_by(f64::total_cmp);
        let disk = raw.last().copied().unwrap_or(f64::NAN);
        println!(
            "  {:<44} {:>20} {:>20}",
            format!("raw inserts, {group:.1} rows a commit"),
            rate(disk, "rows"),
            rate(raw[raw.len() / 2], "rows")
        );
        let best = hub.iter().map(Lap::per_second).fold(0.0, f64::max);
        let against = format!("{:.2} of empty, {:.2} of raw, {group:.1} a commit", best / ceiling, best / disk);
        print(&format!("publish, {connections} connections"), "events", hub, &against);
    }

    fn publish(&mut self) -> Vec<u8> {
        let body = self.event().to_string();
        request("POST", "/v1/events", &self.token, JSON, body.as_bytes())
    }

    fn event(&mut self) -> Value {
        let number = self.sent;
        self.sent += 1;
        let mut event = draft(&UNIQUE.event(number));
        event["conversation_id"] = conversation(number).into();
        event
    }

    fn batches(&mut self, laps: usize) {
        let mut done = Vec::new();
        for _ in 0..laps {
            let requests = (0..100).map(|_| {
                let lines: String = (0..1000).map(|_| format!("{}\n", self.event())).collect();
                request("POST", "/v1/events", &self.token, "application/x-ndjson", lines.as_bytes())
            });
            let requests = requests.collect();
            let mut lap = load::send(self.hub.address, 4, requests);
            lap.answers *= 1000;
            done.push(lap);
        }
        print("NDJSON, 1000 events a call, 4 connections", "events", done, "");
    }

    fn injections(&mut self, laps: usize) {
        let mut done = Vec::new();
        for _ in 0..laps {
            let requests = (0..REQUESTS / 2).map(|_| {
                self.sent += 1;
                let number = self.sent;
                let body = json!({
                    "point": "after_tool", "call_id": format!("call-{number}"), "tool_result": "",
                    "observed": {"tool_name": format!("tool_{number}"), "outcome": "failure", "error_type": "timeout"},
                });
                let path = format!("/v1/conversations/{}/inject", conversation(number));
                request("POST", &path, &self.token, JSON, body.to_string().as_bytes())
            });
            let requests = requests.collect();
            done.push(load::send(self.hub.address, 64, requests));
        }
        print("inject after a failed tool, 64 connections", "calls", done, "");
    }
}

fn conversation(number: usize) -> String {
    format!("conversation-{}", number % CONVERSATIONS)
}

/// Creates an agent token bound to one person, as a harness uses it.
pub(crate) fn agent_token(hub: &ChildServer) -> String {
    let body = json!({"scope": "agent", "user_id": "bench", "origin": "bench"}).to_string();
    let ask = request("POST", "/v1/tokens", &hub.token, JSON, body.as_bytes());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    runtime.block_on(async {
        let mut connection = HttpConnection::open(hub.address).await;
        let created: Value = serde_json::from_slice(connection.ask(&ask).await).expect("the response is JSON");
        created["token"].as_str().expect("the response contains the secret").to_owned()
    })
}

/// Prints the best and the median lap; returns the best rate.
pub(crate) fn print(what: &str, unit: &str, mut laps: Vec<Lap>, against: &str) -> f64 {
    laps.sort_by(|one, other| one.per_second().total_cmp(&other.per_second()));
    let best = laps.last().expect("there is a lap");
    let (p50, p99) = (best.percentile(0.5), best.percentile(0.99));
    println!(
        "  {what:<44} {:>20} {:>20}   {:<44} p50 {:.2} ms, p99 {:.2} ms",
        rate(best.per_second(), unit),
        rate(laps[laps.len() / 2].per_second(), unit),
        against,
        p50.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
    );
    best.per_second()
}

pub(crate) fn rate(per_second: f64, unit: &str) -> String {
    format!("{} {unit}/s", grouped(per_second))
}
