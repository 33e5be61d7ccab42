//! A mailbox in memory: the state machine, the events it may still show, its recent answers, and its uncommitted
//! changes.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

use bellwire_core::event::AgentName;
use bellwire_core::{EventId, InjectionPoint, Mailbox, MailboxKind, NotificationId, Time};

use super::LoadedMailbox;
use super::event_cache::EventCache;
use super::staged::Staged;
use crate::command::{Hint, HintKind};
use crate::packed_event::PackedEvent;
use crate::rows::{Changes, InjectionRow, MailboxKey, MailboxRow, NotificationRow};

/// How many recent answers a mailbox keeps in memory.
const ANSWERS_HOT: usize = 32;
/// The maximum number of call ids that [`AnsweredCalls`] knows; four bytes each.
const CALLS_MAX: usize = 1024;

pub(super) struct HotMailbox {
    pub(super) key: MailboxKey,
    agent: AgentName,
    pub(super) mailbox: Mailbox,
    pub(super) event_cache: EventCache,
    /// Whether referenced events may be missing from the cache, because the mailbox was loaded from the database.
    lacks_events: bool,
    /// Referenced events that the database no longer has.
    gone: HashSet<EventId>,
    answers: Vec<InjectionRow>,
    calls: AnsweredCalls,
    /// A counter value of its last use, for the eviction order.
    pub(super) used: u64,
    /// The size of the last saved state, in bytes.
    saved: usize,
    /// The number of pending notifications as of its last commit.
    counted: usize,
    /// Whether the current commit must save it.
    changed: bool,
    /// The notifications that became pending or changed in the current commit, ordered by id.
    waiting: Vec<NotificationId>,
    /// The hints to send after the commit, at most one per kind.
    hints: Vec<Hint>,
}

impl HotMailbox {
    /// A mailbox that was never saved, so it has not answered any call.
    pub(super) fn empty(key: &MailboxKey, secret: [u8; 16]) -> Self {
        let calls = AnsweredCalls(Some(Vec::new()));
        Self { calls, ..Self::with(key, Mailbox::new(mailbox_kind(key), secret), EventCache::default()) }
    }

    pub(super) fn load(key: &MailboxKey, loaded: LoadedMailbox) -> Self {
        let LoadedMailbox { mailbox, saved, .. } = loaded;
        Self { saved, lacks_events: true, ..Self::with(key, mailbox, EventCache::default()) }
    }

    fn with(key: &MailboxKey, mailbox: Mailbox, event_cache: EventCache) -> Self {
        Self {
            key: key.clone(),
            // A person's mailbox has no agent and sends no hints, so this value is not used for it.
            agent: key.agent().and_then(|agent| AgentName::parse(agent).ok()).unwrap_or_else(AgentName::main),
            event_cache,
            lacks_events: false,
            gone: HashSet::new(),
            answers: Vec::new(),
            calls: AnsweredCalls(None),
            used: 0,
            saved: 0,
            counted: mailbox.pending().len(),
            changed: false,
            waiting: Vec::new(),
            hints: Vec::new(),
            mailbox,
        }
    }

    /// Marks it as changed, so that the current commit saves it.
    pub(super) fn change(&mut self, changes: &mut Changes) {
        if !std::mem::replace(&mut self.changed, true) {
            changes.mailboxes.push(self.key.clone());
        }
    }

    /// Adjusts its times if it was saved with a time in the future, because the clock was set back.
    pub(super) fn set_back(&mut self, now: Time, changes: &mut Staged) {
        if self.mailbox.set_back(now) {
            self.change(changes);
            self.waiting = self.mailbox.pending().iter().map(|one| one.id).collect();
            self.waiting.sort();
            changes.pending_rows += self.waiting.len();
        }
    }

    /// Records that a notification became pending or changed. Its row is built once per commit. False = it was recorded
    /// before.
    pub(super) fn wait(&mut self, id: NotificationId) -> bool {
        // Ids are ordered by time, so it is almost always appended.
        let at = self.waiting.binary_search(&id);
        at.map_err(|at| self.waiting.insert(at, id)).is_err()
    }

