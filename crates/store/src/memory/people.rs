use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwire_core::person::{ChannelName, PersonSettings};
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::Memory;
use super::chats::ChatTables;
use crate::damage::Found;
use crate::error::StoreError;
use crate::executor::{PeopleRowSource, StoredItem};
use crate::people::{
    Catchup, ConfirmationRow, Delivery, DeliveryContent, DeliveryState, DirectMessage, InboxChange, InboxItem,
    InboxQuery, ItemHeading, KnownPerson, LoadedPerson, OutboxCounts, PeopleChanges, PersonTrace, Reminder,
    SEARCHED_MAX, UNREAD_COUNTED_MAX, due_toasts,
};
use crate::single_writer::PeopleReader;

/// The tables of people.
#[derive(Default)]
pub(super) struct PeopleTables {
    pub(super) settings: HashMap<String, PersonSettings>,
    inbox: BTreeMap<NotificationId, InboxItem>,
    positions: HashMap<Arc<str>, i64>,
    deliveries: BTreeMap<Uuid, Delivery>,
    direct_messages: HashMap<Uuid, DirectMessage>,
    reminders: BTreeMap<Uuid, Reminder>,
    confirmations: HashMap<(Arc<str>, ChannelName), ConfirmationRow>,
    secrets: HashMap<String, Vec<u8>>,
    pub(super) chats: ChatTables,
}

impl PeopleTables {
    /// Returns the change of the numbers of waiting deliveries.
    pub(super) fn commit(&mut self, changes: &PeopleChanges) -> OutboxCounts {
        self.chats.commit(&changes.chats);
        let mut outbox = OutboxCounts::default();
        for row in changes.deliveries.values() {
            self.deliveries.get(&row.id).into_iter().for_each(|before| outbox.replace(before));
            outbox.write(row);
        }
        self.inbox.extend(changes.inbox.iter().map(|(id, item)| (*id, item.clone())));
        self.positions.extend(changes.positions.iter().map(|(user, position)| (user.clone(), *position)));
        self.deliveries.extend(changes.deliveries.iter().map(|(id, row)| (*id, row.clone())));
        let texts = changes.direct_messages.iter();
        self.direct_messages.extend(texts.map(|(id, text)| (*id, text.clone())));
        self.reminders.extend(changes.reminders.iter().map(|(id, row)| (*id, row.clone())));
        self.secrets.extend(changes.secrets.iter().map(|(name, secret)| (name.clone(), secret.clone())));
        for (key, row) in &changes.confirmations {
            match row {
                Some(row) => drop(self.confirmations.insert(key.clone(), row.clone())),
                None => drop(self.confirmations.remove(key)),
            }
        }
        outbox
    }

    /// The person's notifications with these ids, which come from the verdicts on an event.
    pub(super) fn person_traces(&self, user_id: &str, names: impl Iterator<Item = Uuid>) -> Vec<PersonTrace> {
        let trace = |name: Uuid| {
            let later = self.reminders.get(&name).filter(|row| !row.asked && row.user_id == user_id).cloned();
            // A notification that was deferred as a reminder has another id after it was sent.
            let id = later.as_ref().and_then(|later| later.notification_id).unwrap_or(NotificationId(name));
            let item = self.inbox.get(&id).filter(|item| item.user_id == user_id).cloned();
            let ways = self.deliveries.values().filter(|row| row.content.notification_id() == Some(id)).cloned();
            PersonTrace::of(item, later, ways.collect())
        };
        BTreeSet::from_iter(names).into_iter().filter_map(trace).collect()
    }

    /// How many rows belong to people.
    pub(super) fn rows(&self) -> usize {
        let own = [self.settings.len(), self.inbox.len(), self.positions.len(), self.deliveries.len()];
        own.into_iter().sum::<usize>() + self.reminders.len() + self.confirmations.len()
    }

