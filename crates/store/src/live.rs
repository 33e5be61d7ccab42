//! What commits did, for those who watch: events with their verdicts, and what became of notifications later.
//!
//! The writer appends to a ring after each commit and reads nothing for it. The ring is bounded in entries and in bytes,
//! however slow its readers are. A reader that is too slow misses the oldest entries and is told how many; it never delays the
//! writer or another reader. Without readers nothing is appended.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwire_core::event::EventType;
use bellwire_core::notification::EndReason;
use bellwire_core::{EventId, InjectionPoint, Time};
use tokio::sync::watch;
use uuid::Uuid;

use crate::event_list::{EventQuery, ListedEvent};
use crate::packed_event::PackedEvent;
use crate::people::{Delivery, InboxItem};
use crate::rows::{Changes, EventRow, InjectionRow, MailboxKey, NotificationRow};
use crate::verdicts::{Decision, Verdicts};

/// How many entries the ring has.
const RING: usize = 1_000;
/// How many bytes the entries of the ring have. An event can have 64 KiB, and its verdicts more.
const RING_BYTES: usize = 32 * 1024 * 1024;
/// How many bytes a verdict takes, about: the decision with its texts, and its JSON.
const VERDICT_BYTES: usize = size_of::<Decision>() + 400;
/// How many bytes a fate takes, about.
const FATE_BYTES: usize = size_of::<Fate>() + 200;

/// The ring, and the number of appended entries, for which its readers wait.
#[derive(Clone)]
pub(crate) struct Live {
    ring: SharedRing,
    appended: watch::Sender<u64>,
}

#[derive(Clone, Default)]
struct SharedRing(Arc<Mutex<Ring>>);

#[derive(Default)]
struct Ring {
    /// Each with its size in bytes.
    entries: VecDeque<(Arc<Entry>, usize)>,
    bytes: usize,
    /// How many entries were removed: the position of the first one that is left.
    removed: u64,
}

enum Entry {
    Event(LiveRow),
    Fate(Fate),
}

/// An event, packed: parsed, its payload would take many times the bytes.
struct LiveRow {
    id: EventId,
    kind: EventType,
    conversation_id: Option<String>,
    packed: PackedEvent,
    owner: Arc<str>,
    accepted_at: Time,
    filtered: u32,
    verdicts: Arc<Verdicts>,
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
    ring: SharedRing,
    appended: watch::Receiver<u64>,
    /// The position of the entry that it reads next.
    position: u64,
    query: EventQuery,
}

/// What a reader finds at its position.
enum Found {
    Entry(Arc<Entry>),
    /// So many entries were removed before it read them.
    Skipped(u64),
    Nothing,
}

impl Default for Live {
    fn default() -> Self {
        Self { ring: SharedRing::default(), appended: watch::channel(0).0 }
    }
}

impl Live {
    /// A reader of the events that the query matches. Its owner and conversation also choose the fates.
    pub(crate) fn listen(&self, query: EventQuery) -> LiveReceiver {
        // Subscribed first: an entry that is appended in between wakes it.
        let appended = self.appended.subscribe();
        LiveReceiver { ring: self.ring.clone(), appended, position: self.ring.lock().end(), query }
    }

    /// Appends what a commit did.
    pub(crate) fn append(&self, changes: &Changes) {
        if self.appended.receiver_count() == 0 {
            return self.ring.lock().clear();
        }
        let events = changes.events.iter().map(LiveRow::of).map(Entry::Event);
        let injections: HashMap<_, _> = changes.injections.iter().map(|one| ((&one.key, &*one.call_id), one)).collect();
        let agents = changes.notifications.values().map(|row| of_agent(row, changes.at, &injections));
        let items = changes.people.inbox.values().map(|item| of_person(item, changes));
        let deliveries = changes.people.deliveries.values().map(|row| of_delivery(row, changes.at));
        let fates = agents.chain(items).chain(deliveries).map(Entry::Fate);
        let entries: Vec<Arc<Entry>> = events.chain(fates).map(Arc::new).collect();
        if !entries.is_empty() {
            let end = self.ring.lock().push(entries);
            self.appended.send_replace(end);
        }
    }
}

impl SharedRing {
    /// No code panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// The position after the last entry.
    fn end(&self) -> u64 {
        self.removed + self.entries.len() as u64
    }

    /// Appends entries and removes the oldest ones beyond the bounds. Returns the new end.
    fn push(&mut self, entries: Vec<Arc<Entry>>) -> u64 {
        for entry in entries {
            let bytes = entry.bytes();
            self.bytes += bytes;
            self.entries.push_back((entry, bytes));
            while self.entries.len() > RING || self.bytes > RING_BYTES {
                let Some((_, bytes)) = self.entries.pop_front() else { break };
                self.bytes -= bytes;
                self.removed += 1;
            }
        }
        self.end()
    }

    fn clear(&mut self) {
        if !self.entries.is_empty() {
            *self = Self { removed: self.end(), ..Self::default() };
        }
    }

    fn at(&self, position: u64) -> Found {
        match position.checked_sub(self.removed) {
            None => Found::Skipped(self.removed - position),
            Some(index) => {
                let entry = usize::try_from(index).ok().and_then(|index| self.entries.get(index));
                entry.map_or(Found::Nothing, |(entry, _)| Found::Entry(entry.clone()))
            }
        }
    }
}