    /// The answer to this call, if it is among the recent ones.
    pub(super) fn answer(&self, call_id: &str) -> Option<&InjectionRow> {
        self.answers.iter().find(|row| row.call_id == call_id)
    }

    /// Whether this call was certainly never answered, so that the database need not be queried.
    pub(super) fn never_answered(&self, call_id: &str) -> bool {
        self.calls.has_not(call_id)
    }

    pub(super) fn remember(&mut self, row: InjectionRow) {
        self.calls.add(&row.call_id);
        self.answers.retain(|known| known.call_id != row.call_id);
        self.answers.push(row);
    }

    /// Keeps an answer that was read from the database.
    pub(super) fn keep_answer(&mut self, row: InjectionRow) {
        self.answers.push(row);
    }

    /// Marks an answer in memory as unseen. Its notifications are pending again.
    pub(super) fn mark_unseen(&mut self, call_id: &str) {
        if let Some(row) = self.answers.iter_mut().find(|row| row.call_id == call_id) {
            (row.unseen, row.taken) = (true, Vec::new());
        }
    }

    /// Its approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let answers = self.answers.iter().map(InjectionRow::bytes).sum::<usize>();
        let waiting = size_of_val(self.mailbox.pending());
        size_of::<Self>() + self.saved + waiting + self.event_cache.bytes() + answers
    }

    /// Caches an event that the mailbox has handled, if the mailbox may show it.
    pub(super) fn keep(&mut self, id: EventId, packed: &PackedEvent, to_show: bool) {
        debug_assert!(to_show || self.mailbox.references().all(|kept| kept != id));
        if to_show {
            self.event_cache.keep(id, packed.clone());
        }
    }

    /// The events that its next input may render and that are not in memory.
    pub(super) fn unloaded_events(&self) -> Vec<EventId> {
        if !self.lacks_events {
            return Vec::new();
        }
        self.lacking(self.mailbox.events_to_show())
    }

    /// Those of these events that are stored but not in memory, ordered by id.
    pub(super) fn lacking(&self, events: impl Iterator<Item = EventId>) -> Vec<EventId> {
        let mut wanted: Vec<EventId> =
            events.filter(|id| !self.event_cache.has(*id) && !self.gone.contains(id)).collect();
        wanted.sort();
        wanted.dedup();
        wanted
    }

    /// Caches the events found by a query for `wanted`; those not found are recorded as gone.
    pub(super) fn loaded(&mut self, wanted: &[EventId], found: Vec<(EventId, PackedEvent)>) {
        found.into_iter().for_each(|(id, packed)| self.event_cache.keep(id, packed));
        let (event_cache, gone) = (&self.event_cache, &mut self.gone);
        gone.extend(wanted.iter().filter(|id| !event_cache.has(**id)));
        self.lacks_events = self.mailbox.references().any(|id| !event_cache.has(id) && !gone.contains(&id));
    }

    /// Removes unreferenced events from the cache, once there are many.
    pub(super) fn drop_unreferenced(&mut self) {
        self.event_cache.drop_unreferenced(&self.mailbox);
    }

    /// Collects the hints about changed pending notifications, one per kind and commit. A `pending` hint is always
    /// sent: after an injection it names no notification, and its count says how many are left.
    pub(super) fn hint(&mut self, wake: Vec<NotificationId>) {
        if self.key.conversation().is_none() {
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
        // Wakes accumulate over the commit; the lists of pending notifications are replaced by the current ones.
        self.hint_of(HintKind::Pending, pending, |known, now| *known = now);
        if !wake.is_empty() {
            self.hint_of(HintKind::Wake, wake, |known, more| known.extend(more));
        }
        if !immediate.is_empty() {
            self.hint_of(HintKind::Immediate, immediate, |known, now| *known = now);
        }
    }

    fn hint_of(
        &mut self,
        kind: HintKind,
        notifications: Vec<NotificationId>,
        join: impl FnOnce(&mut Vec<NotificationId>, Vec<NotificationId>),
    ) {
        let Some(conversation) = self.key.conversation() else { return };
        match self.hints.iter_mut().find(|hint| hint.kind == kind) {
            Some(hint) => join(&mut hint.notifications, notifications),
            None => self.hints.push(Hint {
                user_id: conversation.owner.clone(),
                conversation_id: conversation.id.clone(),
                agent: self.agent.clone(),
                kind,
                notifications,
                count: 0,
            }),
        }
    }

    /// Builds its row for the commit.
    pub(super) fn build_rows(&mut self) -> MailboxRow {
        self.changed = false;
        let pending = self.mailbox.pending().iter().map(|one| one.id).collect();
        let state = self.mailbox.save();
        self.saved = state.len();
        MailboxRow { state, pending, due_at: self.mailbox.wakes_at() }
    }

    /// The change of the number of pending notifications since its last commit.
    pub(super) fn waiting_change(&mut self) -> i64 {
        let now = self.mailbox.pending().len();
        let before = std::mem::replace(&mut self.counted, now);
        now as i64 - before as i64
    }

    /// The rows of notifications that became pending or changed and are still pending. Ended ones already have a row.
    pub(super) fn waiting_rows(&self) -> impl Iterator<Item = NotificationRow> {
        let waiting = self.mailbox.pending().iter().filter(|one| self.waiting.binary_search(&one.id).is_ok());
        waiting.map(|notification| NotificationRow::waiting(&self.key, notification.clone()))
    }

    /// Called after a successful commit. Adds its hints to `hints`.
    pub(super) fn committed(&mut self, hints: &mut Vec<Hint>) {
        self.waiting.clear();
        // Before the commit, the answers were stored only here, so none could be dropped.
        self.answers.drain(..self.answers.len().saturating_sub(ANSWERS_HOT));
        let count = self.mailbox.pending().len();
        self.hints.sort_by_key(|hint| hint.kind);
        hints.extend(self.hints.drain(..).map(|hint| Hint { count, ..hint }));
    }
}

