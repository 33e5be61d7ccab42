//! Durable storage: when a store answers `Ok`, the data is committed.
//!
//! The methods of [`Store`] are the operations of the domain. The executor applies every write to the core's state machines,
//! and one writer commits the writes in groups; a call is answered only after its commit. The memory store is the simplest
//! correct implementation and the model for SQLite; one conformance suite runs on both.

mod chats;
mod clock;
mod command;
mod conversation_list;
mod damage;
mod ended;
mod erasing;
mod error;
mod event_list;
mod executor;
mod hints;
mod keys;
mod live;
mod memory;
mod notify;
mod packed_event;
mod people;
mod refusals;
mod reply;
mod report;
mod rows;
mod sessions;
mod single_writer;
mod sizes;
mod sqlite;
mod verdicts;
mod work;
mod writer;

pub use chats::{
    ChannelUpdate, ChatKey, ChatMessage, ChatSender, Chats, EditEnd, InboundText, MessageEdit, NewButton, Pairing,
    UpdateAction, UpdateCommand, UpdateOutcome,
};
pub use clock::Clock;
pub use command::{
    Caller, ClientEventId, ConversationDetails, ConversationView, Hint, HintKind, IdempotencyKey, IncomingEvent,
    InjectCommand, InjectResult, InjectionView, Message, NotificationView, PendingNotification, Publish, Receipt,
    Superseded, Token, Trace,
};
pub use conversation_list::{ConversationPosition, ConversationQuery, ListedConversation};
pub use ended::Ended;
pub use error::{ErrorKind, StoreError};
pub use event_list::{EventFilter, EventQuery, ListedEvent, NamedEvent};
pub use hints::{HintEvent, HintReceiver};
pub use live::{Fate, LiveEvent, LiveReceiver};
pub use memory::{Memory, MemoryStore};
pub use notify::{
    ChosenContext, Claimant, InboundMessage, LedgerDecision, LedgerDraft, LedgerEntry, LedgerQuery, NotifyAnswer,
    NotifyClaim, NotifyClaimed, NotifyEnd, NotifyEnding, NotifyKey, NotifyRecipient, NotifyRequests, OriginSums,
    SentFrom,
};
pub use people::{
    Allowance, AttemptEnd, AttemptOutcome, AttemptStart, ButtonPress, Catchup, ChannelRules, Claim,
    DELIVERIES_PER_ITEM_MAX, DUE_TOASTS_MAX, Delivery, DeliveryContent, DeliveryState, DirectMessage, Doorbell,
    Grouping, Hold, InboxChange, InboxItem, InboxItemKind, InboxItemType, InboxQuery, InboxState, ItemHeading,
    KnownPerson, NewReminder, NotificationContent, NotificationDraft, People, PeopleRules, PersonTrace, PressOutcome,
    PressResult, Purpose, Quota, Reminder, RestoreOutcome, SendResult, SettingsRequest, Settlement, Toast, ToastButton,
    UNREAD_COUNTED_MAX, WaitingDeliveries,
};
pub use refusals::{
    LocalRefusalCache, NoRefusalCache, RecallFuture, RedisRefusalCache, RefusalCache, RefusalCacheStatus,
};
pub use report::{CommitReport, FailedTemplate, Injected, NewNotification, Observer, SubscriberCounts};
pub use sessions::{
    NewSession, SESSION_IDLE_MS, SESSION_MS, SESSIONS_MAX, SIGN_IN_CODE_MS, Session, SessionOwner, Sessions,
    SignInCode, SignedIn,
};
pub use single_writer::SingleWriterStore;
pub use sizes::Sizes;
pub use sqlite::{Inspection, SavedMailbox, Sqlite, SqliteStore};
pub use verdicts::{Decision, Verdicts};
pub use work::Work;
pub use writer::StoreOptions;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bellwire_core::event::AgentName;
use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;
use bellwire_core::{EventId, Time};
use tokio::sync::watch;

