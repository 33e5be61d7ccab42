//! The backend in memory: the simplest correct implementation, and the model for SQLite.

mod chats;
mod list;
mod notify;
mod people;
mod sessions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwire_core::notification::EndReason;
use bellwire_core::{EventId, Mailbox, Notification, NotificationId, Time};

use crate::command::{IdempotencyKey, InjectionView, Message, NotificationView, Token, Trace};
use crate::conversation_list::{ConversationQuery, ListedConversation};
use crate::damage::Damage;
use crate::erasing::user_digest;
use crate::error::{ErrorKind, StoreError};
use crate::event_list::{EventQuery, ListedEvent, NamedEvent};
use crate::executor::{DueMailboxes, LoadedMailbox, MailboxSummary, RowSource};
use crate::packed_event::PackedEvent;
use crate::people::OutboxCounts;
use crate::refusals::NoRefusalCache;
use crate::rows::{
    Changes, ClientEventIdRow, ConversationKey, ConversationRow, EventRow, IdempotencyRow, InjectionRow, MailboxKey,
    MailboxRow, NotificationRow, SupersededRow,
};
use crate::single_writer::{Reader, SingleWriterStore};
use crate::verdicts::Verdicts;
use crate::writer::{self, Backend, EraseProgress, Erased, PruneCutoffs, Pruned, StoreOptions};

/// A store whose data is lost at the end of the process.
pub type MemoryStore = SingleWriterStore<Memory>;

/// The tables, shared by the writer and the readers.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Tables>>);

#[derive(Default)]
struct Tables {
    conversations: BTreeMap<ConversationKey, ConversationRow>,
    events: BTreeMap<EventId, EventRow>,
    client_event_id: HashMap<(String, String), ClientEventIdRow>,
    idempotency_rows: Vec<IdempotencyRow>,
    superseded: Vec<SupersededRow>,
    mailboxes: BTreeMap<MailboxKey, MailboxRow>,
    notifications: BTreeMap<NotificationId, NotificationRow>,
    /// In the order of their answers, with their sequence number.
    injections: Vec<(i64, InjectionRow)>,
    people: people::PeopleTables,
    notify: notify::NotifyTables,
    tokens: BTreeMap<String, Token>,
    sessions: sessions::SessionTables,
    /// The digests of erased people's ids, and when they were erased.
    erased_users: HashMap<[u8; 32], Time>,
}

impl MemoryStore {
    /// An empty store.
    pub fn open(opening: StoreOptions) -> Self {
        let tables = Memory::default();
        opening.clock.start(None);
        // The model uses no refusal cache: its rows decide every call.
        let (writer, running) =
            writer::make(tables.clone(), opening, Arc::new(NoRefusalCache)).expect("empty tables are counted");
        tokio::spawn(running);
        Self { writer, reader: tables }
    }
}

impl Memory {
    /// No code panics in the middle of a change, so the tables are consistent even if the lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowSource for Memory {
    async fn conversation(&mut self, key: &ConversationKey) -> Result<Option<ConversationRow>, StoreError> {
        Ok(self.lock().conversations.get(key).cloned())
    }

    async fn conversations_named(&mut self, id: &str) -> Result<Vec<ConversationRow>, StoreError> {
        Ok(self.lock().named(id).cloned().collect())
    }

