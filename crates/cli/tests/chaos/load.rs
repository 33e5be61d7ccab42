//! The clients: publishers, a person and agents, each going on as well as it can while the hub comes and goes.
//!
//! Each keeps to the rule of its kind. What has a name of its own (a brought id, a call id) is asked again in the same
//! words until it is answered; what has none is asked once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Call, Client, Reply};
use crate::history::{Draft, History, Injection, Publication};
use crate::random::Random;

/// The agents of every conversation.
pub(crate) const AGENTS: [&str; 2] = ["main", "scout"];

/// Who takes part in one episode.
#[derive(Clone)]
pub(crate) struct Cast {
    pub(crate) client: Client,
    pub(crate) user: String,
    pub(crate) conversations: Vec<String>,
    /// Told when the clients shall come to an end.
    pub(crate) stop: Arc<AtomicBool>,
    /// Makes every marker different.
    pub(crate) numbers: Arc<AtomicU64>,
}

impl Cast {
    /// Starts every client; each gives its history when it is told to stop.
    pub(crate) fn play(&self, random: &mut Random) -> Vec<tokio::task::JoinHandle<History>> {
        let mut tasks = Vec::new();
        for how in [How::One, How::Named, How::Array, How::Lines, How::Named] {
            tasks.push(tokio::spawn(publish(self.clone(), random.fork(), how)));
        }
        tasks.push(tokio::spawn(say(self.clone(), random.fork())));
        for (number, conversation) in self.conversations.iter().enumerate() {
            for agent in AGENTS {
                tasks.push(tokio::spawn(inject(self.clone(), random.fork(), conversation.clone(), agent, "a")));
            }
            // One mailbox is emptied by two at once.
            if number == 0 {
                tasks.push(tokio::spawn(inject(self.clone(), random.fork(), conversation.clone(), "main", "b")));
            }
        }
        tasks
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    /// An event of some kind, for some agent of some conversation or for all of the person's.
    fn draft(&self, random: &mut Random, named: bool) -> (Draft, Value) {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        let marker = format!("m{number}x");
        // Sometimes the same thing happens again: a repeat, told as a count.
        let word = if random.percent(10) { "again".to_owned() } else { format!("w{number}x") };
        let (kind, severity, key, is_told) = *random.choose(&[
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
        (Draft { marker, word: is_told.then_some(word), payload, brought: named }, event)
    }
}

#[derive(Copy, Clone, PartialEq)]
enum How {
    One,
    Named,
    Array,
    Lines,
}

async fn publish(cast: Cast, mut random: Random, how: How) -> History {
    let mut history = History::default();
    while cast.goes_on() {
        think(&mut random).await;
        let count = if matches!(how, How::Array | How::Lines) { 2 + random.below(5) } else { 1 };
        let named = how == How::Named || (count > 1 && random.percent(50));
        let (drafts, events): (Vec<Draft>, Vec<Value>) = (0..count).map(|_| cast.draft(&mut random, named)).unzip();
        let call = match how {
            How::One | How::Named => Call::post("/v1/events", &events[0]),
            How::Array => Call::post("/v1/events", &json!(events)),
            How::Lines => {
                let body = events.iter().map(|event| format!("{event}\n")).collect();
                Call { content_type: "application/x-ndjson", body, ..Call::post("/v1/events", &Value::Null) }
            }
        };
        let answer = if named { Some(cast.client.expect(&call).await) } else { once(&cast, &call).await };
        if named && random.percent(20) {
            let again = cast.client.expect(&call).await;
            history.violations.extend(differs("a brought id", &call, answer.as_deref().unwrap_or_default(), &again));
        }
        history.publications.push(Publication { drafts, call, answer });
    }
    history
}

/// The person speaks to one of the agents' conversations.
async fn say(cast: Cast, mut random: Random) -> History {
    let mut history = History::default();
    while cast.goes_on() {
        think(&mut random).await;
        let text = format!("u{}x", cast.numbers.fetch_add(1, Ordering::SeqCst));
        let path = format!("/v1/conversations/{}/messages", random.choose(&cast.conversations));
        let call = Call::post(path, &json!({ "text": text }));
        let answer = once(&cast, &call).await;
        let payload = json!({ "text": text });
        let drafts = vec![Draft { marker: text.clone(), word: Some(text), payload, brought: false }];
        history.publications.push(Publication { drafts, call, answer });
    }
    history
}

/// An agent that works: it reaches one point after another and asks again where the answer was lost.
async fn inject(cast: Cast, mut random: Random, conversation: String, agent: &'static str, name: &str) -> History {
    let mut history = History::default();
    let mut number = 0;
    while cast.goes_on() {
        think(&mut random).await;
        number += 1;
        let call_id = format!("{name}{number}");
        let unseen = returned(&mut history, &mut random);
        let point = *random.choose(&["after_tool", "after_tool", "immediate", "turn_end", "turn_start"]);
        let mut ask = json!({ "point": point, "call_id": call_id, "agent": agent, "tool_result": "done",
                              "unseen": unseen });
        if random.percent(10) {
            ask["observed"] = json!({ "tool_name": format!("seen{number}"), "outcome": "failure" });
        }
        let call = Call::post(format!("/v1/conversations/{conversation}/inject"), &ask);
        let answer = cast.client.expect(&call).await;
        if random.percent(20) {
            let again = cast.client.expect(&call).await;
            history.violations.extend(differs("a call id", &call, &answer, &again));
        }
        let (conversation, agent) = (conversation.clone(), agent.to_owned());
        history.injections.push(Injection { conversation, agent, call_id, call, unseen, answer });
    }
    history
}

/// Sometimes an earlier answer never reached the model: the agent says so at its next point.
fn returned(history: &mut History, random: &mut Random) -> Vec<String> {
    let known: Vec<&String> = history.injections.iter().flat_map(|one| &one.unseen).collect();
    let last = history.injections.iter().rev().take(3).find(|one| !known.contains(&&one.call_id));
    last.filter(|_| random.percent(15)).map(|one| one.call_id.clone()).into_iter().collect()
}

/// Asks once. Too many waiting messages are a proper answer, and then there is nothing to look for.
async fn once(cast: &Cast, call: &Call) -> Option<String> {
    match cast.client.call(call).await {
        Reply::Answered(200..=299, body) => Some(body),
        Reply::Answered(429, _) | Reply::Lost => None,
        Reply::Answered(status, body) => panic!("{} was answered {status}: {body}", call.path),
    }
}

pub(crate) fn differs(what: &str, call: &Call, first: &str, again: &str) -> Option<String> {
    let said = || format!("{what} was answered otherwise the second time: {}\n  {first}\n  {again}", call.body);
    (first != again).then(said)
}

/// A client does something else now and then; how long is part of the play.
async fn think(random: &mut Random) {
    tokio::time::sleep(Duration::from_millis(random.below(8))).await;
}