    /// Returns the change of the numbers of waiting deliveries.
    pub(super) fn erase(&mut self, user: &str) -> OutboxCounts {
        self.chats.erase(user);
        let mut outbox = OutboxCounts::default();
        self.deliveries.values().filter(|row| row.user_id == user).for_each(|row| outbox.replace(row));
        self.settings.remove(user);
        self.inbox.retain(|_, item| item.user_id != user);
        self.positions.remove(user);
        self.deliveries.retain(|_, row| row.user_id != user);
        self.direct_messages.retain(|id, _| self.deliveries.contains_key(id));
        self.reminders.retain(|_, row| row.user_id != user);
        self.confirmations.retain(|(owner, _), _| **owner != *user);
        outbox
    }

    /// Counts the waiting deliveries.
    pub(super) fn outbox(&self) -> OutboxCounts {
        let mut outbox = OutboxCounts::default();
        self.deliveries.values().for_each(|row| outbox.write(row));
        outbox
    }

    /// Deletes items read before this time, and deliveries and reminders that ended before it.
    pub(super) fn prune(&mut self, before: Time, limit: usize) -> usize {
        let old = |at: Option<Time>| at.is_some_and(|at| at < before);
        let read: Vec<_> = self.inbox.values().filter(|item| old(item.read_at)).map(|item| item.id).collect();
        let sent: Vec<_> = self.deliveries.values().filter(|row| old(row.ended_at)).map(|row| row.id).collect();
        let ended: Vec<_> = self.reminders.values().filter(|row| old(row.ended_at)).map(|row| row.id).collect();
        let mut gone = 0;
        gone += read.iter().take(limit).filter_map(|id| self.inbox.remove(id)).count();
        gone += sent.iter().take(limit).filter_map(|id| self.deliveries.remove(id)).count();
        sent.iter().take(limit).for_each(|id| drop(self.direct_messages.remove(id)));
        gone += ended.iter().take(limit).filter_map(|id| self.reminders.remove(id)).count();
        gone
    }

    /// The ids of people with settings or an inbox.
    pub(super) fn ids(&self) -> impl Iterator<Item = String> {
        self.settings.keys().cloned().chain(self.positions.keys().map(ToString::to_string))
    }

    fn of(&self, user_id: &str) -> impl DoubleEndedIterator<Item = &InboxItem> {
        self.inbox.values().filter(move |item| item.user_id == user_id)
    }

    pub(super) fn reminders_due(&self) -> impl Iterator<Item = Time> {
        self.reminders.values().filter(|row| row.ended_at.is_none()).map(|row| row.due_at)
    }

    pub(super) fn deliveries_due(&self) -> impl Iterator<Item = Time> {
        self.deliveries.values().filter_map(Delivery::due_at)
    }

    fn open(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.values().filter(|row| row.state == DeliveryState::Waiting || row.is_leased())
    }

    /// Whether the person has an open delivery, or a waiting reminder for this conversation (or for any, without one).
    pub(super) fn waits(&self, user_id: &str, conversation_id: Option<&str>) -> bool {
        let waits = |row: &Reminder| {
            row.ended_at.is_none()
                && row.user_id == user_id
                && (conversation_id.is_none() || row.conversation_id.as_deref() == conversation_id)
        };
        self.open().any(|row| row.user_id == user_id) || self.reminders.values().any(waits)
    }

    /// Whether a person got a notification since a time.
    pub(super) fn was_notified_since(&self, user_id: &str, since: Time) -> bool {
        self.of(user_id).any(|item| item.created_at >= since)
    }

    /// Deletes unread items older than this, except those with an open delivery.
    pub(super) fn prune_unread(&mut self, before: Time, limit: usize) -> usize {
        let open: BTreeSet<NotificationId> = self.open().filter_map(|row| row.content.notification_id()).collect();
        let is_old = |item: &&InboxItem| item.read_at.is_none() && item.created_at < before && !open.contains(&item.id);
        let old: Vec<_> = self.inbox.values().filter(is_old).map(|item| item.id).take(limit).collect();
        old.iter().filter_map(|id| self.inbox.remove(id)).count()
    }

