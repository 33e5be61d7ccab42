//! After an episode: empties every mailbox and repeats every idempotent call, for the model to check.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::client::{Call, Client, json as parse};
use crate::history::{History, Injection};
use crate::load::{AGENTS, Clients, differs};

/// The number of parallel calls.
const CONCURRENCY: usize = 8;

/// The traces of accepted events by event id.
pub(crate) type Traces = HashMap<String, Value>;

/// Injects for every agent until nothing is pending.
pub(crate) async fn empty_mailboxes(clients: &Clients, history: &mut History) {
    for conversation in &clients.conversations {
        for agent in AGENTS {
            for number in 0.. {
                let call_id = format!("last{number}");
                let ask = json!({ "point": "turn_start", "call_id": call_id, "agent": agent, "max_items": 100,
                                  "max_tokens": 100_000 });
                let call = Call::post(format!("/v1/conversations/{conversation}/inject"), &ask);
                let answer = clients.client.expect(&call).await;
                let is_empty = parse(&answer)["count"] == 0;
                let (conversation, agent) = (conversation.clone(), agent.to_owned());
                history.injections.push(Injection { conversation, agent, call_id, call, unseen: Vec::new(), answer });
                if is_empty {
                    break;
                }
            }
        }
    }
}

/// The traces of all accepted events; missing ones are left out.
pub(crate) async fn traces(client: &Client, history: &History) -> Traces {
    let ids: Vec<String> = history.accepted().map(|(_, receipt)| receipt.id).collect();
    let calls = ids.iter().map(|id| Call::get(format!("/v1/events/{id}"))).collect();
    let answers = call_all(client, calls).await;
    let found = ids.into_iter().zip(answers).filter(|(_, (status, _))| *status == 200);
    found.map(|(id, (_, body))| (id, parse(&body))).collect()
}

/// Repeats every idempotent call. Each must get its first answer again.
pub(crate) async fn repeat_calls(client: &Client, history: &History) -> Vec<String> {
    let mut violations = Vec::new();
    let named = history.publications.iter().filter(|one| one.drafts.iter().all(|draft| draft.has_client_id));
    let named: Vec<_> = named.collect();
    let again = call_all(client, named.iter().map(|one| one.call.clone()).collect()).await;
    for (publication, (_, again)) in named.iter().zip(again) {
        let first = publication.answer.as_deref().unwrap_or_default();
        violations.extend(differs("a brought id", &publication.call, first, &again));
    }
    let again = call_all(client, history.injections.iter().map(|one| one.call.clone()).collect()).await;
    let returned = history.returned();
    for (injection, (status, again)) in history.injections.iter().zip(again) {
        match (returned.contains(&injection.name()), status) {
            (true, 409) => {}
            (true, _) => violations.push(format!("a call that was unseen is answered again: {}", injection.call.body)),
            (false, _) => violations.extend(differs("a call id", &injection.call, &injection.answer, &again)),
        }
    }
    violations
}

async fn call_all(client: &Client, calls: Vec<Call>) -> Vec<(u16, String)> {
    let share = calls.len().div_ceil(CONCURRENCY).max(1);
    let ask = |calls: &[Call]| {
        let (client, calls) = (client.clone(), calls.to_vec());
        tokio::spawn(async move {
            let mut answers = Vec::with_capacity(calls.len());
            for call in &calls {
                answers.push(client.call_until_answered(call).await);
            }
            answers
        })
    };
    let tasks: Vec<_> = calls.chunks(share).map(ask).collect();
    let mut answers = Vec::with_capacity(calls.len());
    for task in tasks {
        answers.extend(task.await.expect("the asker does not fail"));
    }
    answers
}
