//! The durable truth: what a store has answered with `Ok` is on disk.
//!
//! [`Store`] speaks in the verbs of the domain. Every write goes through the core's state machines in one place, the
//! executor, and is committed in groups by one writer; an answer leaves only after the commit that decided it. The
//! memory store is the shortest right implementation and the model for the others; one conformance suite runs on all.

mod clock;
mod command;
mod damage;
mod ended;
mod erasing;
mod error;
mod executor;
mod hints;
mod keys;
mod memory;
mod packed_event;
mod people;
mod refusals;
mod reply;
mod report;
mod rows;
mod single_writer;
mod sizes;
mod sqlite;
mod verdicts;
mod work;
mod writer;

pub use clock::Clock;
pub use command::{
    Caller, ClientEventId, ConversationView, Hint, HintKind, IdempotencyKey, Incoming, InjectCommand, InjectResult,
    InjectionView, Message, NotificationView, Publish, Receipt, Superseded, Token, Trace,
};
pub use ended::Ended;
pub use error::{ErrorKind, StoreError};
pub use hints::{HintEvent, HintReceiver};
pub use memory::{Memory, MemoryStore};
pub use people::{
    Allowance, AttemptEnd, AttemptOutcome, AttemptStart, ButtonPress, Catchup, Channel, Claim, Delivery,
    DeliveryContent, DeliveryState, Doorbell, Hold, InboxChange, InboxItem, InboxItemKind, InboxItemType, InboxQuery,
    InboxState, NewReminder, NotificationContent, NotificationDraft, People, PeopleRules, PersonTrace, PressResult,
    Purpose, Quota, Reminder, SendResult, SettingsRequest, Toast, ToastButton,
};
pub use refusals::{
    LocalRefusalCache, NoRefusalCache, RecallFuture, RedisRefusalCache, RefusalCache, RefusalCacheStatus,
};
pub use report::{CommitReport, NewNotification, Observer};
pub use single_writer::SingleWriterStore;
pub use sizes::Sizes;
pub use sqlite::{Inspection, SavedMailbox, Sqlite, SqliteStore};
pub use verdicts::{Decision, Verdicts};
pub use work::Work;
pub use writer::StoreOptions;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;
use bellwire_core::{EventId, Time};
use tokio::sync::watch;

/// What a store answers, when it is committed.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Everything the hub remembers, in the verbs of the domain.
///
/// Duties of every implementation: `Ok` means committed; a command that is refused has changed nothing; a repeated
/// command gives its first answer; nobody reaches what is not the caller's, and cannot tell it from what is not there.
pub trait Store: People {
    /// Takes in events, all or none, and says what they came to.
    fn publish(&self, publish: Publish) -> StoreFuture<'_, Vec<Receipt>>;
    /// Gives an agent its mail at an injection point.
    fn take(&self, take: InjectCommand) -> StoreFuture<'_, InjectResult>;
    /// Creates or updates a conversation. Its owner never changes.
    fn put_conversation(
        &self,
        caller: Caller,
        id: String,
        user_id: String,
        title: Option<String>,
    ) -> StoreFuture<'_, ConversationView>;
    /// How many open conversations an event for this person reaches now, if the caller sends it.
    fn open_conversations(&self, caller: Caller, user_id: String, now: Time) -> StoreFuture<'_, usize>;
    /// A conversation as people see it.
    fn conversation(&self, caller: Caller, id: String) -> StoreFuture<'_, ConversationView>;
    /// What a conversation's stream says on connect. Connecting keeps it open.
    fn connect(&self, caller: Caller, id: String) -> StoreFuture<'_, Vec<Hint>>;
    /// A new boundary; answers that were given keep theirs.
    fn rotate_boundary(&self, caller: Caller, id: String, once: Option<IdempotencyKey>) -> StoreFuture<'_, Boundary>;
    /// What was shown in a conversation, oldest first, from behind `after` on; at most `limit`, and where to go on.
    fn messages(
        &self,
        caller: Caller,
        id: String,
        after: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Message>, Option<i64>)>;
    /// One event's life, by the store's name for it or by the name its sender brought.
    fn trace(&self, caller: Caller, id: String) -> StoreFuture<'_, Trace>;
    /// Keeps a token, new or revoked.
    fn put_token(&self, token: Token) -> StoreFuture<'_, ()>;
    /// Keeps a new token. Asking again under the same name is a conflict: its secret was shown and cannot be again.
    fn put_token_once(&self, token: Token, once: IdempotencyKey) -> StoreFuture<'_, ()>;
    /// Remembers the answer to a call that changes nothing, or gives the one that was remembered before. It is erased with
    /// whom it is about.
    fn answer_once(&self, once: IdempotencyKey, answer: String, about: Option<String>) -> StoreFuture<'_, String>;
    /// The token with this secret.
    fn token_by_secret(&self, secret_hash: Vec<u8>) -> StoreFuture<'_, Option<Token>>;
    /// Every token, oldest first.
    fn tokens(&self) -> StoreFuture<'_, Vec<Token>>;
    /// Deletes everything about a person, in bounded steps; the answer comes when it is gone. Until then calls about them are
    /// a conflict, and whoever asks again waits for the same erasure. It goes on after a restart.
    fn erase_user(&self, user_id: String) -> StoreFuture<'_, ()>;
    /// Counts the erasures that have ended, those that a restart went on with included: then tokens are gone.
    fn erased(&self) -> watch::Receiver<u64>;
    /// Deletes what is older than this, at most `limit` of each sort; how many went.
    fn prune(&self, kept: RetentionCutoffs, limit: usize) -> StoreFuture<'_, usize>;
    /// How many notifications wait for agents, and since when the oldest does.
    fn waiting(&self) -> StoreFuture<'_, (usize, Option<Time>)>;
    /// Lets time pass for whatever is due. The writer does so by itself; tests with a clock of their own ask.
    fn tick(&self) -> StoreFuture<'_, ()>;
    /// Other subscribers, from the next event on.
    fn set_subscribers(&self, subscribers: Arc<Subscribers>) -> StoreFuture<'_, ()>;
    /// The hub's time: stored times are compared with this one, not with the wall clock, which can be set back.
    fn now(&self) -> Time;
    /// Whether the store can write.
    fn check(&self) -> StoreFuture<'_, ()>;
    /// Finishes what was asked and lets the data go. Nothing can be asked afterwards.
    fn close(&self) -> StoreFuture<'_, ()>;
    /// Completes when the writer has ended, and says why. From then on every command fails, so a hub must not go on.
    fn ended(&self) -> Pin<Box<dyn Future<Output = Ended> + Send>>;
    /// Hints for one conversation's streams, each sent after its commit. Who is too slow misses some and asks anew.
    fn hints(&self, user_id: &str, conversation_id: &str) -> HintReceiver;
}

/// What is older than these times may go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RetentionCutoffs {
    /// Events, their traces, and the ids their senders brought.
    pub events: Time,
    /// Answers by call id.
    pub answers: Time,
    /// What a person has read, and deliveries and reminders that have come to their end.
    pub inbox: Time,
}

/// The name of an event, if a text is one.
pub(crate) fn event_id(text: &str) -> Option<EventId> {
    uuid::Uuid::try_parse(text).ok().map(EventId)
}

/// When a time-ordered name was minted.
pub(crate) fn minted_at(id: uuid::Uuid) -> Time {
    let millis = id.as_u128() >> 80;
    Time::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
