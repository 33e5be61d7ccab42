//! The arguments and results of a store's operations.

use std::sync::Arc;

use bellwire_core::conversation::ObservedCall;
use bellwire_core::event::{AgentName, OPERATOR, PERSON};
use bellwire_core::render::Boundary;
use bellwire_core::{
    Event, EventId, EventType, Inject, Injection, InjectionPoint, Notification, NotificationId, Priority, Time,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::StoreError;
use crate::packed_event::PackedEvent;
use crate::people::PersonTrace;
use crate::verdicts::{Decision, Verdicts};

/// The authenticated caller. Every operation checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The person the caller is bound to; none = it may act for every person.
    pub user_id: Option<String>,
    /// The conversation the caller is bound to, if it is bound to one.
    pub conversation_id: Option<String>,
    /// The namespace of the caller's client event ids.
    pub token_owner: String,
    /// The authenticated origin that people see. None = nothing it sends reaches a person.
    pub origin: Option<String>,
}

impl Caller {
    /// A caller that may act for every person.
    pub fn anyone() -> Self {
        let origin = Some(OPERATOR.to_owned());
        Self { user_id: None, conversation_id: None, token_owner: "admin".to_owned(), origin }
    }

    /// A caller bound to one person.
    pub fn user(id: &str) -> Self {
        Self {
            user_id: Some(id.to_owned()),
            conversation_id: None,
            token_owner: format!("user:{id}"),
            origin: Some(PERSON.to_owned()),
        }
    }

    /// Whether the caller may access this owner's conversation.
    pub fn may_see(&self, conversation_id: &str, owner: &str) -> bool {
        self.user_id.as_deref().is_none_or(|user| user == owner)
            && self.conversation_id.as_deref().is_none_or(|bound| bound == conversation_id)
    }

    /// Checks that the caller may notify this person about this conversation. The error is *not found*, as for missing data.
    pub(crate) fn check_person(&self, user_id: &str, conversation_id: Option<&str>) -> Result<(), StoreError> {
        if self.user_id.as_deref().is_some_and(|own| own != user_id) {
            return Err(StoreError::not_found("user"));
        }
        match conversation_id.is_none_or(|id| self.may_see(id, user_id)) {
            true => Ok(()),
            false => Err(StoreError::not_found("conversation")),
        }
    }
}

/// Events to publish together: all or none.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The sender.
    pub caller: Caller,
    /// The events, in order.
    pub events: Vec<IncomingEvent>,
    /// The idempotency key of this call.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Makes a repeated call return its first answer. Successful answers are stored for a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's token.
    pub token_id: String,
    /// The route: the same key on two routes means two calls.
    pub route: String,
    /// The key as the caller sent it.
    pub key: String,
    /// A hash of the request body.
    pub content: [u8; 32],
}

impl IdempotencyKey {
    /// How long a successful answer is stored.
    pub const KEPT_MS: u64 = 24 * 60 * 60 * 1000;
}

/// One event to publish.
#[derive(Clone, Debug)]
pub struct IncomingEvent {
    pub(crate) event: Arc<Event>,
    pub(crate) client_event_id: Option<ClientEventId>,
    pub(crate) packed: PackedEvent,
    pub(crate) hint: Option<Arc<str>>,
}

impl IncomingEvent {
    /// An event, whose id the store will set, and its client event id. It is packed here, on the caller's thread, to spare
    /// the writer.
    pub fn new(event: Event, client_event_id: Option<ClientEventId>) -> Self {
        Self { packed: PackedEvent::of(&event), event: Arc::new(event), client_event_id, hint: None }
    }

    /// The event's type.
    pub fn kind(&self) -> &EventType {
        self.event.kind()
    }

    /// Sets advice for the sender, for the case that no subscriber listens for the type.
    pub fn with_hint(self, hint: Option<Arc<str>>) -> Self {
        Self { hint, ..self }
    }

    /// Sets the event's id. A command that is decided a second time sets new ids.
    pub(crate) fn assign_id(&mut self, id: EventId) -> Arc<Event> {
        // There is no other reference to the event, so this does not copy it.
        Arc::make_mut(&mut self.event).set_id(id);
        self.event.clone()
    }
}

impl IncomingEvent {
    /// The person of an event without a conversation: it goes to every open conversation of this person.
    pub fn person_addressed(&self) -> Option<&str> {
        self.event.user_id().filter(|_| self.event.conversation_id().is_none())
    }
}

