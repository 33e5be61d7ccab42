//! The rows of chats.

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use rusqlite::{Connection, Params, Row, params};
use uuid::Uuid;

use super::read::first;
use super::{SqliteWriter, failed, row_count};
use crate::chats::{
    ButtonAction, ButtonRow, ChannelUpdate, ChatChanges, ChatKey, ChatMessage, ChatMessageRow, CodeRow, KeptMessageRow,
    LeaseRow, Pairing, StrangerRow, UpdateRow,
};
use crate::error::StoreError;
use crate::executor::ChatRowSource;
use crate::writer::PruneCutoffs;

const PAIRINGS: &str = "SELECT channel, target, user_id, sender, paired_at FROM chat_pairings WHERE ";
const MESSAGES: &str = "SELECT channel, target, message_id, user_id, conversation_id, origin, notification_id, at, \
                        edit_at, edit_attempts FROM chat_messages WHERE ";

/// Erases a person. Each statement finds its rows by an index.
pub(super) const ERASED: [&str; 5] = [
    "DELETE FROM chat_pairings WHERE (channel, target) IN \
     (SELECT channel, target FROM chat_pairings WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM pairing_codes WHERE code IN (SELECT code FROM pairing_codes WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM chat_messages WHERE (channel, target, message_id) IN \
     (SELECT channel, target, message_id FROM chat_messages WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM chat_buttons WHERE token IN (SELECT token FROM chat_buttons WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM kept_messages WHERE id IN (SELECT id FROM kept_messages WHERE user_id = ?1 LIMIT ?2)",
];

/// The updates of times that are ahead of `now`.
pub(super) const FROM_THE_FUTURE: [&str; 5] = [
    "UPDATE pairing_codes SET expires_at = ?1 + 600000 WHERE expires_at > ?1 + 600000",
    "UPDATE chat_strangers SET seen_at = MIN(seen_at, ?1), answered_at = MIN(answered_at, ?1), \
     wrong_since = MIN(wrong_since, ?1) WHERE seen_at > ?1",
    "UPDATE chat_messages SET at = MIN(at, ?1), edit_at = MIN(edit_at, ?1) WHERE at > ?1 OR edit_at > ?1",
    "UPDATE chat_updates SET handled_at = ?1 WHERE handled_at > ?1",
    "UPDATE kept_messages SET created_at = ?1 WHERE created_at > ?1",
];

/// Retention, each with the time before which rows are old.
pub(super) fn pruned(before: &PruneCutoffs) -> [(&'static str, Time); 6] {
    let day = before.idempotency_keys;
    [
        (
            "DELETE FROM chat_messages WHERE (channel, target, message_id) IN \
             (SELECT channel, target, message_id FROM chat_messages WHERE at < ?1 LIMIT ?2)",
            before.inbox,
        ),
        (
            "DELETE FROM chat_updates WHERE (channel, id) IN \
             (SELECT channel, id FROM chat_updates WHERE handled_at < ?1 LIMIT ?2)",
            before.answers,
        ),
        (
            "DELETE FROM chat_strangers WHERE (channel, target) IN \
             (SELECT channel, target FROM chat_strangers WHERE seen_at < ?1 LIMIT ?2)",
            day,
        ),
        (
            "DELETE FROM pairing_codes WHERE code IN (SELECT code FROM pairing_codes WHERE expires_at < ?1 LIMIT ?2)",
            day,
        ),
        (
            "DELETE FROM chat_buttons WHERE token IN (SELECT token FROM chat_buttons WHERE expires_at < ?1 LIMIT ?2)",
            day,
        ),
        ("DELETE FROM kept_messages WHERE id IN (SELECT id FROM kept_messages WHERE created_at < ?1 LIMIT ?2)", day),
    ]
}

pub(super) fn write(connection: &Connection, changes: &ChatChanges) -> rusqlite::Result<()> {
    pairings(connection, changes)?;
    strangers(connection, changes)?;
    updates(connection, changes)?;
    messages(connection, changes)?;
    buttons(connection, changes)?;
    kept(connection, changes)?;
    let mut lease = connection.prepare_cached(
        "INSERT INTO leases (name, holder, until, fence) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET \
         holder = excluded.holder, until = excluded.until, fence = excluded.fence",
    )?;
    for (name, row) in &changes.leases {
        lease.execute(params![name, row.holder, row.until.as_millis(), row.fence])?;
    }
    Ok(())
}

/// Deleting comes first: a person's new chat replaces the old one.
fn pairings(connection: &Connection, changes: &ChatChanges) -> rusqlite::Result<()> {
    let mut delete = connection.prepare_cached("DELETE FROM chat_pairings WHERE channel = ? AND target = ?")?;
    for (chat, _) in changes.pairings.iter().filter(|(_, row)| row.is_none()) {
        delete.execute(params![chat.channel.as_str(), chat.target])?;
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO chat_pairings (channel, target, user_id, sender, paired_at) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (channel, target) DO UPDATE SET sender = excluded.sender, paired_at = excluded.paired_at",
    )?;
    for row in changes.pairings.values().flatten() {
        let (chat, at) = (&row.chat, row.paired_at.as_millis());
        insert.execute(params![chat.channel.as_str(), chat.target, row.user_id, row.sender, at])?;
    }
    let mut delete = connection.prepare_cached("DELETE FROM pairing_codes WHERE code = ?")?;
    for (code, _) in changes.codes.iter().filter(|(_, row)| row.is_none()) {
        delete.execute(params![code])?;
    }
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO pairing_codes (code, channel, user_id, expires_at) VALUES (?, ?, ?, ?)",
    )?;
    for (code, row) in changes.codes.iter().filter_map(|(code, row)| Some((code, row.as_ref()?))) {
        insert.execute(params![code, row.channel.as_str(), row.user_id, row.expires_at.as_millis()])?;
    }
    Ok(())
}

