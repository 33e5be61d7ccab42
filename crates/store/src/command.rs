//! What can be asked of a store, and what comes back.

use std::sync::Arc;

use bellwire_core::conversation::ObservedCall;
use bellwire_core::event::{AgentName, OPERATOR, PERSON};
use bellwire_core::render::Boundary;
use bellwire_core::{Event, EventId, Inject, Injection, NotificationId, Time};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::StoreError;
use crate::packed_event::PackedEvent;
use crate::people::PersonTrace;
use crate::verdicts::{Decision, Verdicts};

/// On whose behalf something is asked. Every path checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The person the caller is bound to; none = it may speak for everyone.
    pub user_id: Option<String>,
    /// The conversation the caller is bound to, if it is bound to one.
    pub conversation_id: Option<String>,
    /// Under whose name the ids a sender brings are remembered.
    pub token_owner: String,
    /// The authenticated name of who asks, as people see it. None = it has none, and nothing it sends reaches a person.
    pub origin: Option<String>,
}

impl Caller {
    /// A caller that may speak for everyone.
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

    /// Whether a conversation of this owner is the caller's business.
    pub fn may_see(&self, conversation_id: &str, owner: &str) -> bool {
        self.user_id.as_deref().is_none_or(|user| user == owner)
            && self.conversation_id.as_deref().is_none_or(|bound| bound == conversation_id)
    }

    /// Whether the caller may speak to this person, and of this conversation: what is not theirs is not there.
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

/// Events to take in together: all of them or none.
#[derive(Clone, Debug)]
pub struct Publish {
    /// Who sends them.
    pub caller: Caller,
    /// The events, in order.
    pub events: Vec<Incoming>,
    /// The sender's name for this very call.
    pub once: Option<IdempotencyKey>,
}

/// A caller's own name for a call that must happen once, however often it is sent. Successes are remembered for a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The token that calls.
    pub token_id: String,
    /// What it calls: one name for two calls means two things.
    pub route: String,
    /// The caller's name for it.
    pub key: String,
    /// A hash of what was sent.
    pub content: [u8; 32],
}

impl IdempotencyKey {
    /// How long a success is remembered.
    pub const KEPT_MS: u64 = 24 * 60 * 60 * 1000;
}

/// One event on its way in.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub(crate) event: Arc<Event>,
    pub(crate) client_event_id: Option<ClientEventId>,
    pub(crate) packed: PackedEvent,
}

impl Incoming {
    /// An event, which the store will name, and the name its sender brought. It is packed here, by whoever brings it: the
    /// one that writes has enough to do.
    pub fn new(event: Event, client_event_id: Option<ClientEventId>) -> Self {
        Self { packed: PackedEvent::of(&event), event: Arc::new(event), client_event_id }
    }

    /// The event under this id. A command that is decided a second time names its events again.
    pub(crate) fn named(&mut self, id: EventId) -> Arc<Event> {
        // Nothing else refers to the event yet, or any more, so it is not copied.
        Arc::make_mut(&mut self.event).set_id(id);
        self.event.clone()
    }
}

impl Incoming {
    /// The person the event is for, where it names no conversation: every open conversation of theirs hears it.
    pub fn person_addressed(&self) -> Option<&str> {
        self.event.user_id().filter(|_| self.event.conversation_id().is_none())
    }
}

/// A name a sender brought, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEventId {
    /// The name.
    pub id: String,
    /// A hash of the event as it was sent.
    pub content: [u8; 16],
}

/// What an accepted event came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The store's name for the event.
    pub event_id: EventId,
    /// How many subscribers do not listen for its type.
    pub filtered: u32,
    /// What it came to; shared with the event's row until that is written.
    pub verdicts: Arc<Verdicts>,
}

