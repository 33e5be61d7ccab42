//! What commits did, for those who watch: events with their verdicts, and what became of notifications later.
//!
//! The writer appends to a ring after each commit and reads nothing for it. A reader that is too slow misses the oldest
//! entries and is told how many; it never delays the writer or another reader. Without readers nothing is appended.

use std::collections::HashMap;
use std::sync::Arc;

use bellwire_core::notification::EndReason;
use bellwire_core::{EventId, InjectionPoint, Time};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use uuid::Uuid;

use crate::event_list::{EventQuery, ListedEvent};
use crate::people::{Delivery, InboxItem};
use crate::rows::{Changes, EventRow, InjectionRow, MailboxKey, NotificationRow};

/// How many entries the ring has.
const RING: usize = 1_000;

/// The ring.
#[derive(Clone)]
pub(crate) struct Live(Sender<Arc<Entry>>);

enum Entry {
    Event(EventRow),
    Fate(Fate),
}

/// What became of a notification: of an agent's, of a person's, or of its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The notification; none = the delivery has a code.
    pub notification_id: Option<Uuid>,
    /// The events of an agent's notification.
    pub events: Vec<EventId>,
    /// The person it belongs to.
    pub user_id: Arc<str>,
    /// The conversation of an agent's notification.
    pub conversation_id: Option<String>,
    /// The agent of an agent's notification.
    pub agent: Option<String>,
    /// The subscriber of an agent's notification.
    pub subscriber: Option<String>,
    /// An agent's: pending, injected, replaced, expired, folded. A person's: created, pressed, dismissed, read,
    /// unread. A delivery's: its state.
    pub state: &'static str,
    /// When.
    pub at: Time,
    /// The injection that showed it.
    pub call_id: Option<String>,
    /// The injection point of that injection.
    pub point: Option<InjectionPoint>,
    /// The channel of the delivery.
    pub channel: Option<String>,
    /// The reason of the state, for people.
    pub reason: Option<String>,
}

/// What a reader gets.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveEvent {
    /// An event that was stored.
    Event(Box<ListedEvent>),
    /// What became of a notification.
    Fate(Box<Fate>),
    /// The reader was too slow: so many entries were left out, whether it wanted them or not.
    Skipped(u64),
}

/// A reader of the ring, which gets what happens from now on.
pub struct LiveReceiver {
    receiver: Receiver<Arc<Entry>>,
    query: EventQuery,
}

impl Default for Live {
    fn default() -> Self {
        Self(broadcast::channel(RING).0)
    }
}

impl Live {
    /// A reader of the events that the query matches. Its owner and conversation also choose the fates.
    pub(crate) fn listen(&self, query: EventQuery) -> LiveReceiver {
        LiveReceiver { receiver: self.0.subscribe(), query }
    }

    /// Appends what a commit did.
    pub(crate) fn append(&self, changes: &Changes) {
        if self.0.receiver_count() == 0 {
            return;
        }
        let events = changes.events.iter().cloned().map(Entry::Event);
        let injections: HashMap<_, _> = changes.injections.iter().map(|one| ((&one.key, &*one.call_id), one)).collect();
        let agents = changes.notifications.values().map(|row| of_agent(row, changes.at, &injections));
        let items = changes.people.inbox.values().map(|item| of_person(item, changes));
        let deliveries = changes.people.deliveries.values().map(|row| of_delivery(row, changes.at));
        for entry in events.chain(agents.chain(items).chain(deliveries).map(Entry::Fate)) {
            // Fails only if the last reader has just gone.
            let _ = self.0.send(Arc::new(entry));
        }
    }
}

impl LiveReceiver {
    /// Waits for the next entry that the query matches; none = the store is closed.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        loop {
            match self.receiver.recv().await {
                Ok(entry) => {
                    if let Some(event) = self.wanted(&entry) {
                        return Some(event);
                    }
                }
                Err(RecvError::Lagged(count)) => return Some(LiveEvent::Skipped(count)),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn wanted(&self, entry: &Entry) -> Option<LiveEvent> {
        match entry {
            Entry::Event(row) => {
                self.query.matches(row).then(|| LiveEvent::Event(Box::new(self.query.filter.listed(row.clone()))))
            }
            Entry::Fate(fate) => {
                let conversation = self.query.filter.conversation_id.as_deref();
                let is_wanted = self.query.user_id.as_deref().is_none_or(|user| *fate.user_id == *user)
                    && conversation.is_none_or(|id| fate.conversation_id.as_deref() == Some(id));
                is_wanted.then(|| LiveEvent::Fate(Box::new(fate.clone())))
            }
        }
    }
}

type Injections<'a> = HashMap<(&'a MailboxKey, &'a str), &'a InjectionRow>;

fn of_agent<'a>(row: &'a NotificationRow, at: Time, injections: &Injections<'a>) -> Fate {
    let (owner, conversation, agent) = row.key.columns();
    let injection = row.call_id.as_deref().and_then(|call| injections.get(&(&row.key, call)));
    Fate {
        notification_id: Some(row.notification.id.0),
        events: row.notification.events.iter().map(|one| one.event).collect(),
        user_id: owner.into(),
        // A person's own mailbox has no conversation.
        conversation_id: Some(conversation.to_owned()).filter(|id| !id.is_empty()),
        agent: Some(agent.to_owned()).filter(|_| !conversation.is_empty()),
        subscriber: Some(row.notification.subscriber.to_string()),
        state: row.end_reason.as_ref().map_or("pending", EndReason::name),
        at: row.ended_at.unwrap_or(at),
        call_id: row.call_id.clone(),
        point: injection.map(|injection| injection.point),
        channel: None,
        reason: row.end_reason.as_ref().map(EndReason::reason),
    }
}

fn of_person(item: &InboxItem, changes: &Changes) -> Fate {
    let now = Some(changes.at);
    let state = match item {
        _ if changes.people.created.contains(&item.id) => "created",
        _ if item.acted.iter().any(|acted| Some(acted.at) == now) => "pressed",
        _ if item.dismissed_at.is_some() => "dismissed",
        _ if item.read_at.is_some() => "read",
        _ => "unread",
    };
    Fate { conversation_id: item.conversation_id.clone(), ..Fate::of(item.id.0, &item.user_id, state, changes.at) }
}

fn of_delivery(row: &Delivery, at: Time) -> Fate {
    let id = row.content.notification_id().map(|id| id.0);
    let fate = Fate::of(id.unwrap_or_default(), &row.user_id, row.state.as_str(), at);
    Fate { notification_id: id, channel: Some(row.channel.to_string()), reason: row.reason.clone(), ..fate }
}

impl Fate {
    fn of(notification_id: Uuid, user_id: &str, state: &'static str, at: Time) -> Self {
        Self {
            notification_id: Some(notification_id),
            events: Vec::new(),
            user_id: user_id.into(),
            conversation_id: None,
            agent: None,
            subscriber: None,
            state,
            at,
            call_id: None,
            point: None,
            channel: None,
            reason: None,
        }
    }
}