/// The sender's own id for an event, which makes publishing idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEventId {
    /// The id as the sender wrote it.
    pub id: String,
    /// A hash of the event as it was sent.
    pub content: [u8; 16],
}

/// The result of publishing one event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The event's id in the store.
    pub event_id: EventId,
    /// How many subscribers do not listen for its type.
    pub filtered: u32,
    /// Its verdicts, shared with the event's row until that is written.
    pub verdicts: Arc<Verdicts>,
}

/// An agent at an injection point.
#[derive(Clone, Debug)]
pub struct InjectCommand {
    /// The caller.
    pub caller: Caller,
    /// The conversation.
    pub conversation_id: String,
    /// The agent inside it.
    pub agent: AgentName,
    /// The request to the core.
    pub request: Inject,
    /// The tool call it just made.
    pub observed: Option<ObservedCall>,
    /// Earlier call ids whose answers never reached the model.
    pub unseen: Vec<String>,
    /// A digest of the tool result, by which a call id that is used twice is noticed. The result is not stored.
    pub tool_result_digest: Option<[u8; 16]>,
    /// The correlation id of the request.
    pub correlation_id: Option<String>,
    /// Whether the caller does not know which agent calls. Then nothing is taken while a sub-agent works.
    pub unsure: bool,
}

/// The answer of an injection, new or replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InjectResult {
    /// The text to append to the tool's result.
    pub block: String,
    /// Synthetic messages.
    pub messages: Vec<serde_json::Value>,
    /// The notifications that were taken.
    pub notifications: Vec<Uuid>,
    /// Showing + folded + pending.
    pub count: usize,
    /// Items shown.
    pub showing: usize,
    /// Items folded into counting lines.
    pub folded: usize,
    /// Items that did not fit.
    pub pending: usize,
    /// What the caller should know about its request, such as a call id in `unseen` that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The number of pending notifications, if nothing was taken because the agent is unknown.
    #[serde(skip)]
    pub withheld: Option<usize>,
}

impl InjectResult {
    /// An answer that takes nothing and reports how many notifications are pending.
    pub(crate) fn withheld(waiting: usize) -> Self {
        Self {
            block: String::new(),
            messages: Vec::new(),
            notifications: Vec::new(),
            count: 0,
            showing: 0,
            folded: 0,
            pending: 0,
            warnings: Vec::new(),
            withheld: Some(waiting),
        }
    }

    pub(crate) fn of(answer: &Injection) -> Self {
        Self {
            block: answer.block.clone(),
            messages: answer.messages.clone(),
            notifications: answer.notifications.iter().map(|id| id.0).collect(),
            count: answer.count,
            showing: answer.showing,
            folded: answer.folded,
            pending: answer.pending,
            warnings: Vec::new(),
            withheld: None,
        }
    }

    /// The tool's result with the block behind it.
    pub fn content(&self, tool_result: &str) -> String {
        match (tool_result, self.block.as_str()) {
            (result, "") => result.to_owned(),
            ("", block) => block.to_owned(),
            (result, block) => format!("{result}\n\n{block}"),
        }
    }
}

/// A system message as it is stored and shown to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its id.
    pub id: Uuid,
    /// Always `system`.
    pub role: String,
    /// The text.
    pub content: String,
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// The source of its events.
    pub source: String,
    /// The notification it shows.
    pub notification_id: Option<Uuid>,
    /// The injection it came with.
    pub call_id: String,
}

/// What describes a conversation to people and programs. What is absent does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationDetails {
    /// The title.
    pub title: Option<String>,
    /// The working directory of the session.
    pub folder: Option<String>,
}

impl ConversationDetails {
    /// Only a title.
    pub fn titled(title: &str) -> Self {
        Self { title: Some(title.to_owned()), folder: None }
    }
}

/// The state of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationView {
    /// Its id, unique per owner.
    pub id: String,
    /// The owner.
    pub user_id: String,
    /// The title.
    pub title: Option<String>,
    /// The working directory of the session.
    pub folder: Option<String>,
    /// Whether its agent is at work.
    pub working: bool,
    /// How many notifications wait for its main agent.
    pub pending: usize,
    /// The boundary that marks genuine blocks for its main agent.
    pub boundary: Boundary,
}

