//! Refused calls per second above the hourly limit, by what refuses them.
//!
//! Three hubs in alternating laps: one with an unreachable Redis, so that the database refuses every call; one that caches
//! refusals in Redis; one that caches them in its process.

use serde_json::json;

use crate::hub::print;
use crate::load::{self, HttpConnection, Lap, request};
use crate::measure::{RunMode, print_section};
use crate::redis_server::RedisServer;
use crate::serving::ChildServer;

const PEOPLE: usize = 100;
const REQUESTS: usize = 120_000;
/// A loopback port on which nothing listens.
const UNREACHABLE_REDIS: &str = "redis://127.0.0.1:1";

pub(crate) fn run(mode: RunMode) {
    print_section("refusals", "calls over the hourly limit of 100 people; the database's own rate is the measure");
    let redis = RedisServer::start();
    let one = ("BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR", "1");
    let hubs = [
        ("the database answers", ChildServer::hub_with(&[one, ("BELLWIRE_REDIS_URL", UNREACHABLE_REDIS)])),
        ("Redis answers", ChildServer::hub_with(&[one, ("BELLWIRE_REDIS_URL", &redis.url())])),
        ("the process answers", ChildServer::hub_with(&[one])),
    ];
    hubs.iter().for_each(|(_, hub)| use_up_quota(hub));
    for connections in [8, 64] {
        let mut laps: [Vec<Lap>; 3] = Default::default();
        for _ in 0..mode.laps(5) {
            for ((_, hub), laps) in hubs.iter().zip(&mut laps) {
                let requests = (0..REQUESTS).map(|number| call(&hub.token, number)).collect();
                laps.push(load::send(hub.address, connections, requests));
            }
        }
        report(&hubs, laps, connections, "");
    }
    measure_beside_work(&hubs, mode);
}

/// The same with accepted calls in parallel: does the storm of refused calls slow them down?
fn measure_beside_work(hubs: &[(&str, ChildServer); 3], mode: RunMode) {
    let (mut refused, mut accepted): ([Vec<Lap>; 3], [Vec<Lap>; 3]) = Default::default();
    let mut sent = 0;
    for _ in 0..mode.laps(5) {
        for (at, (_, hub)) in hubs.iter().enumerate() {
            let storm = (0..REQUESTS).map(|number| call(&hub.token, number)).collect();
            let work =
                (sent..sent + REQUESTS).map(|number| call_for(&hub.token, &format!("somebody-{number}"))).collect();
            sent += REQUESTS;
            std::thread::scope(|scope| {
                let working = scope.spawn(|| load::send(hub.address, 8, work));
                refused[at].push(load::send(hub.address, 8, storm));
                accepted[at].push(working.join().expect("the work is done"));
            });
        }
    }
    report(hubs, refused, 8, " beside work");
    report(hubs, accepted, 8, ": the work itself");
}

fn report(hubs: &[(&str, ChildServer); 3], laps: [Vec<Lap>; 3], connections: usize, how: &str) {
    let alone = laps[0].iter().map(Lap::per_second).fold(0.0, f64::max);
    for ((what, _), laps) in hubs.iter().zip(laps) {
        let best = laps.iter().map(Lap::per_second).fold(0.0, f64::max);
        let against = format!("{:.2} of the database", best / alone);
        print(&format!("{what}, {connections} connections{how}"), "calls", laps, &against);
    }
}

/// Uses up everyone's hourly quota and checks that the next call is refused.
fn use_up_quota(hub: &ChildServer) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    runtime.block_on(async {
        let mut connection = HttpConnection::open(hub.address).await;
        for number in 0..PEOPLE * 2 {
            let answer = String::from_utf8_lossy(connection.ask(&call(&hub.token, number)).await).into_owned();
            assert_eq!(answer.contains("rate_limited"), number >= PEOPLE, "{answer}");
        }
    });
}

fn call(token: &str, number: usize) -> Vec<u8> {
    call_for(token, &format!("person-{}", number % PEOPLE))
}

fn call_for(token: &str, user_id: &str) -> Vec<u8> {
    let context = json!({"user_id": user_id});
    let body = json!({"arguments": {"message": "Once more."}, "context": context}).to_string();
    request("POST", "/v1/tools/send_notification", token, "application/json", body.as_bytes())
}
