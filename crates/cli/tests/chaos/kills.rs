//! Kills the hub repeatedly under load and checks every invariant.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use crate::client::{Call, Client, admin_token, json as parse};
use crate::database::Database;
use crate::history::History;
use crate::hub::{Hub, start_and_kill};
use crate::load::Clients;
use crate::random::Random;
use crate::{collect, model};

/// The number of kills in `make test`.
const KILLS: u64 = 50;
/// After this many kills everything is checked, and new conversations begin.
const KILLS_PER_EPISODE: u64 = 25;
/// The database file is checked after this many kills.
const KILLS_PER_CHECK: u64 = 8;
/// The maximum number of responses and the longest time between two kills.
const ANSWERS_MAX: u64 = 120;
const RUN_MAX: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_is_told_twice_however_often_the_hub_is_killed() {
    let (seed, kills) = (from_environment("SEED").unwrap_or(1), from_environment("KILLS").unwrap_or(KILLS));
    println!("SEED={seed} KILLS={kills}");
    let folder = tempfile::tempdir().expect("a folder");
    let mut chaos = Chaos::begin(folder.path(), seed).await;
    for episode in 0.. {
        let left = kills.saturating_sub(chaos.kills);
        if left == 0 {
            break;
        }
        let violations = chaos.episode(episode, left.min(KILLS_PER_EPISODE)).await;
        let shown: Vec<&String> = violations.iter().take(10).collect();
        assert!(
            violations.is_empty(),
            "{} promises were broken by kill {}; the first are {shown:#?}\nrun it again: make chaos SEED={seed} KILLS={kills}",
            violations.len(),
            chaos.kills,
        );
    }
    println!("{} kills, {} events and {} injections answered", chaos.kills, chaos.events, chaos.injections);
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text}; it must be a number")))
}

/// The hub and what it has accepted so far.
struct Chaos<'a> {
    folder: &'a Path,
    random: Random,
    hub: Option<Hub>,
    /// The hub's address; `None` while it is down.
    address: watch::Sender<Option<String>>,
    numbers: Arc<AtomicU64>,
    /// The markers of all accepted events. They must exist at the end of every later episode.
    accepted: HashSet<String>,
    kills: u64,
    events: usize,
    injections: usize,
}

impl<'a> Chaos<'a> {
    async fn begin(folder: &'a Path, seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        // Kill the very first starts too: a half-created folder must not make the next start fail.
        for _ in 0..3 {
            start_and_kill(folder, Duration::from_millis(random.below(60)));
        }
        let hub = Hub::start(folder);
        let address = watch::channel(Some(hub.address.clone())).0;
        Self {
            folder,
            random,
            hub: Some(hub),
            address,
            numbers: Arc::default(),
            accepted: HashSet::new(),
            kills: 3,
            events: 0,
            injections: 0,
        }
    }

    /// Runs new conversations through some kills, then checks all their responses.
    async fn episode(&mut self, number: u64, kills: u64) -> Vec<String> {
        let client = Client::new(&admin_token(self.folder), self.address.subscribe());
        let clients = Clients {
            client: client.clone(),
            user: format!("ada-{number}"),
            conversations: (0..3).map(|chat| format!("chat-{number}-{chat}")).collect(),
            stop: Arc::new(AtomicBool::new(false)),
            numbers: self.numbers.clone(),
        };
        for conversation in &clients.conversations {
            let put = Call::put(format!("/v1/conversations/{conversation}"), &json!({ "user_id": clients.user }));
            client.expect(&put).await;
        }
        let tasks = clients.start(&mut self.random);
        let mut violations = Vec::new();
        for kill in 1..=kills {
            violations.extend(self.kill(&client, kill % KILLS_PER_CHECK == 0).await);
        }
        clients.stop.store(true, Ordering::SeqCst);
        let mut history = History::default();
        for task in tasks {
            history.add(task.await.expect("a client meets nothing it cannot explain"));
        }
        collect::empty_mailboxes(&clients, &mut history).await;
        self.kill_hub();
        violations.extend(self.check_database().await);
        self.restart_hub();
        violations.extend(collect::repeat_calls(&client, &history).await);
        let traces = collect::traces(&client, &history).await;
        violations.extend(model::violations(&history, &traces));
        violations.extend(self.end(&history).await);
        violations
    }