fn strangers(connection: &Connection, changes: &ChatChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO chat_strangers (channel, target, seen_at, answered_at, wrong_codes, wrong_since) \
         VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for (chat, row) in &changes.strangers {
        insert.execute(params![
            chat.channel.as_str(),
            chat.target,
            row.seen_at.as_millis(),
            row.answered_at.map(Time::as_millis),
            row.wrong_codes,
            row.wrong_since.as_millis(),
        ])?;
    }
    Ok(())
}

fn updates(connection: &Connection, changes: &ChatChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO chat_updates (channel, id, body, received_at) VALUES (?, ?, ?, ?) \
         ON CONFLICT (channel, id) DO NOTHING",
    )?;
    let mut handled = connection.prepare_cached(
        "INSERT INTO chat_updates (channel, id, received_at, handled_at, outcome) VALUES (?1, ?2, ?3, ?3, ?4) \
         ON CONFLICT (channel, id) DO UPDATE SET body = NULL, handled_at = excluded.handled_at, \
         outcome = excluded.outcome",
    )?;
    for ((channel, id), row) in &changes.updates {
        match row {
            UpdateRow::New { body, received_at } => {
                insert.execute(params![channel.as_str(), id, body, received_at.as_millis()])?
            }
            UpdateRow::Handled { outcome, at } => {
                handled.execute(params![channel.as_str(), id, at.as_millis(), outcome])?
            }
        };
    }
    Ok(())
}

fn messages(connection: &Connection, changes: &ChatChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO chat_messages (channel, target, message_id, user_id, conversation_id, origin, notification_id, \
         at, edit_at, edit_attempts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (channel, target, message_id) DO UPDATE SET user_id = excluded.user_id, \
         conversation_id = excluded.conversation_id, origin = excluded.origin, \
         notification_id = excluded.notification_id, at = excluded.at, edit_at = excluded.edit_at, \
         edit_attempts = excluded.edit_attempts",
    )?;
    for ChatMessageRow { message, edit_at, edit_attempts } in changes.messages.values() {
        insert.execute(params![
            message.chat.channel.as_str(),
            message.chat.target,
            message.message_id,
            message.user_id,
            message.conversation_id,
            message.origin,
            message.notification_id.as_ref().map(|id| id.0.as_bytes()),
            message.at.as_millis(),
            edit_at.map(Time::as_millis),
            edit_attempts,
        ])?;
    }
    Ok(())
}

fn buttons(connection: &Connection, changes: &ChatChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO chat_buttons (token, channel, target, user_id, notification_id, action_index, kept_id, \
         conversation_id, expires_at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (token) DO UPDATE SET used_at = excluded.used_at",
    )?;
    for (token, row) in &changes.buttons {
        let (notification, kept) = match &row.does {
            ButtonAction::Press { notification_id, index } => (Some((notification_id.0, row_count(*index))), None),
            ButtonAction::Choose { kept_id, conversation_id } => (None, Some((kept_id, conversation_id))),
        };
        insert.execute(params![
            token,
            row.chat.channel.as_str(),
            row.chat.target,
            row.user_id,
            notification.as_ref().map(|(id, _)| id.as_bytes()),
            notification.map(|(_, index)| index),
            kept.map(|(id, _)| id.as_bytes()),
            kept.map(|(_, conversation_id)| conversation_id),
            row.expires_at.as_millis(),
            row.used_at.map(Time::as_millis),
        ])?;
    }
    Ok(())
}