/// A notification that waits for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingNotification {
    /// Its id.
    pub id: NotificationId,
    /// The subscriber that created it.
    pub subscriber: Arc<str>,
    /// The common source of its events, if they have one.
    pub source: Option<Arc<str>>,
    /// Its priority.
    pub priority: Priority,
    /// The point at which it is taken.
    pub inject_at: InjectionPoint,
    /// How many events it has.
    pub events: usize,
    /// How many repeats were merged into them.
    pub repeats: u64,
    /// When it became pending.
    pub since: Time,
    /// When it expires.
    pub expires: Time,
}

/// Whether a new stream of a conversation keeps it open.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The conversation is seen now.
    Now,
    /// The stream does not count.
    AsBefore,
}

/// A hint for a conversation's stream, sent after the commit. It never contains text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The owner of the conversation.
    pub user_id: Arc<str>,
    /// The conversation.
    pub conversation_id: Arc<str>,
    /// The agent inside it.
    pub agent: AgentName,
    /// What has happened.
    pub kind: HintKind,
    /// The ids of the notifications.
    pub notifications: Vec<NotificationId>,
    /// How many notifications are pending in all.
    pub count: usize,
}

/// The kind of a hint.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HintKind {
    /// A notification is pending.
    Pending,
    /// The conversation is idle and a notification should wake it.
    Wake,
    /// A critical notification is pending.
    Immediate,
}

/// An event with its verdicts, notifications and injections, as far as they are still stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The event.
    pub event: bellwire_core::event::StoredEvent,
    /// The owner.
    pub owner: String,
    /// When it was accepted.
    pub accepted_at: Time,
    /// How many subscribers do not listen for its type.
    pub filtered: u32,
    /// Its verdicts.
    pub verdicts: Vec<Decision>,
    /// The notifications it became part of.
    pub notifications: Vec<NotificationView>,
    /// The injections they were shown in.
    pub injections: Vec<InjectionView>,
    /// The newer events that replaced it.
    pub superseded: Vec<Superseded>,
    /// The notifications to a person that it caused.
    pub person_traces: Vec<PersonTrace>,
}

/// A newer event replaced this one before it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// For which subscriber.
    pub subscriber: String,
    /// The newer event.
    pub by: EventId,
    /// When.
    pub at: Time,
}

/// An injection as a trace shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectionView {
    /// The conversation.
    pub conversation_id: String,
    /// The agent that asked.
    pub agent: String,
    /// The caller's id of the call.
    pub call_id: String,
    /// The point it had reached.
    pub point: String,
    /// When.
    pub at: Time,
    /// Whether the answer was later reported as never seen by the model.
    pub unseen: bool,
}

/// A notification as a trace shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationView {
    /// Its id.
    pub id: NotificationId,
    /// The subscriber that created it.
    pub subscriber_id: String,
    /// The conversation it is for.
    pub conversation_id: String,
    /// The agent it is for.
    pub agent: String,
    /// critical, high, normal or low.
    pub priority: String,
    /// Where it enters the context.
    pub inject_at: String,
    /// pending, injected, replaced, expired or folded.
    pub state: String,
    /// Why it ended.
    pub reason: Option<String>,
    /// The text that was shown.
    pub content: Option<String>,
    /// The injection it was shown in.
    pub call_id: Option<String>,
    /// Why its template failed; it was shown in the built-in form then.
    pub template_error: Option<String>,
    /// When it was created.
    pub created_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
}

/// An access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id; not the secret.
    pub id: String,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// admin, agent, user, ingest or daemon.
    pub scope: String,
    /// A label for people.
    pub name: Option<String>,
    /// The person it is bound to; `*` = explicitly everyone.
    pub user_id: Option<String>,
    /// The origin it authenticates.
    pub origin: Option<String>,
    /// The conversation it is bound to.
    pub conversation_id: Option<String>,
    /// When it was created.
    pub created_at: Time,
    /// When it expires.
    pub expires_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}

impl From<&Notification> for PendingNotification {
    fn from(notification: &Notification) -> Self {
        Self {
            id: notification.id,
            subscriber: notification.subscriber.shared(),
            source: notification.source.clone(),
            priority: notification.priority,
            inject_at: notification.inject_at,
            events: notification.events.len(),
            repeats: notification.events.iter().map(|one| u64::from(one.merged)).sum(),
            since: notification.since,
            expires: notification.expires,
        }
    }
}
