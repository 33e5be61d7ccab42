//! One hot mailbox: the state machine, the events it may still show, the answers it gave lately, and what the commit that
//! is being made has to say of it.

use std::collections::HashSet;
use std::sync::Arc;

use bellwire_core::event::AgentName;
use bellwire_core::mailbox::EventLookup;
use bellwire_core::{Event, EventId, InjectionPoint, Keeper, Mailbox, NotificationId};

use super::LoadedMailbox;
use crate::command::{Hint, HintKind};
use crate::error::{ErrorKind, StoreError};
use crate::keys::KeyedMap;
use crate::rows::{Changes, InjectionRow, MailboxKey, MailboxRow, NotificationRow};

/// How many answers a mailbox remembers without asking the database.
const ANSWERS_HOT: usize = 32;
/// Below so many events nobody looks for those that are no longer needed.
const EVENTS_TIDY: usize = 64;

pub(super) struct Room {
    pub(super) key: MailboxKey,
    agent: AgentName,
    pub(super) mailbox: Mailbox,
    pub(super) events: KeyedMap<EventId, Arc<Event>>,
    tidy_at: usize,
    pub(super) answers: Vec<InjectionRow>,
    /// When it was last used, for whoever has to make room.
    pub(super) used: u64,
    /// Whether this commit has to save it.
    changed: bool,
    /// The notifications that wait since this commit, or wait changed; in order.
    waiting: Vec<NotificationId>,
    /// What streams will be told, one of a kind.
    hints: Vec<Hint>,
}

impl Room {
    pub(super) fn empty(key: &MailboxKey, secret: [u8; 16]) -> Self {
        Self::with(key, Mailbox::new(keeper(key), secret), KeyedMap::default())
    }

    pub(super) fn load(key: &MailboxKey, loaded: LoadedMailbox) -> Result<Self, StoreError> {
        let mailbox = Mailbox::load(&loaded.state, loaded.pending)
            .map_err(|error| StoreError::new(ErrorKind::Damaged, error.to_string()))?;
        let events = loaded.events.into_iter().map(|event| (event.id(), event)).collect();
        Ok(Self::with(key, mailbox, events))
    }

    fn with(key: &MailboxKey, mailbox: Mailbox, events: KeyedMap<EventId, Arc<Event>>) -> Self {
        Self {
            key: key.clone(),
            // A person's mailbox is no agent's, and tells no stream.
            agent: AgentName::parse(&key.agent).unwrap_or_else(|_| AgentName::main()),
            mailbox,
            events,
            tidy_at: EVENTS_TIDY,
            answers: Vec::new(),
            used: 0,
            changed: false,
            waiting: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// It is changed by this commit, which has to save it.
    pub(super) fn change(&mut self, changes: &mut Changes) {
        if !std::mem::replace(&mut self.changed, true) {
            changes.mailboxes.push(self.key.clone());
        }
    }

    /// A notification waits, or what waits of it has changed; its row is made once, when the commit is.
    pub(super) fn wait(&mut self, id: NotificationId) {
        // Ids are minted in order, so it nearly always goes to the end.
        if let Err(at) = self.waiting.binary_search(&id) {
            self.waiting.insert(at, id);
        }
    }

    pub(super) fn keep_event(&mut self, event: Arc<Event>) {
        self.events.insert(event.id(), event);
    }

    pub(super) fn remember(&mut self, row: InjectionRow) {
        self.answers.retain(|known| known.call_id != row.call_id);
        if self.answers.len() == ANSWERS_HOT {
            self.answers.remove(0);
        }
        self.answers.push(row);
    }

    /// Forgets events nobody refers to, once there are twice as many as there were needed the last time.
    pub(super) fn tidy(&mut self) {
        if self.events.len() > self.tidy_at {
            let kept: HashSet<EventId> = self.mailbox.references().collect();
            self.events.retain(|id, _| kept.contains(id));
            self.tidy_at = EVENTS_TIDY.max(2 * self.events.len());
        }
    }

    /// Gathers what streams will be told, once per kind however often it changes within a commit.
    pub(super) fn hint(&mut self, wake: Vec<NotificationId>) {
        if self.key.is_a_persons() || self.waiting.is_empty() {
            return;
        }
        let (mut pending, mut immediate) = (Vec::new(), Vec::new());
        let fresh = |id: NotificationId| self.waiting.binary_search(&id).is_ok();
        for one in self.mailbox.pending().iter().filter(|one| fresh(one.id)) {
            pending.push(one.id);
            if one.inject_at == InjectionPoint::Immediate {
                immediate.push(one.id);
            }
        }
        // What rang stays rung; what waits is what waits now.
        self.hint_of(HintKind::Pending, pending, |known, now| *known = now);
        self.hint_of(HintKind::Wake, wake, |known, more| known.extend(more));
        self.hint_of(HintKind::Immediate, immediate, |known, now| *known = now);
    }

    fn hint_of(
        &mut self,
        kind: HintKind,
        notifications: Vec<NotificationId>,
        join: impl FnOnce(&mut Vec<NotificationId>, Vec<NotificationId>),
    ) {
        if notifications.is_empty() {
            return;
        }
        match self.hints.iter_mut().find(|hint| hint.kind == kind) {
            Some(hint) => join(&mut hint.notifications, notifications),
            None => self.hints.push(Hint {
                user_id: self.key.owner().clone(),
                conversation_id: self.key.conversation.id.clone(),
                agent: self.agent.clone(),
                kind,
                notifications,
                count: 0,
            }),
        }
    }

    /// What this commit writes of it.
    pub(super) fn seal(&mut self) -> MailboxRow {
        self.changed = false;
        let pending = self.mailbox.pending().iter().map(|one| one.id).collect();
        MailboxRow { state: self.mailbox.save(), pending, due_at: self.mailbox.wakes_at() }
    }

    /// The rows of what waits since this commit. What has ended meanwhile has its row already.
    pub(super) fn waiting_rows(&self) -> impl Iterator<Item = NotificationRow> {
        let waiting = self.waiting.iter().filter_map(|id| self.mailbox.find(*id));
        waiting.map(|notification| NotificationRow::waiting(&self.key, notification.clone()))
    }

    /// The commit succeeded: this is what streams are told of it.
    pub(super) fn committed(&mut self, hints: &mut Vec<Hint>) {
        self.waiting.clear();
        let count = self.mailbox.pending().len();
        self.hints.sort_by_key(|hint| hint.kind);
        hints.extend(self.hints.drain(..).map(|hint| Hint { count, ..hint }));
    }
}

/// Whose mailbox it is.
fn keeper(key: &MailboxKey) -> Keeper {
    match &*key.agent {
        _ if key.is_a_persons() => Keeper::Person,
        "main" => Keeper::MainAgent,
        _ => Keeper::SubAgent,
    }
}

/// The events a room has at hand.
pub(super) struct Stored<'a>(pub(super) &'a KeyedMap<EventId, Arc<Event>>);

impl EventLookup for Stored<'_> {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        self.0.get(&id).cloned()
    }
}
