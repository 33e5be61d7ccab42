use std::collections::BTreeMap;
use std::sync::Arc;

use bellwire_core::Time;
use bellwire_core::person::PersonSettings;

use super::{InboundRow, LedgerRow, NotifyKey, NotifyRow, ReplyContextRow};

/// Owner, conversation and agent.
pub(crate) type AgentKey = (Arc<str>, Arc<str>, Arc<str>);

/// The rows of one commit for `notify`, each row once.
#[derive(Debug, Default)]
pub(crate) struct NotifyChanges {
    pub(crate) requests: BTreeMap<NotifyKey, NotifyRow>,
    pub(crate) ledger: Vec<LedgerRow>,
    /// By channel and thread.
    pub(crate) inbound: BTreeMap<(String, String), InboundRow>,
    pub(crate) reply_contexts: BTreeMap<AgentKey, ReplyContextRow>,
    pub(crate) answer_counts: BTreeMap<NotifyKey, AnswerCount>,
}

/// How many replies and reactions an inbound message has had.
#[derive(Clone, Debug)]
pub(crate) struct AnswerCount {
    pub(crate) user_id: Option<String>,
    pub(crate) used: i64,
    pub(crate) at: Time,
}

impl NotifyChanges {
    /// The number of rows. A decision also counts in the sums of its day.
    pub(crate) fn rows(&self) -> usize {
        let small = [self.inbound.len(), self.reply_contexts.len(), self.answer_counts.len()];
        self.requests.len() + 2 * self.ledger.len() + small.into_iter().sum::<usize>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Whether a request ended or was released, so that callers who wait for it must look.
    pub(crate) fn has_endings(&self) -> bool {
        self.requests.values().any(|row| !row.is_leased())
    }
}

/// The targets of a person by channel, verified or not.
pub(crate) fn targets_of(settings: &PersonSettings) -> impl Iterator<Item = (&str, &str)> {
    settings.channels.iter().filter_map(|(name, channel)| Some((name.as_str(), channel.target.as_deref()?)))
}
