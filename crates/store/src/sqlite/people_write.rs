//! Writes the rows of people.

use bellwire_core::Time;
use bellwire_core::person::ChannelName;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::insert::json;
use crate::people::{Hold, OutboxCounts, PeopleChanges};

/// Retention of the inbox: read items, ended deliveries, ended reminders.
pub(super) const PRUNED: [&str; 3] = [
    "DELETE FROM inbox WHERE (user_id, id) IN (SELECT user_id, id FROM inbox WHERE read_at < ?1 LIMIT ?2)",
    "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE ended_at < ?1 LIMIT ?2)",
    "DELETE FROM reminders WHERE id IN (SELECT id FROM reminders WHERE ended_at < ?1 LIMIT ?2)",
];

/// Retention of unread items. One with an open delivery is kept.
pub(super) const PRUNED_UNREAD: &str = "DELETE FROM inbox WHERE (user_id, id) IN (SELECT user_id, id FROM inbox \
     WHERE read_at IS NULL AND created_at < ?1 AND NOT EXISTS (SELECT 1 FROM deliveries AS open WHERE \
     open.notification_id = inbox.id AND open.state IN ('waiting', 'claimed', 'started')) ORDER BY created_at LIMIT ?2)";

/// Whether a delivery waits, before a commit replaces it.
pub(super) const WAITED: &str = "SELECT channel FROM deliveries WHERE id = ?1 AND state = 'waiting'";

/// Returns the change of the numbers of waiting deliveries.
pub(super) fn write(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<OutboxCounts> {
    inbox(connection, changes)?;
    positions(connection, changes)?;
    let outbox = outbox_change(connection, changes)?;
    deliveries(connection, changes)?;
    direct_messages(connection, changes)?;
    reminders(connection, changes)?;
    confirmations(connection, changes)?;
    super::chats_write::write(connection, &changes.chats)?;
    for (name, value) in &changes.secrets {
        connection.execute("INSERT INTO secrets (name, value) VALUES (?, ?)", params![name, value])?;
    }
    Ok(outbox)
}

/// Counts the waiting deliveries.
pub(super) fn outbox(connection: &Connection) -> rusqlite::Result<OutboxCounts> {
    let sql = "SELECT channel, COUNT(*) FROM deliveries WHERE state = 'waiting' GROUP BY channel";
    let mut outbox = OutboxCounts::default();
    let mut query = connection.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let count = row.get(1)?;
        channel(row.get_ref(0)?).iter().for_each(|channel| outbox.add(channel, count));
    }
    Ok(outbox)
}

/// The change of the numbers of waiting deliveries. It depends on the rows before the commit, so these are read.
fn outbox_change(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<OutboxCounts> {
    let mut outbox = OutboxCounts::default();
    let mut waited = connection.prepare_cached(WAITED)?;
    for row in changes.deliveries.values() {
        let mut before = waited.query([row.id.as_bytes()])?;
        while let Some(before) = before.next()? {
            channel(before.get_ref(0)?).iter().for_each(|channel| outbox.add(channel, -1));
        }
        outbox.write(row);
    }
    Ok(outbox)
}

/// The channel in a column. A damaged name is reported when its delivery is due; it is only not counted.
pub(super) fn channel(column: ValueRef<'_>) -> Option<ChannelName> {
    ChannelName::parse(column.as_str().ok()?).ok()
}

fn inbox(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO inbox (user_id, id, shelf, type, origin, conversation_id, title, message, toast_json, \
         correlation_id, created_at, read_at, dismissed_at, acted_json, created_sequence, changed_sequence, \
         source, template_error, repeats, persistent) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (user_id, id) DO UPDATE SET repeats = excluded.repeats, read_at = excluded.read_at, \
         dismissed_at = excluded.dismissed_at, acted_json = excluded.acted_json, \
         changed_sequence = excluded.changed_sequence, persistent = excluded.persistent",
    )?;
    for row in changes.inbox.values() {
        insert.execute(params![
            row.user_id,
            row.id.0.as_bytes(),
            row.kind.as_str(),
            row.item_type.as_str(),
            row.origin,
            row.conversation_id,
            row.title,
            row.message,
            row.toast.as_ref().map(json),
            row.correlation_id,
            row.created_at.as_millis(),
            row.read_at.map(Time::as_millis),
            row.dismissed_at.map(Time::as_millis),
            json(&row.acted),
            row.created_sequence,
            row.changed_sequence,
            row.source,
            row.template_error,
            row.repeats,
            row.is_persistent(),
        ])?;
    }
    Ok(())
}