impl Entry {
    /// Its size, about: what a sender can make large is counted.
    fn bytes(&self) -> usize {
        match self {
            Self::Event(row) => size_of::<Self>() + row.packed.bytes() + row.verdicts.len() * VERDICT_BYTES,
            Self::Fate(fate) => FATE_BYTES + size_of_val(&*fate.events) + fate.reason.as_deref().map_or(0, str::len),
        }
    }
}

impl LiveRow {
    fn of(row: &EventRow) -> Self {
        Self {
            id: row.event.id(),
            kind: row.event.kind().clone(),
            conversation_id: row.event.conversation_id().map(str::to_owned),
            packed: row.packed.clone(),
            owner: row.owner.clone(),
            accepted_at: row.accepted_at,
            filtered: row.filtered,
            verdicts: row.verdicts.clone(),
        }
    }

    /// The event as a list shows it, if the query matches.
    fn listed(&self, query: &EventQuery) -> Option<ListedEvent> {
        let sent_to = self.conversation_id.as_deref();
        query.matches_event(&self.owner, &self.kind, sent_to, &self.verdicts).then_some(())?;
        Some(ListedEvent {
            event: self.packed.to_stored(self.id)?,
            owner: self.owner.to_string(),
            accepted_at: self.accepted_at,
            filtered: self.filtered,
            verdicts: self.verdicts.iter().filter(|verdict| query.filter.shows(verdict)).cloned().collect(),
        })
    }
}

impl LiveReceiver {
    /// Waits for the next entry that the query matches; none = the store is closed.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        loop {
            // A reader that finds entries again and again lets others run in between.
            tokio::task::consume_budget().await;
            let found = self.ring.lock().at(self.position);
            match found {
                Found::Entry(entry) => {
                    self.position += 1;
                    if let Some(event) = self.wanted(&entry) {
                        return Some(event);
                    }
                }
                Found::Skipped(count) => {
                    self.position += count;
                    return Some(LiveEvent::Skipped(count));
                }
                Found::Nothing => self.appended.changed().await.ok()?,
            }
        }
    }

    fn wanted(&self, entry: &Entry) -> Option<LiveEvent> {
        match entry {
            Entry::Event(row) => row.listed(&self.query).map(|listed| LiveEvent::Event(Box::new(listed))),
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use bellwire_core::{Event, Ids, Severity};

    use super::*;

    /// A commit with this many events of this many bytes.
    fn commit(events: usize, bytes: usize, ids: &mut Ids) -> Changes {
        let row = |ids: &mut Ids| {
            let payload = serde_json::json!({"text": "x".repeat(bytes)});
            let event = Event::new("ci.build.done", "ci", Severity::Info, payload).unwrap().in_conversation("chat");
            let event = Arc::new(event.with_id(ids.event(Time::ZERO)));
            let (packed, verdicts) = (PackedEvent::of(&event), Arc::new(Verdicts::default()));
            EventRow { event, packed, owner: "ada".into(), accepted_at: Time::ZERO, filtered: 0, verdicts }
        };
        Changes { events: (0..events).map(|_| row(ids)).collect(), ..Changes::default() }
    }

    #[tokio::test]
    async fn the_ring_is_bounded_in_entries_and_bytes_and_a_reader_learns_how_many_it_missed() {
        for (events, bytes, kept) in [(1_500, 10, RING), (800, 60_000, RING_BYTES / 60_000)] {
            let (live, mut ids) = (Live::default(), Ids::seeded(1));
            let mut stalled = live.listen(EventQuery::default());
            let mut filtered = live.listen(EventQuery { user_id: Some("bob".into()), ..EventQuery::default() });
            live.append(&commit(events, bytes, &mut ids));
            let (entries, used) = {
                let ring = live.ring.lock();
                (ring.entries.len(), ring.bytes)
            };
            assert!(used <= RING_BYTES && (kept - kept / 50..=kept).contains(&entries), "{entries} of {bytes} bytes");
            let skipped = LiveEvent::Skipped((events - entries) as u64);
            assert_eq!(stalled.next().await, Some(skipped.clone()));
            for _ in 0..entries {
                assert!(matches!(stalled.next().await, Some(LiveEvent::Event(_))));
            }
            assert_eq!(filtered.next().await, Some(skipped), "counted before the filters");
            drop((stalled, live));
            assert_eq!(filtered.next().await, None, "the store is closed");
        }
    }

    #[tokio::test]
    async fn without_readers_nothing_is_kept_and_a_new_one_begins_at_the_end() {
        let (live, mut ids) = (Live::default(), Ids::seeded(1));
        let first = live.listen(EventQuery::default());
        live.append(&commit(3, 10, &mut ids));
        assert_eq!(live.ring.lock().entries.len(), 3);
        drop(first);
        live.append(&commit(3, 10, &mut ids));
        assert_eq!(live.ring.lock().entries.len(), 0);
        let mut second = live.listen(EventQuery::default());
        let last = commit(1, 10, &mut ids);
        let id = last.events[0].event.id();
        live.append(&last);
        let Some(LiveEvent::Event(heard)) = second.next().await else { panic!("an event") };
        assert_eq!(heard.event.id, id);
        assert_eq!(heard.event, last.events[0].event.to_stored(), "as it is stored");
    }
}