    async fn open_conversations(
        &mut self,
        user_id: &str,
        since: Time,
        limit: usize,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let tables = self.lock();
        let open = tables.conversations.values().filter(|row| &*row.key.owner == user_id && row.seen_at >= since);
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|row| std::cmp::Reverse(row.seen_at));
        Ok(open.into_iter().take(limit).map(|row| row.key.id.clone()).collect())
    }

    async fn mailbox(&mut self, key: &MailboxKey) -> Result<Option<LoadedMailbox>, StoreError> {
        let tables = self.lock();
        let Some(row) = tables.mailboxes.get(key) else { return Ok(None) };
        let waiting = tables.notifications.values().filter(|row| row.key == *key && row.end_reason.is_none());
        let pending: Vec<Notification> = waiting.map(|row| row.notification.clone()).collect();
        let mailbox = Mailbox::load(&row.state, pending)
            .map_err(|error| StoreError::new(ErrorKind::Damaged, error.to_string()))?;
        Ok(Some(LoadedMailbox { mailbox, has_guessable_secret: false, saved: row.state.len() }))
    }

    async fn mailbox_summary(&mut self, key: &MailboxKey, now: Time) -> Result<Option<MailboxSummary>, StoreError> {
        let tables = self.lock();
        let Some(row) = tables.mailboxes.get(key) else { return Ok(None) };
        let mailbox = Mailbox::load(&row.state, Vec::new())
            .map_err(|error| StoreError::new(ErrorKind::Damaged, error.to_string()))?;
        Ok(Some(MailboxSummary { working: mailbox.is_working(now), pending: row.pending.len() }))
    }

    async fn sub_agents(&mut self, key: &ConversationKey, limit: usize) -> Result<Vec<Arc<str>>, StoreError> {
        let tables = self.lock();
        let is_one = |mailbox: &MailboxKey| mailbox.is_in(key) && mailbox.is_sub_agents();
        let theirs = tables.mailboxes.iter().filter(|(key, row)| is_one(key) && !row.pending.is_empty());
        Ok(theirs.filter_map(|(mailbox, _)| mailbox.agent().cloned()).take(limit).collect())
    }

    async fn disabled(&mut self, user_id: &str) -> Result<Vec<String>, StoreError> {
        Ok(self
            .lock()
            .people
            .settings
            .get(user_id)
            .map(|settings| settings.disabled_subscribers.clone())
            .unwrap_or_default())
    }

    async fn client_event_id(
        &mut self,
        owner: &str,
        id: &str,
    ) -> Result<Option<(ClientEventIdRow, EventRow)>, StoreError> {
        let tables = self.lock();
        let row = tables.client_event_id.get(&(owner.to_owned(), id.to_owned()));
        Ok(row.and_then(|row| Some((row.clone(), tables.events.get(&row.event_id)?.clone()))))
    }

    async fn idempotency_row(&mut self, key: &IdempotencyKey) -> Result<Option<IdempotencyRow>, StoreError> {
        let same = |row: &&IdempotencyRow| {
            row.key.token_id == key.token_id && row.key.route == key.route && row.key.key == key.key
        };
        // The latest row, because a key may be used again after a day.
        Ok(self.lock().idempotency_rows.iter().rev().find(same).cloned())
    }

    async fn injection(&mut self, key: &MailboxKey, call_id: &str) -> Result<Option<InjectionRow>, StoreError> {
        let tables = self.lock();
        let found = tables.injections.iter().find(|(_, row)| row.key == *key && row.call_id == call_id);
        Ok(found.map(|(_, row)| row.clone()))
    }

    async fn events(&mut self, ids: &[EventId]) -> Result<Vec<(EventId, PackedEvent)>, StoreError> {
        let tables = self.lock();
        Ok(ids.iter().filter_map(|id| tables.events.get(id)).map(|row| (row.event.id(), row.packed.clone())).collect())
    }

    async fn verdicts(&mut self, event: EventId) -> Result<Option<Arc<Verdicts>>, StoreError> {
        Ok(self.lock().events.get(&event).map(|row| row.verdicts.clone()))
    }

    async fn due(
        &mut self,
        now: Time,
        limit: usize,
        damage: &Damage,
        erasing: &BTreeSet<String>,
    ) -> Result<DueMailboxes, StoreError> {
        let tables = self.lock();
        let is_due = |(key, row): &(&MailboxKey, &MailboxRow)| {
            row.due_at <= now && !damage.has_mailbox(key) && !erasing.contains(&**key.owner())
        };
        let mut due: Vec<_> = tables.mailboxes.iter().filter(is_due).collect();
        due.sort_by_key(|(_, row)| row.due_at);
        let more = due.len() > limit;
        let rows: Vec<MailboxKey> = due.into_iter().take(limit).map(|(key, _)| key.clone()).collect();
        Ok(DueMailboxes { read: rows.len(), found: rows.into(), more })
    }

    async fn next_due(&mut self, after: Time) -> Result<Time, StoreError> {
        let tables = self.lock();
        let due = tables.mailboxes.values().map(|row| row.due_at).chain(tables.people.reminders_due());
        let due = due.chain(tables.notify.leases());
        Ok(due.filter(|at| *at > after).min().unwrap_or(Time::NEVER))
    }

    async fn next_delivery(&mut self, after: Time) -> Result<Time, StoreError> {
        Ok(self.lock().people.deliveries_due().filter(|at| *at > after).min().unwrap_or(Time::NEVER))
    }
}

