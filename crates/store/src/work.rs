//! Counts the work of the writer per step. Work is counted, not timed, so that tests can check the cost of the worst
//! command.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwire_core::person::ChannelName;
use bellwire_core::{EventId, NotificationId, Time};
use uuid::Uuid;

use crate::chats::{
    ButtonRow, ChannelUpdate, ChatKey, ChatMessageRow, CodeRow, KeptMessageRow, LeaseRow, Pairing, StrangerRow,
};
use crate::command::IdempotencyKey;
use crate::damage::{Damage, Found};
use crate::error::StoreError;
use crate::executor::{
    ChatRowSource, DueMailboxes, LoadedMailbox, MailboxSummary, NotifyRowSource, PeopleRowSource, RowSource,
    SessionRowSource, StoredItem,
};
use crate::notify::{AnswerCount, NotifyKey, NotifyRow};
use crate::packed_event::PackedEvent;
use crate::people::{
    ConfirmationRow, Delivery, DeliveryState, DirectMessage, InboxItem, LoadedPerson, OutboxCounts, Reminder,
};
use crate::rows::{
    Changes, ClientEventIdRow, ConversationKey, ConversationRow, EventRow, IdempotencyRow, InjectionRow, MailboxKey,
};
use crate::sessions::{Session, SignInCode};
use crate::verdicts::Verdicts;
use crate::writer::{Backend, Erased, PruneCutoffs, Pruned};

/// The work of one commit.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rows read by the writer; a look-up that finds nothing counts as one.
    pub read: usize,
    /// Rows written or deleted.
    pub written: usize,
    /// Items rendered for injections.
    pub rendered: usize,
    /// Events, injections and timers that mailboxes decided on.
    pub handled: usize,
}

impl Work {
    /// The sum of all kinds of work.
    pub fn total(self) -> usize {
        self.read + self.written + self.rendered + self.handled
    }
}

/// A backend that counts the rows it returns and deletes.
pub(crate) struct Counted<B> {
    backend: B,
    read: usize,
    deleted: usize,
    /// The value of `read` at which the current command must stop reading.
    read_max: usize,
}

impl<B> Counted<B> {
    pub(crate) fn new(backend: B) -> Self {
        Self { backend, read: 0, deleted: 0, read_max: usize::MAX }
    }

    /// The work of the current step, including the rows that these changes will write.
    pub(crate) fn work(&self, changes: &Changes) -> Work {
        Work {
            read: self.read,
            written: self.deleted + changes.rows(),
            rendered: changes.rendered,
            handled: changes.handled,
        }
    }

    /// Resets the counters at the start of a step.
    pub(crate) fn begin_step(&mut self) {
        (self.read, self.deleted) = (0, 0);
    }

    /// Starts a command that may read about this many rows.
    pub(crate) fn allow(&mut self, rows: usize) {
        self.read_max = self.read.saturating_add(rows);
    }

    fn count<T>(&mut self, found: Result<T, StoreError>, rows: impl FnOnce(&T) -> usize) -> Result<T, StoreError> {
        self.read += found.as_ref().map_or(1, |found| rows(found).max(1));
        found
    }

    fn one<T>(&mut self, found: Result<T, StoreError>) -> Result<T, StoreError> {
        self.count(found, |_| 1)
    }

    fn found<T>(&mut self, found: Result<Found<T>, StoreError>) -> Result<Found<T>, StoreError> {
        self.count(found, |found| found.rows.len() + found.damaged.len())
    }

    fn list<T>(&mut self, found: Result<Vec<T>, StoreError>) -> Result<Vec<T>, StoreError> {
        self.count(found, Vec::len)
    }
}

impl<B: Backend> Backend for Counted<B> {
    async fn commit(&mut self, changes: &Changes) -> Result<OutboxCounts, StoreError> {
        self.backend.commit(changes).await
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        self.backend.probe().await
    }

    async fn probe_tables(&mut self) -> Result<(), StoreError> {
        self.backend.probe_tables().await
    }

    async fn prune(&mut self, before: &PruneCutoffs, limit: usize) -> Result<Pruned, StoreError> {
        let gone = self.backend.prune(before, limit).await?;
        self.deleted += gone.rows;
        self.read += gone.read;
        Ok(gone)
    }