    fn waiting(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.values().filter(|row| row.state == DeliveryState::Waiting)
    }
}

impl PeopleRowSource for Memory {
    async fn person(&mut self, user_id: &str, since: Time) -> Result<LoadedPerson, StoreError> {
        let tables = self.lock();
        let people = &tables.people;
        let sent = people.of(user_id).filter(|item| item.created_at > since);
        let mut sent: Vec<_> = sent.map(|item| (item.kind, item.item_type, item.created_at)).collect();
        sent.sort_by_key(|(_, _, at)| *at);
        Ok(LoadedPerson {
            settings: people.settings.get(user_id).cloned().unwrap_or_default(),
            position: people.positions.get(user_id).copied(),
            sent,
        })
    }

    async fn inbox_item(&mut self, user_id: &str, id: NotificationId) -> Result<Option<InboxItem>, StoreError> {
        Ok(self.lock().people.inbox.get(&id).filter(|item| item.user_id == user_id).cloned())
    }

    async fn inbox_items(&mut self, user_id: &str, ids: &[NotificationId]) -> Result<Vec<StoredItem>, StoreError> {
        let tables = self.lock();
        let items = ids.iter().filter_map(|id| tables.people.inbox.get(id)).filter(|item| item.user_id == user_id);
        Ok(items.map(|item| (item.id, Ok(item.clone()))).collect())
    }

    async fn unread(&mut self, user_id: &str, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        let tables = self.lock();
        Ok(tables.people.of(user_id).filter(|item| item.read_at.is_none()).take(limit).cloned().collect())
    }

    async fn reminder(&mut self, id: Uuid) -> Result<Option<Reminder>, StoreError> {
        Ok(self.lock().people.reminders.get(&id).cloned())
    }

    async fn waiting_reminders(&mut self, user_id: &str) -> Result<usize, StoreError> {
        let tables = self.lock();
        let reminders = tables.people.reminders.values();
        Ok(reminders.filter(|row| row.user_id == user_id && row.ended_at.is_none() && row.asked).count())
    }