/// The answer of a store, ready after the commit.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The hub's data and the operations on it.
///
/// Duties of every implementation: `Ok` means committed; a refused command has changed nothing; a repeated command gives its
/// first answer; a caller cannot reach another owner's data, nor distinguish it from missing data.
pub trait Store: People + Chats + NotifyRequests + Sessions {
    /// Publishes events, all or none, and returns their verdicts.
    fn publish(&self, publish: Publish) -> StoreFuture<'_, Vec<Receipt>>;
    /// Takes an agent's pending notifications at an injection point.
    fn inject(&self, command: InjectCommand) -> StoreFuture<'_, InjectResult>;
    /// Creates or updates a conversation. Its owner never changes.
    fn put_conversation(
        &self,
        caller: Caller,
        id: String,
        user_id: String,
        details: ConversationDetails,
    ) -> StoreFuture<'_, ConversationView>;
    /// How many open conversations an event for this person reaches now, if the caller sends it.
    fn open_conversations(&self, caller: Caller, user_id: String, now: Time) -> StoreFuture<'_, usize>;
    /// The state of a conversation.
    fn conversation(&self, caller: Caller, id: String) -> StoreFuture<'_, ConversationView>;
    /// The notifications that wait for an agent of a conversation, in the order in which they would be taken. At most 200.
    fn pending(&self, caller: Caller, id: String, agent: AgentName) -> StoreFuture<'_, Vec<PendingNotification>>;
    /// The conversations that the caller may see, the most recently used first, and the position of the next page.
    fn conversations(
        &self,
        caller: Caller,
        query: ConversationQuery,
    ) -> StoreFuture<'_, (Vec<ListedConversation>, Option<ConversationPosition>)>;
    /// The first hints of a conversation's stream. Connecting keeps the conversation open.
    fn connect(&self, caller: Caller, id: String) -> StoreFuture<'_, Vec<Hint>>;
    /// The same for an operator who watches: the conversation is as open as it was.
    fn watch(&self, caller: Caller, id: String) -> StoreFuture<'_, Vec<Hint>>;
    /// The boundary of an agent of a conversation.
    fn boundary(&self, caller: Caller, id: String, agent: AgentName) -> StoreFuture<'_, Boundary>;
    /// Replaces the boundary of one agent. Answers given before keep the old one.
    fn rotate_boundary(
        &self,
        caller: Caller,
        id: String,
        agent: AgentName,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Boundary>;
    /// The system messages of a conversation after the position `after`, oldest first, at most `limit`; and the position of
    /// the next page.
    fn messages(
        &self,
        caller: Caller,
        id: String,
        after: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Message>, Option<i64>)>;
    /// The system messages of a conversation before a position, or the last ones, newest first; and the position of the next
    /// page.
    fn messages_before(
        &self,
        caller: Caller,
        id: String,
        before: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, (Vec<Message>, Option<i64>)>;
    /// The events that the caller may see, newest first, and the position of the next page. A page with a next one may have
    /// fewer events than asked for, or none: each reads a bounded number of rows.
    fn events(&self, caller: Caller, query: EventQuery) -> StoreFuture<'_, (Vec<ListedEvent>, Option<EventId>)>;
    /// The events that any sender published under this client event id, the newest first, at most `limit`. Only for callers
    /// that may see the events of every owner.
    fn events_named(&self, client_event_id: String, limit: usize) -> StoreFuture<'_, Vec<NamedEvent>>;
    /// The trace of an event, by its id or by its client event id.
    fn trace(&self, caller: Caller, id: String) -> StoreFuture<'_, Trace>;
    /// Inserts or updates a token.
    fn put_token(&self, token: Token) -> StoreFuture<'_, ()>;
    /// Inserts a token. A repeat under the same key is a conflict: the secret was shown and cannot be shown again.
    fn put_token_once(&self, token: Token, idempotency_key: IdempotencyKey) -> StoreFuture<'_, ()>;
    /// Stores the answer to a call without other changes, or returns the answer stored before. It is erased together with the
    /// user `about`.
    fn answer_once(
        &self,
        idempotency_key: IdempotencyKey,
        answer: String,
        about: Option<String>,
    ) -> StoreFuture<'_, String>;
    /// The token whose secret has this hash.
    fn token_by_secret(&self, secret_hash: Vec<u8>) -> StoreFuture<'_, Option<Token>>;
    /// Every token, oldest first.
    fn tokens(&self) -> StoreFuture<'_, Vec<Token>>;
    /// Deletes all data of a person in bounded steps, and answers when it is deleted. Until then, calls about the person are a
    /// conflict, and a repeated call waits for the same erasure. A restart resumes it. A person of whom nothing is stored is
    /// *not found*, unless they were erased within `RetentionCutoffs::answers`: then a repeated call succeeds.
    fn erase_user(&self, user_id: String) -> StoreFuture<'_, ()>;
    /// The number of finished erasures, including resumed ones. After each, caches of tokens must be cleared.
    fn erased(&self) -> watch::Receiver<u64>;
    /// Deletes rows older than the cutoffs, at most `limit` per table, and returns their number.
    fn prune(&self, kept: RetentionCutoffs, limit: usize) -> StoreFuture<'_, usize>;
    /// The number of notifications pending for agents, and when the oldest was created.
    fn waiting(&self) -> StoreFuture<'_, (usize, Option<Time>)>;
    /// Handles due timers. The writer does this automatically; tests with their own clock call this.
    fn tick(&self) -> StoreFuture<'_, ()>;
    /// Replaces the subscribers, from the next event on.
    fn set_subscribers(&self, subscribers: Arc<Subscribers>) -> StoreFuture<'_, ()>;
    /// The hub's time: stored times are compared with this one, not with the wall clock, which can be set back.
    fn now(&self) -> Time;
    /// Whether the store can write.
    fn check(&self) -> StoreFuture<'_, ()>;
    /// Finishes accepted commands and closes the database. Later calls fail.
    fn close(&self) -> StoreFuture<'_, ()>;
    /// Completes when the writer has ended, with the reason. Every later command fails, so the hub must stop.
    fn ended(&self) -> Pin<Box<dyn Future<Output = Ended> + Send>>;
    /// Watches what commits do from now on: the events that the query matches, and the fates of its owner and conversation.
    /// The query's position, time and limit do not count.
    fn live(&self, query: EventQuery) -> LiveReceiver;
    /// Subscribes to the hints of one conversation, each sent after its commit. A slow receiver misses some and must call
    /// [`Store::connect`] again.
    fn hints(&self, user_id: &str, conversation_id: &str) -> HintReceiver;
}

/// Rows older than these times are deleted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RetentionCutoffs {
    /// Events, their traces, and their client event ids.
    pub events: Time,
    /// Answers of injections, by call id, and the digests of erased people's ids.
    pub answers: Time,
    /// Read inbox items, and ended deliveries and reminders.
    pub inbox: Time,
    /// What a person has not read.
    pub unread_inbox: Time,
    /// Conversations and mailboxes, by when they were last used. One in which anything waits is kept.
    pub conversations: Time,
}

impl RetentionCutoffs {
    /// The same cutoff for everything except unread items and conversations, which are kept.
    pub fn before(time: Time) -> Self {
        Self { events: time, answers: time, inbox: time, unread_inbox: Time::ZERO, conversations: Time::ZERO }
    }
}

/// Parses an event id.
pub(crate) fn event_id(text: &str) -> Option<EventId> {
    uuid::Uuid::try_parse(text).ok().map(EventId)
}

/// The creation time in a time-ordered id (UUID version 7).
pub(crate) fn minted_at(id: uuid::Uuid) -> Time {
    let millis = id.as_u128() >> 80;
    Time::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