    /// Kills the hub at a random time and restarts it; sometimes kills a start too.
    async fn kill(&mut self, client: &Client, check_database: bool) -> Vec<String> {
        self.wait_for_kill_time(client).await;
        self.kill_hub();
        let violations = if check_database { self.check_database().await } else { Vec::new() };
        if self.random.percent(20) {
            start_and_kill(self.folder, Duration::from_millis(self.random.below(40)));
            self.kills += 1;
        }
        self.restart_hub();
        violations
    }

    /// Waits for a random number of responses, so that slow machines test as much as fast ones, and then for a random
    /// fraction of a request.
    async fn wait_for_kill_time(&mut self, client: &Client) {
        let answers = client.answers() + self.random.below(ANSWERS_MAX);
        let enough = async {
            while client.answers() < answers {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // All clients may be waiting; the hub is killed anyway.
        let _ = tokio::time::timeout(RUN_MAX, enough).await;
        tokio::time::sleep(Duration::from_micros(self.random.below(4_000))).await;
    }

    fn kill_hub(&mut self) {
        self.address.send_replace(None);
        self.hub.take().expect("the hub runs").kill();
        self.kills += 1;
    }

    fn restart_hub(&mut self) {
        let hub = Hub::start(self.folder);
        self.address.send_replace(Some(hub.address.clone()));
        self.hub = Some(hub);
    }

    async fn check_database(&self) -> Vec<String> {
        let mut database = Database::copy_of(self.folder).await;
        let violations = database.violations().await;
        database.close().await;
        violations
    }

    /// Checks that the file contains every accepted event, and each request without a response completely or not at all.
    async fn end(&mut self, history: &History) -> Vec<String> {
        self.accepted.extend(history.accepted().map(|(draft, _)| draft.marker.clone()));
        self.events += history.accepted().count();
        self.injections += history.injections.len();
        let mut database = Database::copy_of(self.folder).await;
        let markers = database.markers().await;
        database.close().await;
        let gone = self.accepted.iter().filter(|marker| !markers.contains(*marker));
        let mut violations: Vec<String> = gone.map(|marker| format!("{marker}: accepted and gone")).collect();
        for publication in history.publications.iter().filter(|publication| publication.answer.is_none()) {
            let there = publication.drafts.iter().filter(|draft| markers.contains(&draft.marker)).count();
            if there != 0 && there != publication.drafts.len() {
                violations.push(format!(
                    "{there} of {} events are there: {}",
                    publication.drafts.len(),
                    publication.call.body
                ));
            }
        }
        violations
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_elapses_while_the_hub_is_dead_fires_when_it_is_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(folder.path());
    let client = Client::of(folder.path(), &hub.address);
    let (id, _) = held_event(&client).await;
    hub.kill();
    // The window of a failed tool call is two seconds, and nobody is there while it elapses.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let hub = Hub::start(folder.path());
    let client = Client::of(folder.path(), &hub.address);
    // Reading a trace asks nothing of the writer: what fires, fires by itself.
    let trace = async {
        loop {
            let trace = parse(&client.expect(&Call::get(format!("/v1/events/{id}"))).await);
            if trace["notifications"][0]["state"] == "pending" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), trace).await.expect("the window fires after the restart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_reports_a_window_opened_before_the_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(folder.path());
    let client = Client::of(folder.path(), &hub.address);
    let (_, notification) = held_event(&client).await;
    hub.kill();
    let hub = Hub::start(folder.path());
    let mut stream = Client::of(folder.path(), &hub.address).stream("chat").await;
    let mut heard = String::new();
    let listen = async {
        while !heard.contains(&notification) {
            let piece = stream.chunk().await.expect("the stream goes on").expect("the stream has no end");
            heard.push_str(&String::from_utf8_lossy(&piece));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), listen).await.expect("the stream hints at the notification");
}

/// Publishes a failure, which is held in a batch; returns the ids of the event and its notification.
async fn held_event(client: &Client) -> (String, String) {
    client.expect(&Call::put("/v1/conversations/chat", &json!({ "user_id": "ada" }))).await;
    let event = json!({ "type": "tool.call.failure", "source": "tool_executor", "severity": "error",
                        "conversation_id": "chat", "payload": { "tool_name": "grep" } });
    let answer = parse(&client.expect(&Call::post("/v1/events", &event)).await);
    let verdict = &answer["events"][0]["verdicts"][0];
    assert_eq!(verdict["verdict"], "held", "{answer}");
    let text = |value: &serde_json::Value| value.as_str().expect("an id").to_owned();
    (text(&answer["events"][0]["id"]), text(&verdict["notification_id"]))
}