fn kept(connection: &Connection, changes: &ChatChanges) -> rusqlite::Result<()> {
    for (id, row) in &changes.kept {
        let Some(row) = row else {
            connection.prepare_cached("DELETE FROM kept_messages WHERE id = ?")?.execute(params![id.as_bytes()])?;
            continue;
        };
        let mut insert = connection.prepare_cached(
            "INSERT OR REPLACE INTO kept_messages (id, user_id, channel, target, message_id, endpoint, sender, thread, \
             text, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        insert.execute(params![
            id.as_bytes(),
            row.user_id,
            row.chat.channel.as_str(),
            row.chat.target,
            row.message_id,
            row.endpoint,
            row.sender,
            row.thread,
            row.text,
            row.created_at.as_millis(),
        ])?;
    }
    Ok(())
}

impl SqliteWriter {
    fn chat_row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        first(&self.connection, sql, values, read).map_err(failed)
    }

    fn chat_rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut query = self.connection.prepare_cached(sql).map_err(failed)?;
        let rows = query.query_map(values, read).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }
}

impl ChatRowSource for SqliteWriter {
    async fn pairing(&mut self, chat: &ChatKey) -> Result<Option<Pairing>, StoreError> {
        let sql = format!("{PAIRINGS} channel = ?1 AND target = ?2");
        self.chat_row(&sql, params![chat.channel.as_str(), chat.target], pairing)
    }

    async fn pairing_of(&mut self, user_id: &str, channel: &ChannelName) -> Result<Option<Pairing>, StoreError> {
        let sql = format!("{PAIRINGS} user_id = ?1 AND channel = ?2");
        self.chat_row(&sql, params![user_id, channel.as_str()], pairing)
    }

    async fn pairing_code(&mut self, code: &[u8]) -> Result<Option<CodeRow>, StoreError> {
        let sql = "SELECT channel, user_id, expires_at FROM pairing_codes WHERE code = ?1";
        self.chat_row(sql, params![code], |row| {
            Ok(CodeRow { channel: channel(row, 0)?, user_id: row.get(1)?, expires_at: time(row, 2)? })
        })
    }

    async fn stranger(&mut self, chat: &ChatKey) -> Result<Option<StrangerRow>, StoreError> {
        let sql = "SELECT seen_at, answered_at, wrong_codes, wrong_since FROM chat_strangers \
                   WHERE channel = ?1 AND target = ?2";
        self.chat_row(sql, params![chat.channel.as_str(), chat.target], |row| {
            Ok(StrangerRow {
                seen_at: time(row, 0)?,
                answered_at: optional_time(row, 1)?,
                wrong_codes: row.get(2)?,
                wrong_since: time(row, 3)?,
            })
        })
    }

