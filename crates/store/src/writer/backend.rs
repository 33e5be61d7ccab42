use std::future::Future;

use bellwire_core::Time;

use super::Erased;
use crate::error::StoreError;
use crate::executor::RowSource;
use crate::people::OutboxCounts;
use crate::rows::{Changes, ConversationKey, MailboxKey};

/// What the writer needs from a database. A commit writes all of its changes or none.
pub(crate) trait Backend: RowSource + Send + 'static {
    /// Returns the change of the numbers of waiting deliveries.
    fn commit(&mut self, changes: &Changes) -> impl Future<Output = Result<OutboxCounts, StoreError>> + Send;
    /// Writes to a separate table, to check whether the database accepts a commit.
    fn probe(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Inserts a row into each main table and rolls back, to check whether these tables accept rows.
    fn probe_tables(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn prune(&mut self, before: &PruneCutoffs, limit: usize)
    -> impl Future<Output = Result<Pruned, StoreError>> + Send;
    /// The ids of people whose erasure had not ended when the store was closed or killed.
    fn unfinished_erasures(&self) -> Vec<String>;
    /// Deletes about `limit` rows of a person in one transaction, which also records that the person was erased.
    fn erase(
        &mut self,
        user_id: &str,
        limit: usize,
        now: Time,
    ) -> impl Future<Output = Result<Erased, StoreError>> + Send;
    /// Counts the pending notifications. Called once, at start.
    fn waiting(&self) -> Result<usize, StoreError>;
    /// Counts the waiting deliveries. Called once, at start.
    fn outbox(&self) -> Result<OutboxCounts, StoreError>;
    /// Closes the database.
    fn close(self) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Retention deletes rows older than these times.
pub(crate) struct PruneCutoffs {
    pub(crate) events: Time,
    pub(crate) answers: Time,
    pub(crate) inbox: Time,
    pub(crate) unread_inbox: Time,
    pub(crate) conversations: Time,
    /// Also the answers of `notify` requests, which are kept as long.
    pub(crate) idempotency_keys: Time,
    pub(crate) ledger: Time,
    /// Now: ended sessions and expired codes are of no use.
    pub(crate) sessions: Time,
}

/// What one step of retention deleted.
#[derive(Default)]
pub(crate) struct Pruned {
    /// The number of deleted rows, and of rows read to find idle conversations and mailboxes.
    pub(crate) rows: usize,
    pub(crate) read: usize,
    /// Conversations that are deleted with their agents' mailboxes.
    pub(crate) conversations: Vec<ConversationKey>,
    /// People's mailboxes that are deleted.
    pub(crate) mailboxes: Vec<MailboxKey>,
}
