//! The clients: publishers, a person and agents, which go on while the hub is killed and restarted.
//!
//! A call with an idempotent id (an event id, a call id) is repeated until it gets a response; any other call is made once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Call, Client, Reply};
use crate::history::{Draft, History, Injection, Publication};
use crate::random::Random;

/// The agents of every conversation.
pub(crate) const AGENTS: [&str; 2] = ["main", "scout"];

/// The clients of one episode.
#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) client: Client,
    pub(crate) user: String,
    pub(crate) conversations: Vec<String>,
    /// Set when the clients must stop.
    pub(crate) stop: Arc<AtomicBool>,
    /// The counter that makes every marker unique.
    pub(crate) numbers: Arc<AtomicU64>,
}

impl Clients {
    /// Starts every client; each task returns its history after `stop` is set.
    pub(crate) fn start(&self, random: &mut Random) -> Vec<tokio::task::JoinHandle<History>> {
        let mut tasks = Vec::new();
        for mode in [PublishMode::One, PublishMode::Named, PublishMode::Array, PublishMode::Lines, PublishMode::Named] {
            tasks.push(tokio::spawn(publish(self.clone(), random.fork(), mode)));
        }
        tasks.push(tokio::spawn(send_messages(self.clone(), random.fork())));
        for (number, conversation) in self.conversations.iter().enumerate() {
            for agent in AGENTS {
                tasks.push(tokio::spawn(inject(self.clone(), random.fork(), conversation.clone(), agent, "a")));
            }
            // Two clients inject from the same mailbox.
            if number == 0 {
                tasks.push(tokio::spawn(inject(self.clone(), random.fork(), conversation.clone(), "main", "b")));
            }
        }
        tasks
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    /// A random event for one agent of one conversation, or for all conversations of the user.
    fn draft(&self, random: &mut Random, named: bool) -> (Draft, Value) {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        let marker = format!("m{number}x");
        // Sometimes a duplicate, which is shown as a count.
        let word = if random.percent(10) { "again".to_owned() } else { format!("w{number}x") };
        let (kind, severity, key, is_shown) = *random.choose(&[
            ("tool.call.failure", "error", "tool_name", true),
            ("tool.call.failure", "error", "tool_name", true),
            ("source.file.changed", "info", "path", true),
            ("task.background.complete", "info", "task_id", true),
            ("subagent.failed", "error", "task_id", true),
            ("cli.event", "info", "text", false),
            ("budget.token.warning", "warning", "percentage", false),
            ("ci.build.failed", "error", "text", false),
        ]);
        let payload = json!({ "marker": marker, key: word });
        let source = format!("source {}", random.below(5));
        let mut event = json!({ "type": kind, "source": source, "severity": severity, "payload": payload });
        if random.percent(90) {
            event["conversation_id"] = json!(random.choose(&self.conversations));
            event["agent"] = json!(random.choose(&AGENTS));
        } else {
            event["user_id"] = json!(self.user);
        }
        if named {
            event["id"] = json!(format!("name-{marker}"));
        }
        (Draft { marker, word: is_shown.then_some(word), payload, has_client_id: named }, event)
    }
}

#[derive(Copy, Clone, PartialEq)]
enum PublishMode {
    One,
    Named,
    Array,
    Lines,
}

async fn publish(clients: Clients, mut random: Random, mode: PublishMode) -> History {
    let mut history = History::default();
    while clients.goes_on() {
        pause(&mut random).await;
        let count = if matches!(mode, PublishMode::Array | PublishMode::Lines) { 2 + random.below(5) } else { 1 };
        let named = mode == PublishMode::Named || (count > 1 && random.percent(50));
        let (drafts, events): (Vec<Draft>, Vec<Value>) = (0..count).map(|_| clients.draft(&mut random, named)).unzip();
        let call = match mode {
            PublishMode::One | PublishMode::Named => Call::post("/v1/events", &events[0]),
            PublishMode::Array => Call::post("/v1/events", &json!(events)),
            PublishMode::Lines => {
                let body = events.iter().map(|event| format!("{event}\n")).collect();
                Call { content_type: "application/x-ndjson", body, ..Call::post("/v1/events", &Value::Null) }
            }
        };
        let answer = if named { Some(clients.client.expect(&call).await) } else { once(&clients, &call).await };
        if named && random.percent(20) {
            let again = clients.client.expect(&call).await;
            history.violations.extend(differs("a brought id", &call, answer.as_deref().unwrap_or_default(), &again));
        }
        history.publications.push(Publication { drafts, call, answer });
    }
    history
}

/// Sends messages of the person to random conversations.
async fn send_messages(clients: Clients, mut random: Random) -> History {
    let mut history = History::default();
    while clients.goes_on() {
        pause(&mut random).await;
        let text = format!("u{}x", clients.numbers.fetch_add(1, Ordering::SeqCst));
        let path = format!("/v1/conversations/{}/messages", random.choose(&clients.conversations));
        let call = Call::post(path, &json!({ "text": text }));
        let answer = once(&clients, &call).await;
        let payload = json!({ "text": text });
        let drafts = vec![Draft { marker: text.clone(), word: Some(text), payload, has_client_id: false }];
        history.publications.push(Publication { drafts, call, answer });
    }
    history
}

/// An agent that injects at one point after another and repeats a call whose response was lost.
async fn inject(
    clients: Clients,
    mut random: Random,
    conversation: String,
    agent: &'static str,
    name: &str,
) -> History {
    let mut history = History::default();
    let mut number = 0;
    while clients.goes_on() {
        pause(&mut random).await;
        number += 1;
        let call_id = format!("{name}{number}");
        let unseen = unseen_calls(&mut history, &mut random);
        let point = *random.choose(&["after_tool", "after_tool", "immediate", "turn_end", "turn_start"]);
        let mut ask = json!({ "point": point, "call_id": call_id, "agent": agent, "tool_result": "done",
                              "unseen": unseen });
        if random.percent(10) {
            ask["observed"] = json!({ "tool_name": format!("seen{number}"), "outcome": "failure" });
        }
        let call = Call::post(format!("/v1/conversations/{conversation}/inject"), &ask);
        let answer = clients.client.expect(&call).await;
        if random.percent(20) {
            let again = clients.client.expect(&call).await;
            history.violations.extend(differs("a call id", &call, &answer, &again));
        }
        let (conversation, agent) = (conversation.clone(), agent.to_owned());
        history.injections.push(Injection { conversation, agent, call_id, call, unseen, answer });
    }
    history
}

/// Sometimes one of the last calls, to be reported as unseen.
fn unseen_calls(history: &mut History, random: &mut Random) -> Vec<String> {
    let known: Vec<&String> = history.injections.iter().flat_map(|one| &one.unseen).collect();
    let last = history.injections.iter().rev().take(3).find(|one| !known.contains(&&one.call_id));
    last.filter(|_| random.percent(15)).map(|one| one.call_id.clone()).into_iter().collect()
}

/// Makes a call once. 429 is a valid response (too many pending messages); the event then does not exist.
async fn once(clients: &Clients, call: &Call) -> Option<String> {
    match clients.client.call(call).await {
        Reply::Answered(200..=299, body) => Some(body),
        Reply::Answered(429, _) | Reply::Lost => None,
        Reply::Answered(status, body) => panic!("{} was answered {status}: {body}", call.path),
    }
}

pub(crate) fn differs(what: &str, call: &Call, first: &str, again: &str) -> Option<String> {
    let message = || format!("{what} got another answer the second time: {}\n  {first}\n  {again}", call.body);
    (first != again).then(message)
}

/// Waits up to 8 ms between two calls; the duration depends on the seed.
async fn pause(random: &mut Random) {
    tokio::time::sleep(Duration::from_millis(random.below(8))).await;
}
