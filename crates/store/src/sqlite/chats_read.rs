//! Reads the rows of chats.

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use rusqlite::{Params, Row, params};
use uuid::Uuid;

use super::read::first;
use super::{SqliteWriter, failed, row_count};
use crate::chats::{
    ButtonAction, ButtonRow, ChannelUpdate, ChatKey, ChatMessage, ChatMessageRow, CodeRow, KeptMessageRow, LeaseRow,
    Pairing, StrangerRow,
};
use crate::error::StoreError;
use crate::executor::ChatRowSource;

const PAIRINGS: &str = "SELECT channel, target, user_id, sender, paired_at FROM chat_pairings WHERE ";
const MESSAGES: &str = "SELECT channel, target, message_id, user_id, conversation_id, origin, notification_id, at, \
                        edit_at, edit_attempts FROM chat_messages WHERE ";

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