/// An agent at an injection point.
#[derive(Clone, Debug)]
pub struct InjectCommand {
    /// Who asks.
    pub caller: Caller,
    /// The conversation.
    pub conversation_id: String,
    /// The agent inside it.
    pub agent: AgentName,
    /// What it asks for.
    pub request: Inject,
    /// The tool call it just made.
    pub observed: Option<ObservedCall>,
    /// Earlier call ids whose answers never reached the model.
    pub unseen: Vec<String>,
    /// The thread of work it belongs to.
    pub correlation_id: Option<String>,
    /// Whether the caller does not say which agent it is: while another is at work, nothing is taken.
    pub unsure: bool,
}

/// An answer as it was given, now or before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InjectResult {
    /// The text to put behind the tool's result.
    pub block: String,
    /// Synthetic messages.
    pub messages: Vec<serde_json::Value>,
    /// The notifications that were taken.
    pub notifications: Vec<Uuid>,
    /// Showing + folded + pending.
    pub count: usize,
    /// Items shown.
    pub showing: usize,
    /// Items summed up.
    pub folded: usize,
    /// Items that did not fit.
    pub pending: usize,
    /// What the caller should know about its request, such as a call id in `unseen` that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How many wait, where nothing was taken because it is not known who asks.
    #[serde(skip)]
    pub withheld: Option<usize>,
}

impl InjectResult {
    /// Nothing is taken, and so many wait.
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

/// A system message as it is kept and shown to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its name.
    pub id: Uuid,
    /// Always `system`.
    pub role: String,
    /// What it says.
    pub content: String,
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// Who says it.
    pub source: String,
    /// The notification it shows.
    pub notification_id: Option<Uuid>,
    /// The injection it came with.
    pub call_id: String,
}

/// A conversation as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationView {
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub user_id: String,
    /// What it is called.
    pub title: Option<String>,
    /// Whether its agent is at work.
    pub working: bool,
    /// How many notifications wait for its main agent.
    pub pending: usize,
    /// The mark of its genuine blocks.
    pub boundary: Boundary,
}

/// Something a stream may say, once it is committed: a hint, never the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Whose conversation it is about.
    pub user_id: Arc<str>,
    /// The conversation.
    pub conversation_id: Arc<str>,
    /// The agent inside it.
    pub agent: AgentName,
    /// What there is to know.
    pub kind: HintKind,
    /// The notifications meant.
    pub notifications: Vec<NotificationId>,
    /// How many notifications wait in all.
    pub count: usize,
}

/// What a hint is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HintKind {
    /// Something waits.
    Pending,
    /// The conversation is idle and something is reason to wake it.
    Wake,
    /// Something critical waits.
    Immediate,
}

/// One event's life, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The event.
    pub event: bellwire_core::event::StoredEvent,
    /// Whose it is.
    pub owner: String,
    /// When it was accepted.
    pub accepted_at: Time,
    /// How many subscribers do not listen for its type.
    pub filtered: u32,
    /// What it came to.
    pub verdicts: Vec<Decision>,
    /// The notifications it became part of.
    pub notifications: Vec<NotificationView>,
    /// The injections they were shown in.
    pub injections: Vec<InjectionView>,
    /// The newer events that took its place.
    pub superseded: Vec<Superseded>,
    /// What its person was told of it.
    pub told: Vec<PersonTrace>,
}

/// A newer event took this one's place before it was told.
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
    /// Its name for the call.
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
    /// Its name.
    pub id: NotificationId,
    /// The subscriber that speaks.
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
    /// What it said.
    pub content: Option<String>,
    /// The injection it was shown in.
    pub call_id: Option<String>,
    /// When it began to wait.
    pub created_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
}

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its name; not the secret.
    pub id: String,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// admin, agent, user, ingest or daemon.
    pub scope: String,
    /// What people call it.
    pub name: Option<String>,
    /// The person it is bound to; `*` = explicitly everyone.
    pub user_id: Option<String>,
    /// The agent it authenticates.
    pub origin: Option<String>,
    /// The conversation it is bound to.
    pub conversation_id: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// When it ends by itself.
    pub expires_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}