/// A 32-bit hash of every call id that was answered; `None` if they are not all known or too many. If a hash is
/// missing, the call is new, without a query. If it is present, the call may still be new, because hashes can collide.
struct AnsweredCalls(Option<Vec<u32>>);

impl AnsweredCalls {
    fn has_not(&self, call_id: &str) -> bool {
        self.0.as_ref().is_some_and(|marks| !marks.contains(&mark(call_id)))
    }

    fn add(&mut self, call_id: &str) {
        if let Some(marks) = &mut self.0 {
            marks.push(mark(call_id));
        }
        self.0.take_if(|marks| marks.len() > CALLS_MAX);
    }
}

/// The hash of a call id. A collision only costs a query.
fn mark(call_id: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(call_id.as_bytes());
    hasher.finish() as u32
}

/// The kind of the mailbox with this key.
fn mailbox_kind(key: &MailboxKey) -> MailboxKind {
    match key.agent().map(|agent| &**agent) {
        None => MailboxKind::Person,
        Some("main") => MailboxKind::MainAgent,
        Some(_) => MailboxKind::SubAgent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mailbox_that_knows_all_its_calls_is_sure_that_one_is_new() {
        let mut calls = AnsweredCalls(Some(Vec::new()));
        assert!(calls.has_not("call_1"));
        calls.add("call_1");
        assert!(!calls.has_not("call_1"));
        assert!(calls.has_not("call_2"));
        (2..CALLS_MAX).for_each(|number| calls.add(&number.to_string()));
        assert!(calls.has_not("another"));
        calls.add("one more");
        calls.add("one too many");
        assert!(!calls.has_not("another"));
        assert!(!AnsweredCalls(None).has_not("any"));
    }
}