    async fn due_reminders(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Reminder>, StoreError> {
        let tables = self.lock();
        let due = tables.people.reminders.values().filter(|row| row.ended_at.is_none() && row.due_at <= now);
        let mut due: Vec<Reminder> = due.filter(|row| !except.contains(&row.user_id)).cloned().collect();
        due.sort_by_key(|row| (row.due_at, row.id));
        due.truncate(limit);
        Ok(due.into())
    }

    async fn delivery(&mut self, id: Uuid) -> Result<Option<Delivery>, StoreError> {
        Ok(self.lock().people.deliveries.get(&id).cloned())
    }

    async fn due_deliveries(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Delivery>, StoreError> {
        let tables = self.lock();
        let due = tables.people.waiting().filter(|row| row.channel == *channel && row.not_before <= now);
        let mut due: Vec<Delivery> = due.filter(|row| !except.contains(&row.user_id)).cloned().collect();
        due.sort_by_key(|row| (row.not_before, row.id));
        due.truncate(limit);
        Ok(due.into())
    }

    async fn waiting_deliveries(
        &mut self,
        user_id: &str,
        after: Uuid,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let tables = self.lock();
        let theirs = tables.people.waiting().filter(|row| row.user_id == user_id && row.id > after);
        Ok(theirs.take(limit).cloned().collect::<Vec<_>>().into())
    }

    async fn waiting_on_channel(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let tables = self.lock();
        let theirs = tables.people.waiting().filter(|row| row.user_id == user_id && row.channel == *channel);
        Ok(theirs.take(limit).cloned().collect::<Vec<_>>().into())
    }

    async fn attempt(
        &mut self,
        message_id: Uuid,
        fence: i64,
        state: DeliveryState,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let tables = self.lock();
        let ours = |row: &&Delivery| row.message_id == Some(message_id) && row.fence == fence && row.state == state;
        Ok(tables.people.deliveries.values().filter(ours).take(limit).cloned().collect::<Vec<_>>().into())
    }

    async fn lapsed_deliveries(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Delivery>, StoreError> {
        let tables = self.lock();
        let lapsed = tables.people.deliveries.values().filter(|row| row.has_lapsed(now));
        let mut lapsed: Vec<_> = lapsed.filter(|row| !except.contains(&row.user_id)).collect();
        lapsed.sort_by_key(|row| row.lease_until);
        Ok(lapsed.into_iter().take(limit).cloned().collect::<Vec<_>>().into())
    }

    async fn messages_in_flight(&mut self, channel: &ChannelName) -> Result<Vec<(String, Option<Uuid>)>, StoreError> {
        let tables = self.lock();
        let leased = tables.people.deliveries.values().filter(|row| row.channel == *channel && row.is_leased());
        let messages: BTreeSet<_> = leased.map(|row| (row.user_id.clone(), row.message_id)).collect();
        Ok(messages.into_iter().collect())
    }

    async fn message_deliveries(&mut self, user_id: &str, message_id: Uuid) -> Result<Found<Delivery>, StoreError> {
        let is_in_it = |row: &&Delivery| row.user_id == user_id && row.message_id == Some(message_id);
        Ok(self.lock().people.deliveries.values().filter(is_in_it).cloned().collect::<Vec<_>>().into())
    }

    async fn direct_message(&mut self, delivery_id: Uuid) -> Result<Option<DirectMessage>, StoreError> {
        Ok(self.lock().people.direct_messages.get(&delivery_id).cloned())
    }

    async fn codes_since(&mut self, user_id: &str, since: Time) -> Result<usize, StoreError> {
        let tables = self.lock();
        let codes = tables.people.deliveries.values().filter(|row| row.content == DeliveryContent::ConfirmationCode);
        Ok(codes.filter(|row| row.user_id == user_id && row.created_at > since).count())
    }

    async fn confirmation(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
    ) -> Result<Option<ConfirmationRow>, StoreError> {
        Ok(self.lock().people.confirmations.get(&(user_id.into(), channel.clone())).cloned())
    }

    async fn secret(&mut self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().people.secrets.get(name).cloned())
    }
}

impl PeopleReader for Memory {
    async fn settings(&self, user_id: &str) -> Result<PersonSettings, StoreError> {
        Ok(self.lock().people.settings.get(user_id).cloned().unwrap_or_default())
    }

    async fn inbox(&self, user_id: &str, query: InboxQuery) -> Result<Vec<InboxItem>, StoreError> {
        let tables = self.lock();
        let wanted = tables.people.of(user_id).rev().filter(|item| item.is_wanted(&query));
        Ok(wanted.take(query.limit).cloned().collect())
    }

    async fn search_inbox(
        &self,
        user_id: &str,
        query: InboxQuery,
        text: &str,
    ) -> Result<(Vec<InboxItem>, Option<Uuid>), StoreError> {
        let tables = self.lock();
        let is_before = |item: &&InboxItem| query.before.is_none_or(|before| item.id.0 < before);
        let mut items = tables.people.of(user_id).rev().filter(is_before);
        let looked: Vec<&InboxItem> = items.by_ref().take(SEARCHED_MAX).collect();
        let wanted = looked.iter().filter(|item| item.is_wanted(&query) && item.contains(text));
        let last = looked.last().map(|item| item.id.0).filter(|_| looked.len() == SEARCHED_MAX);
        Ok((wanted.take(query.limit).map(|item| InboxItem::clone(item)).collect(), last))
    }

    async fn people(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<KnownPerson>, StoreError> {
        let tables = self.lock();
        let people = tables.person_ids().into_iter().filter(|id| id.starts_with(prefix) && id != "*");
        let people = people.filter(|id| after.is_none_or(|after| id.as_str() > after)).take(limit);
        let person = |id: String| KnownPerson {
            last_seen_at: tables.last_seen(&id),
            unread: tables.people.of(&id).filter(|item| item.read_at.is_none()).take(UNREAD_COUNTED_MAX).count(),
            id,
        };
        Ok(people.map(person).collect())
    }

    async fn unread_count(&self, user_id: &str) -> Result<usize, StoreError> {
        Ok(self.lock().people.of(user_id).filter(|item| item.read_at.is_none()).count())
    }

    async fn catch_up(
        &self,
        user_id: &str,
        after: Option<i64>,
        limit: usize,
        now: Time,
    ) -> Result<Catchup, StoreError> {
        let tables = self.lock();
        let people = &tables.people;
        let position = people.positions.get(user_id).copied().unwrap_or(0);
        let both = |item: &InboxItem| BTreeSet::from([item.created_sequence, item.changed_sequence]);
        let changes = people.of(user_id).flat_map(|item| both(item).into_iter().map(move |position| (position, item)));
        let behind = changes.filter(|(position, _)| after.is_some_and(|after| *position > after));
        let mut changes: Vec<InboxChange> =
            behind.map(|(position, item)| InboxChange { position, item: item.clone() }).collect();
        changes.sort_by_key(|change| change.position);
        let more = changes.len() > limit;
        changes.truncate(limit);
        let position = if more { changes.last().map_or(position, |change| change.position) } else { position };
        let unread = people.of(user_id).filter(|item| item.read_at.is_none()).count();
        let due_toasts = match after {
            None => due_toasts(people.of(user_id).cloned(), now),
            Some(_) => Vec::new(),
        };
        Ok(Catchup { changes, due_toasts, position, unread, more })
    }

    async fn reminders(
        &self,
        user_id: Option<&str>,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Reminder>, StoreError> {
        let tables = self.lock();
        let waiting = tables.people.reminders.values().filter(|row| row.asked && row.ended_at.is_none());
        let wanted = waiting.filter(|row| user_id.is_none_or(|user| user == row.user_id));
        Ok(wanted.filter(|row| after.is_none_or(|after| row.id > after)).take(limit).cloned().collect())
    }

    async fn deliveries(
        &self,
        user_id: Option<&str>,
        state: Option<DeliveryState>,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let tables = self.lock();
        let rows = tables.people.deliveries.values().rev();
        let wanted = rows.filter(|row| user_id.is_none_or(|user| user == row.user_id));
        let wanted = wanted.filter(|row| state.is_none_or(|state| state == row.state));
        Ok(wanted.filter(|row| before.is_none_or(|before| row.id < before)).take(limit).cloned().collect())
    }

    async fn deliveries_of(
        &self,
        user_id: &str,
        ids: &[NotificationId],
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let tables = self.lock();
        let is_of = |row: &&Delivery| row.content.notification_id().is_some_and(|id| ids.contains(&id));
        let theirs = tables.people.deliveries.values().filter(|row| row.user_id == user_id).filter(is_of);
        Ok(theirs.take(limit).cloned().collect())
    }

    async fn headings(&self, items: &[(String, NotificationId)]) -> Result<Vec<ItemHeading>, StoreError> {
        let tables = self.lock();
        let found = items.iter().filter_map(|(user_id, id)| {
            tables.people.inbox.get(id).filter(|item| item.user_id == *user_id).map(InboxItem::heading)
        });
        Ok(found.collect())
    }

    async fn oldest_delivery(&self, channel: &ChannelName) -> Result<Option<Time>, StoreError> {
        let tables = self.lock();
        Ok(tables.people.waiting().filter(|row| row.channel == *channel).map(|row| row.not_before).min())
    }
}
