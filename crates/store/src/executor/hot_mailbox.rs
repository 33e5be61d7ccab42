//! One hot mailbox: the state machine, the events it may still show, the answers it gave lately, and what the commit that
//! is being made has to say of it.

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

/// How many answers a mailbox remembers without asking the database.
const ANSWERS_HOT: usize = 32;
/// How many calls a mailbox that was never put away knows for certain; four bytes each.
const CALLS_MAX: usize = 1024;

pub(super) struct HotMailbox {
    pub(super) key: MailboxKey,
    agent: AgentName,
    pub(super) mailbox: Mailbox,
    pub(super) event_cache: EventCache,
    /// Whether events from before it was loaded may not be in memory.
    lacks_events: bool,
    /// Those that were looked for and are gone.
    gone: HashSet<EventId>,
    answers: Vec<InjectionRow>,
    calls: AnsweredCalls,
    /// When it was last used, for whoever has to make room.
    pub(super) used: u64,
    /// How much it took when it was saved last.
    saved: usize,
    /// How many notifications wait in it, as of its last commit.
    counted: usize,
    /// Whether this commit has to save it.
    changed: bool,
    /// The notifications that wait since this commit, or wait changed; in order.
    waiting: Vec<NotificationId>,
    /// What streams will be told, one of a kind.
    hints: Vec<Hint>,
}

impl HotMailbox {
    /// A mailbox that was never saved, and so has never answered a call.
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
            // A person's mailbox is no agent's, and tells no stream.
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

    /// It is changed by this commit, which has to save it.
    pub(super) fn change(&mut self, changes: &mut Changes) {
        if !std::mem::replace(&mut self.changed, true) {
            changes.mailboxes.push(self.key.clone());
        }
    }

    /// If it was saved at a time that has not come yet, all its times move back with the clock.
    pub(super) fn set_back(&mut self, now: Time, changes: &mut Staged) {
        if self.mailbox.set_back(now) {
            self.change(changes);
            self.waiting = self.mailbox.pending().iter().map(|one| one.id).collect();
            self.waiting.sort();
        }
    }

    /// A notification waits, or what waits of it has changed; its row is made once, when the commit is.
    pub(super) fn wait(&mut self, id: NotificationId) {
        // Ids are minted in order, so it nearly always goes to the end.
        if let Err(at) = self.waiting.binary_search(&id) {
            self.waiting.insert(at, id);
        }
    }

    /// The answer it gave to this call, if that was lately.
    pub(super) fn answer(&self, call_id: &str) -> Option<&InjectionRow> {
        self.answers.iter().find(|row| row.call_id == call_id)
    }

    /// Whether it is sure that it never answered this call: then nobody need be asked.
    pub(super) fn never_answered(&self, call_id: &str) -> bool {
        self.calls.has_not(call_id)
    }

    pub(super) fn remember(&mut self, row: InjectionRow) {
        self.calls.add(&row.call_id);
        self.answers.retain(|known| known.call_id != row.call_id);
        self.answers.push(row);
    }

    /// How much memory it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let answers = self.answers.iter().map(InjectionRow::bytes).sum::<usize>();
        let waiting = size_of_val(self.mailbox.pending());
        size_of::<Self>() + self.saved + waiting + self.event_cache.bytes() + answers
    }

    /// Keeps an event that the mailbox has decided on, if it may have to show it.
    pub(super) fn keep(&mut self, id: EventId, packed: &PackedEvent, to_show: bool) {
        debug_assert!(to_show || self.mailbox.references().all(|kept| kept != id));
        if to_show {
            self.event_cache.keep(id, packed.clone());
        }
    }

    /// The events it may have to show at its next input that are not in memory.
    pub(super) fn unloaded_events(&self) -> Vec<EventId> {
        if !self.lacks_events {
            return Vec::new();
        }
        self.lacking(self.mailbox.events_to_show())
    }

    /// Which of these events are stored and not in memory, in order.
    pub(super) fn lacking(&self, events: impl Iterator<Item = EventId>) -> Vec<EventId> {
        let mut wanted: Vec<EventId> =
            events.filter(|id| !self.event_cache.has(*id) && !self.gone.contains(id)).collect();
        wanted.sort();
        wanted.dedup();
        wanted
    }

    /// These events were looked for, and these were found.
    pub(super) fn loaded(&mut self, wanted: &[EventId], found: Vec<(EventId, PackedEvent)>) {
        found.into_iter().for_each(|(id, packed)| self.event_cache.keep(id, packed));
        let (event_cache, gone) = (&self.event_cache, &mut self.gone);
        gone.extend(wanted.iter().filter(|id| !event_cache.has(**id)));
        self.lacks_events = self.mailbox.references().any(|id| !event_cache.has(id) && !gone.contains(&id));
    }

    /// Forgets events nobody refers to, once there are many.
    pub(super) fn drop_unreferenced(&mut self) {
        self.event_cache.drop_unreferenced(&self.mailbox);
    }

    /// Gathers what streams will be told of a change in what waits, once per kind however often it changes within a
    /// commit. `pending` is always told: where mail was taken it names no notification, and gives the count that is left.
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
        // What rang stays rung; what waits is what waits now.
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

    /// What this commit writes of it.
    pub(super) fn build_rows(&mut self) -> MailboxRow {
        self.changed = false;
        let pending = self.mailbox.pending().iter().map(|one| one.id).collect();
        let state = self.mailbox.save();
        self.saved = state.len();
        MailboxRow { state, pending, due_at: self.mailbox.wakes_at() }
    }

    /// How many more notifications wait in it than after its last commit.
    pub(super) fn waiting_change(&mut self) -> i64 {
        let now = self.mailbox.pending().len();
        let before = std::mem::replace(&mut self.counted, now);
        now as i64 - before as i64
    }

    /// The rows of what waits since this commit. What has ended meanwhile has its row already.
    pub(super) fn waiting_rows(&self) -> impl Iterator<Item = NotificationRow> {
        let waiting = self.mailbox.pending().iter().filter(|one| self.waiting.binary_search(&one.id).is_ok());
        waiting.map(|notification| NotificationRow::waiting(&self.key, notification.clone()))
    }

    /// The commit succeeded: this is what streams are told of it.
    pub(super) fn committed(&mut self, hints: &mut Vec<Hint>) {
        self.waiting.clear();
        // Until now they were nowhere else.
        self.answers.drain(..self.answers.len().saturating_sub(ANSWERS_HOT));
        let count = self.mailbox.pending().len();
        self.hints.sort_by_key(|hint| hint.kind);
        hints.extend(self.hints.drain(..).map(|hint| Hint { count, ..hint }));
    }
}

/// A mark of each call that was ever answered; none where they are not known, or too many. Two calls may have the same
/// mark, so that one that is here says nothing. One that is not here tells a new call without a look at the database.
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

/// Whoever finds calls with one mark has them looked up, as every call is elsewhere.
fn mark(call_id: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(call_id.as_bytes());
    hasher.finish() as u32
}

/// Whose mailbox it is.
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