    fn unfinished_erasures(&self) -> Vec<String> {
        self.backend.unfinished_erasures()
    }

    async fn erase(&mut self, user_id: &str, limit: usize, now: Time) -> Result<Erased, StoreError> {
        self.backend.erase(user_id, limit, now).await
    }

    fn waiting(&self) -> Result<usize, StoreError> {
        self.backend.waiting()
    }

    fn outbox(&self) -> Result<OutboxCounts, StoreError> {
        self.backend.outbox()
    }

    async fn close(self) -> Result<(), StoreError> {
        self.backend.close().await
    }
}

impl<B: Backend> RowSource for Counted<B> {
    fn is_spent(&self) -> bool {
        self.read >= self.read_max
    }

    fn reads_left(&self) -> usize {
        self.read_max.saturating_sub(self.read)
    }

    fn rows_read(&self) -> usize {
        self.read
    }

    async fn conversation(&mut self, key: &ConversationKey) -> Result<Option<ConversationRow>, StoreError> {
        let found = self.backend.conversation(key).await;
        self.one(found)
    }

    async fn conversations_named(&mut self, id: &str) -> Result<Vec<ConversationRow>, StoreError> {
        let found = self.backend.conversations_named(id).await;
        self.list(found)
    }

    async fn open_conversations(
        &mut self,
        user_id: &str,
        since: Time,
        limit: usize,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let found = self.backend.open_conversations(user_id, since, limit).await;
        self.list(found)
    }

    async fn mailbox(&mut self, key: &MailboxKey) -> Result<Option<LoadedMailbox>, StoreError> {
        let found = self.backend.mailbox(key).await;
        self.count(found, |loaded| loaded.as_ref().map_or(1, LoadedMailbox::rows))
    }

    async fn mailbox_summary(&mut self, key: &MailboxKey, now: Time) -> Result<Option<MailboxSummary>, StoreError> {
        let found = self.backend.mailbox_summary(key, now).await;
        self.one(found)
    }

    async fn sub_agents(&mut self, key: &ConversationKey, limit: usize) -> Result<Vec<Arc<str>>, StoreError> {
        let found = self.backend.sub_agents(key, limit).await;
        self.list(found)
    }

    async fn disabled(&mut self, user_id: &str) -> Result<Vec<String>, StoreError> {
        let found = self.backend.disabled(user_id).await;
        self.one(found)
    }

    async fn client_event_id(
        &mut self,
        owner: &str,
        id: &str,
    ) -> Result<Option<(ClientEventIdRow, EventRow)>, StoreError> {
        let found = self.backend.client_event_id(owner, id).await;
        self.count(found, |found| if found.is_some() { 2 } else { 1 })
    }

    async fn idempotency_row(&mut self, key: &IdempotencyKey) -> Result<Option<IdempotencyRow>, StoreError> {
        let found = self.backend.idempotency_row(key).await;
        self.one(found)
    }

    async fn injection(&mut self, key: &MailboxKey, call_id: &str) -> Result<Option<InjectionRow>, StoreError> {
        let found = self.backend.injection(key, call_id).await;
        // The row contains the notifications that the call took.
        self.count(found, |row| row.as_ref().map_or(1, |row| 1 + row.taken.len()))
    }

    async fn events(&mut self, ids: &[EventId]) -> Result<Vec<(EventId, PackedEvent)>, StoreError> {
        let found = self.backend.events(ids).await;
        self.list(found)
    }

    async fn verdicts(&mut self, event: EventId) -> Result<Option<Arc<Verdicts>>, StoreError> {
        let found = self.backend.verdicts(event).await;
        self.one(found)
    }

    async fn due(
        &mut self,
        now: Time,
        limit: usize,
        damage: &Damage,
        erasing: &BTreeSet<String>,
    ) -> Result<DueMailboxes, StoreError> {
        let found = self.backend.due(now, limit, damage, erasing).await;
        self.count(found, |due| due.read.max(due.found.rows.len()))
    }

    async fn next_due(&mut self, after: Time) -> Result<Time, StoreError> {
        let found = self.backend.next_due(after).await;
        self.one(found)
    }

