//! Requests of the `notify` tool: claimed once, attempted once, answered with the first answer, and recorded in the ledger.
//!
//! This module has the types; the executor decides. A claim inserts a row under the hash of the request, or finds the one
//! that an equal request has made. The start of the attempt is committed before the first byte is sent. A lease that ends
//! before the start releases the request; one that ends after it makes its outcome *unknown*, which is final.

mod inbound;
mod ledger;
mod request;
mod rows;

pub use inbound::InboundMessage;
pub use ledger::{LedgerDecision, LedgerDraft, LedgerEntry, LedgerQuery, OriginSums};
pub use request::{
    ChosenContext, Claimant, NotifyAnswer, NotifyClaim, NotifyClaimed, NotifyEnd, NotifyEnding, NotifyKey,
    NotifyRecipient, SentFrom,
};

pub(crate) use inbound::{InboundRow, ReplyContextRow, inbound_context};
pub(crate) use ledger::{LedgerRow, day_of, sum_up};
pub(crate) use request::{NotifyRow, NotifyState};
pub(crate) use rows::{AgentKey, AnswerCount, NotifyChanges, targets_of};

use bellwire_core::Time;
use bellwire_core::event::AgentName;
use bellwire_core::notify::RequestContext;
use tokio::sync::watch;
use uuid::Uuid;

use crate::StoreFuture;

/// The operations on `notify` requests and the ledger, with the same duties as [`crate::Store`].
pub trait NotifyRequests: Send + Sync {
    /// Claims a request: checks the recipient's settings and limits, adds the inbox item of a `send`, or defers it. An equal
    /// request that was made before gives its answer, or says that it is in flight.
    fn claim_notify(&self, claim: NotifyClaim) -> StoreFuture<'_, NotifyClaimed>;
    /// Records the start of the attempt. False = the claim has expired, and nothing may be sent.
    fn start_notify(&self, key: NotifyKey, fence: i64, from: SentFrom) -> StoreFuture<'_, bool>;
    /// Records the outcome of the attempt and returns the answer. None = the fence is outdated, and a newer claim is in
    /// flight.
    fn end_notify(&self, end: NotifyEnd) -> StoreFuture<'_, Option<NotifyAnswer>>;
    /// The answer of the latest attempt of a request, final or not, if it has ended within the last day. It reads committed
    /// rows only.
    fn notify_answer(&self, key: NotifyKey) -> StoreFuture<'_, Option<NotifyAnswer>>;
    /// Rings after every commit that ended or released a request.
    fn notify_changes(&self) -> watch::Receiver<()>;
    /// Records a decision that no claim records, such as a refused call.
    fn record_decision(&self, draft: LedgerDraft) -> StoreFuture<'_, ()>;
    /// Decisions, newest first, and the cursor of the next page. A page with a next one may have fewer entries than asked
    /// for, or none: each reads a bounded number of rows.
    fn ledger(&self, query: LedgerQuery) -> StoreFuture<'_, (Vec<LedgerEntry>, Option<Uuid>)>;
    /// The decisions since a time, summed per origin: of this origin or of all, and of this person or of everybody.
    fn ledger_sums(
        &self,
        origin: Option<String>,
        user_id: Option<String>,
        since: Time,
    ) -> StoreFuture<'_, Vec<OriginSums>>;
    /// The inbound message with this thread identity.
    fn inbound_message(&self, channel: String, thread: String) -> StoreFuture<'_, Option<InboundMessage>>;
    /// The newest inbound message that was injected into this conversation for this agent.
    fn reply_context(
        &self,
        user_id: String,
        conversation_id: String,
        agent: AgentName,
    ) -> StoreFuture<'_, Option<RequestContext>>;
    /// The message that the hub chose for the first call with this key within the last day.
    fn chosen_context(&self, call_key: NotifyKey) -> StoreFuture<'_, Option<RequestContext>>;
    /// The people whose target this is in their settings, verified or not; at most a few.
    fn people_with_target(&self, channel: String, target: String) -> StoreFuture<'_, Vec<String>>;
}
