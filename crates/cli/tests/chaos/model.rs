//! The invariants of every history, however often the hub was killed.

use std::collections::HashMap;

use serde_json::Value;

use crate::client::json;
use crate::collect::Traces;
use crate::history::{Draft, History, Receipt};

/// Every violated invariant.
pub(crate) fn violations(history: &History, traces: &Traces) -> Vec<String> {
    let shown = ShownNotifications::of(history);
    let mut found = history.violations.clone();
    found.extend(shown.twice.iter().cloned());
    for (draft, receipt) in history.accepted() {
        let lost = accepted_means_there(draft, &receipt, traces);
        match traces.get(&receipt.id) {
            Some(trace) if lost.is_empty() => found.extend(every_notification_ends(draft, trace, &shown)),
            _ => found.extend(lost),
        }
    }
    found
}

/// The notifications in the responses that agents saw.
#[derive(Default)]
struct ShownNotifications {
    /// The call that showed a notification, and its block.
    calls: HashMap<String, (String, String)>,
    twice: Vec<String>,
}

impl ShownNotifications {
    fn of(history: &History) -> Self {
        let returned = history.returned();
        let mut shown = Self::default();
        for one in &history.injections {
            if returned.contains(&one.name()) {
                continue;
            }
            let answer = json(&one.answer);
            for id in answer["notifications"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let text = answer["block"].as_str().unwrap_or_default().to_owned();
                if let Some((first, _)) = shown.calls.insert(id.to_owned(), (one.call_id.clone(), text)) {
                    shown.twice.push(format!("notification {id} was told in {first} and again in {}", one.call_id));
                }
            }
        }
        shown
    }
}

/// An accepted event is stored as it was sent, with the verdicts of the response.
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

/// Every notification of an event was shown once or ended with a reason. All mailboxes are empty by now.
fn every_notification_ends(draft: &Draft, trace: &Value, shown: &ShownNotifications) -> Vec<String> {
    let verdicts = trace["verdicts"].as_array().into_iter().flatten();
    let ids = verdicts.filter_map(|verdict| verdict["notification_id"].as_str());
    ids.filter_map(|id| wrong_end(draft, id, trace, shown)).collect()
}

fn wrong_end(draft: &Draft, id: &str, trace: &Value, shown: &ShownNotifications) -> Option<String> {
    let marker = &draft.marker;
    let Some(one) = trace["notifications"].as_array().into_iter().flatten().find(|one| one["id"] == id) else {
        return Some(format!("{marker}: its notification {id} is nowhere"));
    };
    let call = one["call_id"].as_str();
    match (one["state"].as_str().unwrap_or_default(), shown.calls.get(id)) {
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