    async fn has_strangers(&mut self, count: usize) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM chat_strangers LIMIT 1 OFFSET ?1";
        let found = self.chat_row(sql, params![row_count(count.saturating_sub(1))], |_| Ok(()));
        found.map(|found| found.is_some())
    }

    async fn is_handled(&mut self, channel: &ChannelName, id: i64) -> Result<Option<bool>, StoreError> {
        let sql = "SELECT handled_at IS NOT NULL FROM chat_updates WHERE channel = ?1 AND id = ?2";
        self.chat_row(sql, params![channel.as_str(), id], |row| row.get(0))
    }

    async fn waiting_updates(&mut self, channel: &ChannelName, limit: usize) -> Result<Vec<ChannelUpdate>, StoreError> {
        let sql = "SELECT id, COALESCE(body, '') FROM chat_updates WHERE handled_at IS NULL AND channel = ?1 \
                   ORDER BY id LIMIT ?2";
        self.chat_rows(sql, params![channel.as_str(), row_count(limit)], |row| {
            Ok(ChannelUpdate { id: row.get(0)?, body: row.get(1)? })
        })
    }

    async fn chat_message(&mut self, chat: &ChatKey, message_id: i64) -> Result<Option<ChatMessageRow>, StoreError> {
        let sql = format!("{MESSAGES} channel = ?1 AND target = ?2 AND message_id = ?3");
        self.chat_row(&sql, params![chat.channel.as_str(), chat.target, message_id], message)
    }

    async fn messages_with_buttons(
        &mut self,
        notification_id: NotificationId,
        limit: usize,
    ) -> Result<Vec<ChatMessageRow>, StoreError> {
        let sql = format!("{MESSAGES} notification_id = ?1 LIMIT ?2");
        self.chat_rows(&sql, params![notification_id.0.as_bytes(), row_count(limit)], message)
    }

    async fn due_edits(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
    ) -> Result<Vec<ChatMessageRow>, StoreError> {
        let sql = format!("{MESSAGES} channel = ?1 AND edit_at <= ?2 ORDER BY edit_at LIMIT ?3");
        self.chat_rows(&sql, params![channel.as_str(), now.as_millis(), row_count(limit)], message)
    }

    async fn button(&mut self, token: &[u8]) -> Result<Option<ButtonRow>, StoreError> {
        let sql = "SELECT channel, target, user_id, notification_id, action_index, kept_id, conversation_id, \
                   expires_at, used_at FROM chat_buttons WHERE token = ?1";
        self.chat_row(sql, params![token], button)
    }

    async fn kept_message(&mut self, id: Uuid) -> Result<Option<KeptMessageRow>, StoreError> {
        let sql = "SELECT user_id, channel, target, message_id, endpoint, sender, thread, text, created_at \
                   FROM kept_messages WHERE id = ?1";
        self.chat_row(sql, params![id.as_bytes()], |row| {
            Ok(KeptMessageRow {
                user_id: row.get(0)?,
                chat: chat(row, 1)?,
                message_id: row.get(3)?,
                endpoint: row.get(4)?,
                sender: row.get(5)?,
                thread: row.get(6)?,
                text: row.get(7)?,
                created_at: time(row, 8)?,
            })
        })
    }

    async fn lease(&mut self, name: &str) -> Result<Option<LeaseRow>, StoreError> {
        self.chat_row("SELECT holder, until, fence FROM leases WHERE name = ?1", params![name], |row| {
            Ok(LeaseRow { holder: row.get(0)?, until: time(row, 1)?, fence: row.get(2)? })
        })
    }
}

fn pairing(row: &Row<'_>) -> rusqlite::Result<Pairing> {
    let (user_id, sender) = (row.get(2)?, row.get(3)?);
    Ok(Pairing { chat: chat(row, 0)?, user_id, sender, paired_at: time(row, 4)? })
}

fn message(row: &Row<'_>) -> rusqlite::Result<ChatMessageRow> {
    Ok(ChatMessageRow {
        message: ChatMessage {
            chat: chat(row, 0)?,
            message_id: row.get(2)?,
            user_id: row.get(3)?,
            conversation_id: row.get(4)?,
            origin: row.get(5)?,
            notification_id: id(row, 6)?.map(NotificationId),
            at: time(row, 7)?,
        },
        edit_at: optional_time(row, 8)?,
        edit_attempts: row.get(9)?,
    })
}

fn button(row: &Row<'_>) -> rusqlite::Result<ButtonRow> {
    let index: Option<i64> = row.get(4)?;
    let index = index.and_then(|index| usize::try_from(index).ok());
    let does = match (id(row, 3)?, index, id(row, 5)?, row.get(6)?) {
        (Some(id), Some(index), _, _) => ButtonAction::Press { notification_id: NotificationId(id), index },
        (_, _, Some(kept_id), Some(conversation_id)) => ButtonAction::Choose { kept_id, conversation_id },
        _ => return Err(wrong_column(row, 3)),
    };
    let (user_id, expires_at, used_at) = (row.get(2)?, time(row, 7)?, optional_time(row, 8)?);
    Ok(ButtonRow { chat: chat(row, 0)?, user_id, does, expires_at, used_at })
}

fn chat(row: &Row<'_>, index: usize) -> rusqlite::Result<ChatKey> {
    Ok(ChatKey { channel: channel(row, index)?, target: row.get(index + 1)? })
}

fn channel(row: &Row<'_>, index: usize) -> rusqlite::Result<ChannelName> {
    ChannelName::parse(&row.get::<_, String>(index)?).map_err(|_| wrong_column(row, index))
}

fn id(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Uuid>> {
    let bytes: Option<Vec<u8>> = row.get(index)?;
    bytes.map(|bytes| Uuid::from_slice(&bytes).map_err(|_| wrong_column(row, index))).transpose()
}

fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Time> {
    row.get(index).map(Time::from_millis)
}

fn optional_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Time::from_millis))
}

fn wrong_column(row: &Row<'_>, index: usize) -> rusqlite::Error {
    let name = row.as_ref().column_name(index).unwrap_or_default().to_owned();
    rusqlite::Error::InvalidColumnType(index, name, rusqlite::types::Type::Null)
}
