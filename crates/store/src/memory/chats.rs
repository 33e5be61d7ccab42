use std::collections::BTreeMap;

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::Memory;
use crate::chats::{
    ButtonRow, ChannelUpdate, ChatChanges, ChatKey, ChatMessageRow, CodeRow, KeptMessageRow, LeaseRow, Pairing,
    StrangerRow, UpdateRow,
};
use crate::error::StoreError;
use crate::executor::ChatRowSource;
use crate::writer::PruneCutoffs;

/// The tables of chats.
#[derive(Default)]
pub(super) struct ChatTables {
    pairings: BTreeMap<ChatKey, Pairing>,
    codes: BTreeMap<Vec<u8>, CodeRow>,
    strangers: BTreeMap<ChatKey, StrangerRow>,
    updates: BTreeMap<(ChannelName, i64), UpdateRow>,
    messages: BTreeMap<(ChatKey, i64), ChatMessageRow>,
    buttons: BTreeMap<Vec<u8>, ButtonRow>,
    kept: BTreeMap<Uuid, KeptMessageRow>,
    leases: BTreeMap<String, LeaseRow>,
}

impl ChatTables {
    pub(super) fn commit(&mut self, changes: &ChatChanges) {
        apply(&mut self.pairings, &changes.pairings);
        for row in changes.codes.values().flatten() {
            self.codes.retain(|_, older| (&older.user_id, &older.channel) != (&row.user_id, &row.channel));
        }
        apply(&mut self.codes, &changes.codes);
        self.strangers.extend(changes.strangers.clone());
        for (key, row) in &changes.updates {
            match row {
                UpdateRow::New { .. } => drop(self.updates.entry(key.clone()).or_insert_with(|| row.clone())),
                UpdateRow::Handled { .. } => drop(self.updates.insert(key.clone(), row.clone())),
            }
        }
        self.messages.extend(changes.messages.clone());
        self.buttons.extend(changes.buttons.clone());
        apply(&mut self.kept, &changes.kept);
        self.leases.extend(changes.leases.clone());
    }

    pub(super) fn erase(&mut self, user: &str) {
        self.pairings.retain(|_, row| row.user_id != user);
        self.codes.retain(|_, row| row.user_id != user);
        self.messages.retain(|_, row| row.message.user_id != user);
        self.buttons.retain(|_, row| row.user_id != user);
        self.kept.retain(|_, row| row.user_id != user);
    }

    pub(super) fn prune(&mut self, before: &PruneCutoffs) -> usize {
        let all = |tables: &Self| {
            let of_chats = tables.codes.len() + tables.strangers.len() + tables.updates.len();
            of_chats + tables.messages.len() + tables.buttons.len() + tables.kept.len()
        };
        let (count, day) = (all(self), before.idempotency_keys);
        self.codes.retain(|_, row| row.expires_at >= day);
        self.strangers.retain(|_, row| row.seen_at >= day);
        self.updates.retain(|_, row| !matches!(row, UpdateRow::Handled { at, .. } if *at < before.answers));
        self.messages.retain(|_, row| row.message.at >= before.inbox);
        self.buttons.retain(|_, row| row.expires_at >= day);
        self.kept.retain(|_, row| row.created_at >= day);
        count - all(self)
    }
}

/// Inserts rows, and deletes those that are none. Deleting comes first.
fn apply<K: Ord + Clone, V: Clone>(table: &mut BTreeMap<K, V>, changes: &BTreeMap<K, Option<V>>) {
    changes.iter().filter(|(_, row)| row.is_none()).for_each(|(key, _)| drop(table.remove(key)));
    table.extend(changes.iter().filter_map(|(key, row)| Some((key.clone(), row.clone()?))));
}

impl ChatRowSource for Memory {
    async fn pairing(&mut self, chat: &ChatKey) -> Result<Option<Pairing>, StoreError> {
        Ok(self.lock().people.chats.pairings.get(chat).cloned())
    }

    async fn pairing_of(&mut self, user_id: &str, channel: &ChannelName) -> Result<Option<Pairing>, StoreError> {
        let tables = self.lock();
        let is_theirs = |row: &&Pairing| row.user_id == user_id && row.chat.channel == *channel;
        Ok(tables.people.chats.pairings.values().find(is_theirs).cloned())
    }

    async fn pairing_code(&mut self, code: &[u8]) -> Result<Option<CodeRow>, StoreError> {
        Ok(self.lock().people.chats.codes.get(code).cloned())
    }

    async fn stranger(&mut self, chat: &ChatKey) -> Result<Option<StrangerRow>, StoreError> {
        Ok(self.lock().people.chats.strangers.get(chat).cloned())
    }

    async fn has_strangers(&mut self, count: usize) -> Result<bool, StoreError> {
        Ok(self.lock().people.chats.strangers.len() >= count)
    }

    async fn is_handled(&mut self, channel: &ChannelName, id: i64) -> Result<Option<bool>, StoreError> {
        let tables = self.lock();
        let row = tables.people.chats.updates.get(&(channel.clone(), id));
        Ok(row.map(|row| matches!(row, UpdateRow::Handled { .. })))
    }

    async fn waiting_updates(&mut self, channel: &ChannelName, limit: usize) -> Result<Vec<ChannelUpdate>, StoreError> {
        let tables = self.lock();
        let waiting = tables.people.chats.updates.iter().filter_map(|((of, id), row)| match row {
            UpdateRow::New { body, .. } if of == channel => Some(ChannelUpdate { id: *id, body: body.clone() }),
            _ => None,
        });
        Ok(waiting.take(limit).collect())
    }

    async fn chat_message(&mut self, chat: &ChatKey, message_id: i64) -> Result<Option<ChatMessageRow>, StoreError> {
        Ok(self.lock().people.chats.messages.get(&(chat.clone(), message_id)).cloned())
    }

    async fn messages_with_buttons(
        &mut self,
        notification_id: NotificationId,
        limit: usize,
    ) -> Result<Vec<ChatMessageRow>, StoreError> {
        let tables = self.lock();
        let rows = tables.people.chats.messages.values();
        let shown = rows.filter(|row| row.message.notification_id == Some(notification_id));
        Ok(shown.take(limit).cloned().collect())
    }

    async fn due_edits(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
    ) -> Result<Vec<ChatMessageRow>, StoreError> {
        let tables = self.lock();
        let is_due =
            |row: &&ChatMessageRow| row.message.chat.channel == *channel && row.edit_at.is_some_and(|at| at <= now);
        let mut due: Vec<ChatMessageRow> = tables.people.chats.messages.values().filter(is_due).cloned().collect();
        due.sort_by_key(|row| row.edit_at);
        due.truncate(limit);
        Ok(due)
    }

    async fn button(&mut self, token: &[u8]) -> Result<Option<ButtonRow>, StoreError> {
        Ok(self.lock().people.chats.buttons.get(token).cloned())
    }

    async fn kept_message(&mut self, id: Uuid) -> Result<Option<KeptMessageRow>, StoreError> {
        Ok(self.lock().people.chats.kept.get(&id).cloned())
    }

    async fn lease(&mut self, name: &str) -> Result<Option<LeaseRow>, StoreError> {
        Ok(self.lock().people.chats.leases.get(name).cloned())
    }
}