    async fn next_delivery(&mut self, after: Time) -> Result<Time, StoreError> {
        let found = self.backend.next_delivery(after).await;
        self.one(found)
    }
}

impl<B: Backend> ChatRowSource for Counted<B> {
    async fn pairing(&mut self, chat: &ChatKey) -> Result<Option<Pairing>, StoreError> {
        let found = self.backend.pairing(chat).await;
        self.one(found)
    }

    async fn pairing_of(&mut self, user_id: &str, channel: &ChannelName) -> Result<Option<Pairing>, StoreError> {
        let found = self.backend.pairing_of(user_id, channel).await;
        self.one(found)
    }

    async fn pairing_code(&mut self, code: &[u8]) -> Result<Option<CodeRow>, StoreError> {
        let found = self.backend.pairing_code(code).await;
        self.one(found)
    }

    async fn stranger(&mut self, chat: &ChatKey) -> Result<Option<StrangerRow>, StoreError> {
        let found = self.backend.stranger(chat).await;
        self.one(found)
    }

    async fn has_strangers(&mut self, count: usize) -> Result<bool, StoreError> {
        let found = self.backend.has_strangers(count).await;
        self.one(found)
    }

    async fn is_handled(&mut self, channel: &ChannelName, id: i64) -> Result<Option<bool>, StoreError> {
        let found = self.backend.is_handled(channel, id).await;
        self.one(found)
    }

    async fn waiting_updates(&mut self, channel: &ChannelName, limit: usize) -> Result<Vec<ChannelUpdate>, StoreError> {
        let found = self.backend.waiting_updates(channel, limit).await;
        self.list(found)
    }

    async fn chat_message(&mut self, chat: &ChatKey, message_id: i64) -> Result<Option<ChatMessageRow>, StoreError> {
        let found = self.backend.chat_message(chat, message_id).await;
        self.one(found)
    }

    async fn messages_with_buttons(
        &mut self,
        notification_id: NotificationId,
        limit: usize,
    ) -> Result<Vec<ChatMessageRow>, StoreError> {
        let found = self.backend.messages_with_buttons(notification_id, limit).await;
        self.list(found)
    }

    async fn due_edits(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
    ) -> Result<Vec<ChatMessageRow>, StoreError> {
        let found = self.backend.due_edits(channel, now, limit).await;
        self.list(found)
    }

    async fn button(&mut self, token: &[u8]) -> Result<Option<ButtonRow>, StoreError> {
        let found = self.backend.button(token).await;
        self.one(found)
    }

    async fn kept_message(&mut self, id: Uuid) -> Result<Option<KeptMessageRow>, StoreError> {
        let found = self.backend.kept_message(id).await;
        self.one(found)
    }

    async fn lease(&mut self, name: &str) -> Result<Option<LeaseRow>, StoreError> {
        let found = self.backend.lease(name).await;
        self.one(found)
    }
}

impl<B: Backend> SessionRowSource for Counted<B> {
    async fn sign_in_code(&mut self, code: &[u8]) -> Result<Option<SignInCode>, StoreError> {
        let found = self.backend.sign_in_code(code).await;
        self.one(found)
    }

    async fn session(&mut self, id: &str) -> Result<Option<Session>, StoreError> {
        let found = self.backend.session(id).await;
        self.one(found)
    }

    async fn sessions_of(&mut self, user_id: &str, scope: &str, limit: usize) -> Result<Vec<Session>, StoreError> {
        let found = self.backend.sessions_of(user_id, scope, limit).await;
        self.list(found)
    }
}

impl<B: Backend> PeopleRowSource for Counted<B> {
    async fn person(&mut self, user_id: &str, since: Time) -> Result<LoadedPerson, StoreError> {
        let found = self.backend.person(user_id, since).await;
        // The settings, the position, and the notifications sent within the last hour.
        self.count(found, |person| 2 + person.sent.len())
    }

    async fn inbox_item(&mut self, user_id: &str, id: NotificationId) -> Result<Option<InboxItem>, StoreError> {
        let found = self.backend.inbox_item(user_id, id).await;
        self.one(found)
    }