fn positions(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO inbox_positions (user_id, position) VALUES (?, ?) \
         ON CONFLICT (user_id) DO UPDATE SET position = excluded.position",
    )?;
    for (user, position) in &changes.positions {
        insert.execute(params![user, position])?;
    }
    Ok(())
}

fn deliveries(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO deliveries (id, notification_id, user_id, channel, target, state, reason, attempts, \
         not_before, lease_until, fence, letter_id, created_at, ended_at, held_by, is_direct, progress) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, \
         attempts = excluded.attempts, not_before = excluded.not_before, lease_until = excluded.lease_until, \
         fence = excluded.fence, letter_id = excluded.letter_id, ended_at = excluded.ended_at, held_by = excluded.held_by, \
         progress = excluded.progress",
    )?;
    for row in changes.deliveries.values() {
        insert.execute(params![
            row.id.as_bytes(),
            row.content.notification_id().as_ref().map(|id| id.0.as_bytes()),
            row.user_id,
            row.channel.as_str(),
            row.target,
            row.state.as_str(),
            row.reason,
            row.attempts,
            row.not_before.as_millis(),
            row.lease_until.map(Time::as_millis),
            row.fence,
            row.message_id.as_ref().map(|id| id.as_bytes()),
            row.created_at.as_millis(),
            row.ended_at.map(Time::as_millis),
            row.held_by.map(Hold::as_str),
            row.content.is_direct(),
            row.progress,
        ])?;
    }
    Ok(())
}

fn direct_messages(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<()> {
    for (id, text) in &changes.direct_messages {
        let delivery = changes.deliveries.get(id);
        let user_id = delivery.map(|delivery| delivery.user_id.as_str()).unwrap_or_default();
        connection.execute(
            "INSERT INTO direct_messages (delivery_id, user_id, origin, subject, message, needs_allowance) \
             VALUES (?, ?, ?, ?, ?, ?)",
            params![id.as_bytes(), user_id, text.origin, text.subject, text.message, text.needs_allowance],
        )?;
    }
    Ok(())
}

fn reminders(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO reminders (id, user_id, origin, conversation_id, message, type, asked, at, due_at, \
         correlation_id, created_at, ended_at, notification_id, source, template_error, repeats) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET repeats = excluded.repeats, due_at = excluded.due_at, \
         ended_at = excluded.ended_at, notification_id = excluded.notification_id",
    )?;
    for row in changes.reminders.values() {
        insert.execute(params![
            row.id.as_bytes(),
            row.user_id,
            row.origin,
            row.conversation_id,
            row.message,
            row.item_type.as_str(),
            row.asked,
            row.at.as_millis(),
            row.due_at.as_millis(),
            row.correlation_id,
            row.created_at.as_millis(),
            row.ended_at.map(Time::as_millis),
            row.notification_id.as_ref().map(|id| id.0.as_bytes()),
            row.source,
            row.template_error,
            row.repeats,
        ])?;
    }
    Ok(())
}

fn confirmations(connection: &Connection, changes: &PeopleChanges) -> rusqlite::Result<()> {
    for ((user, channel), row) in &changes.confirmations {
        let Some(row) = row else {
            let sql = "DELETE FROM confirmations WHERE user_id = ?1 AND channel = ?2";
            connection.execute(sql, params![user, channel.as_str()])?;
            continue;
        };
        connection.execute(
            "INSERT INTO confirmations (user_id, channel, target, code, expires_at, tries) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (user_id, channel) DO UPDATE SET target = excluded.target, code = excluded.code, \
             expires_at = excluded.expires_at, tries = excluded.tries",
            params![user, channel.as_str(), row.target, row.code, row.expires_at.as_millis(), row.tries],
        )?;
    }
    Ok(())
}
