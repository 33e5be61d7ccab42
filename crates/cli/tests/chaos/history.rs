//! What was asked and what was answered, as the clients saw it.

use std::collections::HashSet;

use serde_json::Value;

use crate::client::{Call, json};

/// Everything the clients of one episode did.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) publications: Vec<Publication>,
    pub(crate) injections: Vec<Injection>,
    /// What a client saw go wrong itself, such as a repeated call with another answer.
    pub(crate) violations: Vec<String>,
}

/// Events sent together.
pub(crate) struct Publication {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) call: Call,
    /// The answer; none if the connection broke and the call could not be made again without doing it twice.
    pub(crate) answer: Option<String>,
}

/// One event as it was sent.
pub(crate) struct Draft {
    /// What tells it from all others, wherever it turns up.
    pub(crate) marker: String,
    /// The word an agent must read when it is told of this event; none where only a count is told.
    pub(crate) word: Option<String>,
    /// What was sent as its payload.
    pub(crate) payload: Value,
    /// Whether it brought its own id, so that sending it again is safe.
    pub(crate) brought: bool,
}

/// An agent at an injection point, and what it was given.
pub(crate) struct Injection {
    pub(crate) conversation: String,
    pub(crate) agent: String,
    pub(crate) call_id: String,
    pub(crate) call: Call,
    /// Earlier calls whose answers it gave back.
    pub(crate) unseen: Vec<String>,
    pub(crate) answer: String,
}

/// What an accepted event came to, as the answer said.
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

    /// The calls whose answers were given back: conversation, agent, call id.
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
        // A person's message is answered with the one receipt itself.
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
