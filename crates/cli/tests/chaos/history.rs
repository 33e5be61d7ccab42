//! The calls and responses of the clients.

use std::collections::HashSet;

use serde_json::Value;

use crate::client::{Call, json};

/// The calls of one episode.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) publications: Vec<Publication>,
    pub(crate) injections: Vec<Injection>,
    /// Violations that a client saw itself, such as a repeated call with another answer.
    pub(crate) violations: Vec<String>,
}

/// Events published in one request.
pub(crate) struct Publication {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) call: Call,
    /// The response; `None` if the connection broke and the call is not idempotent.
    pub(crate) answer: Option<String>,
}

/// A published event.
pub(crate) struct Draft {
    /// A unique text in its payload.
    pub(crate) marker: String,
    /// The word that a block with this event must contain; `None` if only a count is shown.
    pub(crate) word: Option<String>,
    /// The payload.
    pub(crate) payload: Value,
    /// Whether the sender chose its id, so that it can be sent again.
    pub(crate) has_client_id: bool,
}

/// An injection and its response.
pub(crate) struct Injection {
    pub(crate) conversation: String,
    pub(crate) agent: String,
    pub(crate) call_id: String,
    pub(crate) call: Call,
    /// Earlier call ids reported as unseen.
    pub(crate) unseen: Vec<String>,
    pub(crate) answer: String,
}

/// The response for one accepted event.
pub(crate) struct Receipt {
    pub(crate) id: String,
    pub(crate) filtered: Value,
    pub(crate) verdicts: Value,
}

impl History {
    pub(crate) fn add(&mut self, mut other: Self) {
        self.publications.append(&mut other.publications);
        self.injections.append(&mut other.injections);
        self.violations.append(&mut other.violations);
    }

    /// The calls reported as unseen: conversation, agent, call id.
    pub(crate) fn returned(&self) -> HashSet<(&str, &str, &str)> {
        let calls = self.injections.iter().flat_map(|one| one.unseen.iter().map(move |call_id| (one, call_id)));
        calls.map(|(one, call_id)| (one.conversation.as_str(), one.agent.as_str(), call_id.as_str())).collect()
    }

    /// Every accepted event with its receipt.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = (&Draft, Receipt)> {
        self.publications.iter().flat_map(|publication| publication.drafts.iter().zip(publication.receipts()))
    }
}

impl Publication {
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        let Some(answer) = &self.answer else { return Vec::new() };
        let answer = json(answer);
        // The response to a message of the person is the receipt itself.
        let receipts = answer["events"].as_array().cloned().unwrap_or_else(|| vec![answer]);
        receipts.iter().map(Receipt::read).collect()
    }
}

impl Injection {
    pub(crate) fn name(&self) -> (&str, &str, &str) {
        (&self.conversation, &self.agent, &self.call_id)
    }
}

impl Receipt {
    fn read(value: &Value) -> Self {
        let id = value["id"].as_str().expect("a receipt names its event").to_owned();
        Self { id, filtered: value["filtered"].clone(), verdicts: value["verdicts"].clone() }
    }
}
