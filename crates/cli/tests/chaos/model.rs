//! What must be true of any history, however often the hub died in it.

use std::collections::HashMap;

use serde_json::Value;

use crate::census::Traces;
use crate::client::json;
use crate::history::{Draft, History, Receipt};

/// Everything that contradicts the promises of the hub; empty when it kept them.
pub(crate) fn violations(history: &History, traces: &Traces) -> Vec<String> {
    let told = Told::of(history);
    let mut found = history.violations.clone();
    found.extend(told.twice.iter().cloned());
    for (draft, receipt) in history.accepted() {
        let lost = accepted_means_there(draft, &receipt, traces);
        match traces.get(&receipt.id) {
            Some(trace) if lost.is_empty() => found.extend(every_notification_ends(draft, trace, &told)),
            _ => found.extend(lost),
        }
    }
    found
}

/// What the answers that agents have seen told them.
#[derive(Default)]
struct Told {
    /// Which call told a notification, with its text.
    calls: HashMap<String, (String, String)>,
    twice: Vec<String>,
}

impl Told {
    fn of(history: &History) -> Self {
        let returned = history.returned();
        let mut told = Self::default();
        for one in &history.injections {
            if returned.contains(&one.name()) {
                continue;
            }
            let answer = json(&one.answer);
            for id in answer["notifications"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let text = answer["block"].as_str().unwrap_or_default().to_owned();
                if let Some((first, _)) = told.calls.insert(id.to_owned(), (one.call_id.clone(), text)) {
                    told.twice.push(format!("notification {id} was told in {first} and again in {}", one.call_id));
                }
            }
        }
        told
    }
}

/// An accepted event is there, as it was sent, with exactly the verdicts that were answered.
fn accepted_means_there(draft: &Draft, receipt: &Receipt, traces: &Traces) -> Vec<String> {
    let marker = &draft.marker;
    let Some(trace) = traces.get(&receipt.id) else {
        return vec![format!("{marker}: accepted as {} and lost", receipt.id)];
    };
    let mut wrong = Vec::new();
    for (what, answered) in
        [("verdicts", &receipt.verdicts), ("filtered", &receipt.filtered), ("payload", &draft.payload)]
    {
        if trace[what] != *answered {
            wrong.push(format!("{marker}: {what} are {} and were answered as {answered}", trace[what]));
        }
    }
    wrong
}

/// What an event became part of was told once, or ended with a reason. Every mailbox has been emptied by now.
fn every_notification_ends(draft: &Draft, trace: &Value, told: &Told) -> Vec<String> {
    let verdicts = trace["verdicts"].as_array().into_iter().flatten();
    let ids = verdicts.filter_map(|verdict| verdict["notification_id"].as_str());
    ids.filter_map(|id| wrong_end(draft, id, trace, told)).collect()
}

fn wrong_end(draft: &Draft, id: &str, trace: &Value, told: &Told) -> Option<String> {
    let marker = &draft.marker;
    let Some(one) = trace["notifications"].as_array().into_iter().flatten().find(|one| one["id"] == id) else {
        return Some(format!("{marker}: its notification {id} is nowhere"));
    };
    let call = one["call_id"].as_str();
    match (one["state"].as_str().unwrap_or_default(), told.calls.get(id)) {
        ("injected" | "folded", Some((in_call, _))) if call != Some(in_call) => {
            Some(format!("{marker}: {id} was told in {in_call}, and its trace says {call:?}"))
        }
        ("injected", Some((in_call, text))) => match &draft.word {
            Some(word) if word != "again" && !text.contains(word.as_str()) => {
                Some(format!("{marker}: {in_call} told {id} without {word}:\n{text}"))
            }
            _ => None,
        },
        ("folded", Some(_)) => None,
        ("folded" | "replaced" | "expired", None) if one["reason"].is_string() => None,
        (state, _) => Some(format!("{marker}: {id} is {state} and no agent was told of it: {one}")),
    }
}