impl Backend for Memory {
    async fn commit(&mut self, changes: &Changes) -> Result<OutboxCounts, StoreError> {
        let mut tables = self.lock();
        let tables = &mut *tables;
        tables.conversations.extend(changes.conversations.iter().map(|(key, row)| (key.clone(), row.clone())));
        tables.events.extend(changes.events.iter().map(|row| (row.event.id(), row.clone())));
        for row in &changes.client_event_ids {
            tables.client_event_id.insert((row.token_owner.clone(), row.id.clone()), row.clone());
        }
        tables.idempotency_rows.extend(changes.idempotency_rows.iter().cloned());
        tables.superseded.extend(changes.superseded.iter().cloned());
        tables.mailboxes.extend(changes.mailbox_rows.iter().cloned());
        tables.notifications.extend(changes.notifications.iter().map(|(id, row)| (*id, row.clone())));
        for row in &changes.injections {
            let next = tables.injections.last().map_or(1, |(sequence, _)| sequence + 1);
            tables.injections.push((next, row.clone()));
        }
        for (key, call_id) in &changes.unseen {
            for (_, row) in tables.injections.iter_mut().filter(|(_, row)| row.key == *key && row.call_id == *call_id) {
                row.unseen = true;
                row.messages.clear();
            }
        }
        for (user, (settings, _)) in &changes.settings {
            tables.people.settings.insert(user.clone(), settings.clone());
        }
        let outbox = tables.people.commit(&changes.people);
        tables.notify.commit(&changes.notify);
        tables.tokens.extend(changes.tokens.iter().map(|(id, token)| (id.clone(), token.clone())));
        tables.sessions.commit(&changes.sessions);
        Ok(outbox)
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn probe_tables(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn prune(&mut self, before: &PruneCutoffs, limit: usize) -> Result<Pruned, StoreError> {
        let mut tables = self.lock();
        let waiting: std::collections::HashSet<EventId> = tables
            .notifications
            .values()
            .filter(|row| row.end_reason.is_none())
            .flat_map(|row| row.notification.events.iter().map(|entry| entry.event))
            .collect();
        let old = tables.events.iter().filter(|(id, row)| row.accepted_at < before.events && !waiting.contains(id));
        let old: Vec<EventId> = old.map(|(id, _)| *id).take(limit).collect();
        old.iter().for_each(|id| drop(tables.events.remove(id)));
        let answers = tables.injections.len();
        tables
            .injections
            .retain(|(_, row)| row.at >= before.events && (row.at >= before.answers || !row.messages.is_empty()));
        let mut gone = old.len() + answers - tables.injections.len();
        gone += tables.people.prune(before.inbox, limit);
        gone += tables.sessions.prune(before.sessions);
        gone += tables.people.prune_unread(before.unread_inbox, limit);
        gone += tables.notify.prune(before);
        gone += tables.people.chats.prune(before);
        tables.idempotency_rows.retain(|row| row.at >= before.idempotency_keys);
        tables.erased_users.retain(|_, at| *at >= before.answers);
        tables.notifications.retain(|_, row| row.end_reason.is_none() || row.notification.since >= before.events);
        let events = &tables.events;
        let known: Vec<bool> = tables.superseded.iter().map(|row| events.contains_key(&row.event_id)).collect();
        let mut known = known.into_iter();
        tables.superseded.retain(|_| known.next().unwrap_or(false));
        let pruned = tables.delete_idle(before.conversations, limit);
        Ok(Pruned { rows: gone + pruned.rows, ..pruned })
    }

    fn unfinished_erasures(&self) -> Vec<String> {
        Vec::new()
    }

    async fn erase(&mut self, user_id: &str, _limit: usize, now: Time) -> Result<Erased, StoreError> {
        let mut tables = self.lock();
        let (waiting, rows) = (tables.waiting().count(), tables.rows());
        let outbox = tables.erase(user_id);
        let (pending, rows) = (waiting - tables.waiting().count(), rows - tables.rows());
        let digest = user_digest(user_id);
        if rows > 0 {
            tables.erased_users.insert(digest, now);
        }
        let known = tables.erased_users.contains_key(&digest);
        Ok(Erased { rows, looked: 0, pending, outbox, progress: EraseProgress::Done { known } })
    }

    fn waiting(&self) -> Result<usize, StoreError> {
        Ok(self.lock().waiting().count())
    }

    fn outbox(&self) -> Result<OutboxCounts, StoreError> {
        Ok(self.lock().people.outbox())
    }

    async fn close(self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Tables {
    /// Conversations with this id, the registered one first; at most two.
    fn named(&self, id: &str) -> impl Iterator<Item = &ConversationRow> {
        let mut rows: Vec<_> = self.conversations.values().filter(|row| &*row.key.id == id).collect();
        rows.sort_by_key(|row| !row.registered);
        rows.into_iter().take(2)
    }

    /// Deletes idle conversations and mailboxes last used before this time.
    fn delete_idle(&mut self, before: Time, limit: usize) -> Pruned {
        let old = self.conversations.values().filter(|row| row.created_at.max(row.seen_at) < before);
        let conversations: Vec<_> =
            old.filter(|row| self.is_idle(&row.key)).map(|row| row.key.clone()).take(limit).collect();
        let people = self.mailboxes.iter().filter(|(key, row)| key.conversation().is_none() && row.is_idle());
        let people = people.filter(|(key, _)| self.is_person_idle(key.owner(), before));
        let mailboxes: Vec<_> = people.map(|(key, _)| key.clone()).take(limit).collect();
        let rows = self.conversations.len() + self.mailboxes.len();
        self.conversations.retain(|key, _| !conversations.contains(key));
        self.mailboxes.retain(|key, _| {
            !mailboxes.contains(key) && !key.conversation().is_some_and(|key| conversations.contains(key))
        });
        let rows = rows - self.conversations.len() - self.mailboxes.len();
        Pruned { rows, read: 0, conversations, mailboxes }
    }

    fn is_idle(&self, key: &ConversationKey) -> bool {
        let mut mailboxes = self.mailboxes.iter().filter(|(mailbox, _)| mailbox.is_in(key));
        mailboxes.all(|(_, row)| row.is_idle()) && !self.people.waits(&key.owner, Some(&key.id))
    }

    fn is_person_idle(&self, user_id: &str, before: Time) -> bool {
        let mut conversations = self.conversations.values().filter(|row| &*row.key.owner == user_id);
        conversations.all(|row| row.seen_at < before)
            && !self.people.was_notified_since(user_id, before)
            && !self.people.waits(user_id, None)
    }

    fn waiting(&self) -> impl Iterator<Item = &NotificationRow> {
        self.notifications.values().filter(|row| row.end_reason.is_none())
    }

    /// How many rows there are that belong to a person, or may.
    fn rows(&self) -> usize {
        let own = [self.conversations.len(), self.events.len(), self.mailboxes.len(), self.notifications.len()];
        let answers = [self.injections.len(), self.tokens.len(), self.idempotency_rows.len(), self.people.rows()];
        own.into_iter().chain(answers).chain([self.sessions.rows()]).sum()
    }

    /// Returns the change of the numbers of waiting deliveries.
    fn erase(&mut self, user: &str) -> OutboxCounts {
        self.conversations.retain(|key, _| &*key.owner != user);
        self.events.retain(|_, row| &*row.owner != user);
        let events = &self.events;
        self.client_event_id.retain(|_, row| events.contains_key(&row.event_id));
        self.mailboxes.retain(|key, _| &**key.owner() != user);
        self.notifications.retain(|_, row| &**row.key.owner() != user);
        self.injections.retain(|(_, row)| &**row.key.owner() != user);
        let outbox = self.people.erase(user);
        self.notify.erase(user);
        let events = &self.events;
        self.superseded.retain(|row| events.contains_key(&row.event_id));
        let of_user = |token: &Token| token.user_id.as_deref() == Some(user);
        let mut gone: Vec<String> =
            self.tokens.values().filter(|token| of_user(token)).map(|token| token.id.clone()).collect();
        gone.extend(self.sessions.erase(user));
        self.idempotency_rows.retain(|row| !gone.contains(&row.key.token_id) && !row.people.contains(user));
        self.tokens.retain(|_, token| !of_user(token));
        outbox
    }
}

impl Reader for Memory {
    async fn has_idempotency_row(&self, key: &IdempotencyKey) -> Result<bool, StoreError> {
        Ok(self.clone().idempotency_row(key).await?.is_some())
    }

    async fn owners(&self, conversation_id: &str) -> Result<Vec<(String, bool)>, StoreError> {
        Ok(self.lock().named(conversation_id).map(|row| (row.key.owner.to_string(), row.registered)).collect())
    }

    async fn open_count(&self, user_id: &str, since: Time, limit: usize) -> Result<usize, StoreError> {
        Ok(self.clone().open_conversations(user_id, since, limit).await?.len())
    }

    async fn has(&self, user_id: &str, conversation_id: &str) -> Result<bool, StoreError> {
        Ok(self.lock().conversations.contains_key(&ConversationKey::new(user_id, conversation_id)))
    }

    async fn events(&self, query: &EventQuery) -> Result<(Vec<ListedEvent>, Option<EventId>), StoreError> {
        Ok(self.lock().event_page(query))
    }

    async fn conversations(&self, query: &ConversationQuery) -> Result<Vec<ListedConversation>, StoreError> {
        Ok(self.lock().conversation_page(query))
    }

    async fn messages(
        &self,
        owner: &str,
        conversation_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<(Vec<Message>, Option<i64>), StoreError> {
        let tables = self.lock();
        let (key, first) = (ConversationKey::new(owner, conversation_id), crate::rows::first_injection(after));
        let rows = tables.injections.iter().filter(|(sequence, row)| *sequence >= first && row.key.is_in(&key));
        Ok(crate::rows::page(rows.map(|(sequence, row)| (*sequence, row.messages.clone())), after, limit))
    }

    async fn messages_before(
        &self,
        owner: &str,
        conversation_id: &str,
        before: i64,
        limit: usize,
    ) -> Result<(Vec<Message>, Option<i64>), StoreError> {
        let tables = self.lock();
        let (key, last) = (ConversationKey::new(owner, conversation_id), crate::rows::first_injection(before));
        let rows = tables.injections.iter().rev().filter(|(sequence, row)| *sequence <= last && row.key.is_in(&key));
        Ok(crate::rows::page_before(rows.map(|(sequence, row)| (*sequence, row.messages.clone())), before, limit))
    }

    async fn events_named(&self, client_event_id: &str, limit: usize) -> Result<Vec<NamedEvent>, StoreError> {
        let tables = self.lock();
        let mut rows: Vec<_> = tables.client_event_id.values().filter(|row| row.id == client_event_id).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.event_id)));
        let events = rows.into_iter().take(limit).filter_map(|row| tables.events.get(&row.event_id));
        let named = |row: &EventRow| NamedEvent {
            event_id: row.event.id(),
            owner: row.owner.to_string(),
            conversation_id: row.event.conversation_id().map(str::to_owned),
            kind: row.event.kind().to_string(),
            accepted_at: row.accepted_at,
        };
        Ok(events.map(named).collect())
    }

    async fn trace(&self, token_owner: &str, id: &str) -> Result<Option<Trace>, StoreError> {
        let tables = self.lock();
        let client_event_id =
            tables.client_event_id.get(&(token_owner.to_owned(), id.to_owned())).map(|row| row.event_id);
        let Some(row) = client_event_id.or_else(|| crate::event_id(id)).and_then(|id| tables.events.get(&id)) else {
            return Ok(None);
        };
        let ids = row.verdicts.iter().filter_map(|verdict| verdict.notification_id).map(NotificationId);
        let notifications: Vec<_> = ids.filter_map(|id| tables.notifications.get(&id)).map(view).collect();
        let shown = |injection: &InjectionRow| {
            notifications.iter().any(|one: &NotificationView| {
                one.call_id.as_deref() == Some(&injection.call_id)
                    && injection.key.columns() == (&*row.owner, one.conversation_id.as_str(), one.agent.as_str())
            })
        };
        let injections = tables.injections.iter().map(|(_, injection)| injection).filter(|one| shown(one));
        let injections = injections.map(injection_view).collect();
        let superseded = tables.superseded.iter().filter(|one| one.event_id == row.event.id());
        let superseded = superseded.map(SupersededRow::view).collect();
        Ok(Some(Trace {
            event: row.event.to_stored(),
            owner: row.owner.to_string(),
            accepted_at: row.accepted_at,
            filtered: row.filtered,
            verdicts: row.verdicts.to_vec(),
            notifications,
            injections,
            superseded,
            person_traces: tables
                .people
                .person_traces(&row.owner, row.verdicts.iter().filter_map(|verdict| verdict.notification_id)),
        }))
    }

    async fn token_by_secret(&self, hash: &[u8]) -> Result<Option<Token>, StoreError> {
        Ok(self.lock().tokens.values().find(|token| token.secret_hash == hash).cloned())
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        // Ids start with the time, and the rows are ordered by id.
        Ok(self.lock().waiting().next().map(|row| crate::minted_at(row.notification.id.0)))
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let mut tokens: Vec<Token> = self.lock().tokens.values().cloned().collect();
        tokens.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(tokens)
    }

    async fn close(&self) {}
}

fn injection_view(row: &InjectionRow) -> InjectionView {
    InjectionView {
        conversation_id: row.key.columns().1.to_owned(),
        agent: row.key.columns().2.to_owned(),
        call_id: row.call_id.clone(),
        point: row.point.to_string(),
        at: row.at,
        unseen: row.unseen,
    }
}

fn view(row: &NotificationRow) -> NotificationView {
    NotificationView {
        id: row.notification.id,
        subscriber_id: row.notification.subscriber.to_string(),
        conversation_id: row.key.columns().1.to_owned(),
        agent: row.key.columns().2.to_owned(),
        priority: row.notification.priority.to_string(),
        inject_at: row.notification.inject_at.to_string(),
        state: row.end_reason.as_ref().map_or("pending", EndReason::name).to_owned(),
        reason: row.end_reason.as_ref().map(EndReason::reason),
        content: row.content.clone(),
        call_id: row.call_id.clone(),
        template_error: row.template_error.clone(),
        created_at: row.notification.since,
        ended_at: row.ended_at,
    }
}