    async fn inbox_items(&mut self, user_id: &str, ids: &[NotificationId]) -> Result<Vec<StoredItem>, StoreError> {
        let found = self.backend.inbox_items(user_id, ids).await;
        self.list(found)
    }

    async fn unread(&mut self, user_id: &str, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        let found = self.backend.unread(user_id, limit).await;
        self.list(found)
    }

    async fn reminder(&mut self, id: Uuid) -> Result<Option<Reminder>, StoreError> {
        let found = self.backend.reminder(id).await;
        self.one(found)
    }

    async fn waiting_reminders(&mut self, user_id: &str) -> Result<usize, StoreError> {
        let found = self.backend.waiting_reminders(user_id).await;
        self.count(found, |count| *count)
    }

    async fn due_reminders(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Reminder>, StoreError> {
        let found = self.backend.due_reminders(now, limit, except).await;
        self.found(found)
    }

    async fn delivery(&mut self, id: Uuid) -> Result<Option<Delivery>, StoreError> {
        let found = self.backend.delivery(id).await;
        self.one(found)
    }

    async fn due_deliveries(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Delivery>, StoreError> {
        let found = self.backend.due_deliveries(channel, now, limit, except).await;
        self.found(found)
    }

    async fn waiting_on_channel(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let found = self.backend.waiting_on_channel(user_id, channel, limit).await;
        self.found(found)
    }

    async fn waiting_deliveries(
        &mut self,
        user_id: &str,
        after: Uuid,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let found = self.backend.waiting_deliveries(user_id, after, limit).await;
        self.found(found)
    }

    async fn attempt(
        &mut self,
        message_id: Uuid,
        fence: i64,
        state: DeliveryState,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let found = self.backend.attempt(message_id, fence, state, limit).await;
        self.found(found)
    }

    async fn lapsed_deliveries(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Delivery>, StoreError> {
        let found = self.backend.lapsed_deliveries(now, limit, except).await;
        self.found(found)
    }

    async fn messages_in_flight(&mut self, channel: &ChannelName) -> Result<Vec<(String, Option<Uuid>)>, StoreError> {
        let found = self.backend.messages_in_flight(channel).await;
        self.list(found)
    }

    async fn message_deliveries(&mut self, user_id: &str, message_id: Uuid) -> Result<Found<Delivery>, StoreError> {
        let found = self.backend.message_deliveries(user_id, message_id).await;
        self.found(found)
    }

    async fn direct_message(&mut self, delivery_id: Uuid) -> Result<Option<DirectMessage>, StoreError> {
        let found = self.backend.direct_message(delivery_id).await;
        self.one(found)
    }

    async fn codes_since(&mut self, user_id: &str, since: Time) -> Result<usize, StoreError> {
        let found = self.backend.codes_since(user_id, since).await;
        self.count(found, |count| *count)
    }

    async fn confirmation(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
    ) -> Result<Option<ConfirmationRow>, StoreError> {
        let found = self.backend.confirmation(user_id, channel).await;
        self.one(found)
    }

    async fn secret(&mut self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.backend.secret(name).await;
        self.one(found)
    }
}

impl<B: Backend> NotifyRowSource for Counted<B> {
    async fn notify_request(&mut self, key: &NotifyKey) -> Result<Option<NotifyRow>, StoreError> {
        let found = self.backend.notify_request(key).await;
        self.one(found)
    }

    async fn lapsed_notify(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<NotifyRow>, StoreError> {
        let found = self.backend.lapsed_notify(now, limit, except).await;
        self.found(found)
    }

    async fn nth_listed(&mut self, limit_key: &NotifyKey, since: Time, nth: usize) -> Result<Option<Time>, StoreError> {
        let found = self.backend.nth_listed(limit_key, since, nth).await;
        self.one(found)
    }

    async fn answer_count(&mut self, key: &NotifyKey) -> Result<Option<AnswerCount>, StoreError> {
        let found = self.backend.answer_count(key).await;
        self.one(found)
    }

    async fn ledger_count(&mut self, origin: &str, day: i64) -> Result<u64, StoreError> {
        let found = self.backend.ledger_count(origin, day).await;
        self.one(found)
    }
}
