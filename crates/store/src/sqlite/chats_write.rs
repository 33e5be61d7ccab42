//! Writes the rows of chats.

use bellwire_core::Time;
use rusqlite::{Connection, params};

use super::row_count;
use crate::chats::{ButtonAction, ChatChanges, ChatMessageRow, UpdateRow};

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
