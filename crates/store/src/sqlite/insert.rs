//! Inserts the rows of publishing and injecting, with cached prepared statements.

use std::collections::HashMap;

use bellwire_core::notification::EndReason;
use bellwire_core::{EventId, Time};
use rusqlite::{Connection, params};

use super::event_list::client_id_hash;
use crate::rows::{Changes, ClientEventIdRow, ConversationRow, EventRow, InjectionRow, NotificationRow};

pub(super) fn conversations<'a>(
    connection: &Connection,
    rows: impl Iterator<Item = &'a ConversationRow>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO conversations (id, user_id, registered, title, boundary, created_at, seen_at, workers, \
         boundary_changed, folder, agent_secret, agent_boundaries) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id, user_id) DO UPDATE SET registered = excluded.registered, title = excluded.title, \
         boundary = excluded.boundary, seen_at = excluded.seen_at, \
         workers = excluded.workers, boundary_changed = excluded.boundary_changed, folder = excluded.folder, \
         agent_secret = excluded.agent_secret, agent_boundaries = excluded.agent_boundaries",
    )?;
    for row in rows {
        insert.execute(params![
            row.key.id,
            row.key.owner,
            row.registered,
            row.title,
            row.boundary.as_str(),
            row.created_at.as_millis(),
            row.seen_at.as_millis(),
            json(&row.workers),
            row.boundary_changed,
            row.folder,
            row.agent_secret,
            json(&row.agent_boundaries.iter().map(|(agent, boundary)| (agent, boundary.as_str())).collect::<Vec<_>>()),
        ])?;
    }
    Ok(())
}

/// `client_ids` are those of the same commit: the hash of an event's client id is in its row.
pub(super) fn events(
    connection: &Connection,
    rows: &[EventRow],
    client_ids: &[ClientEventIdRow],
) -> rusqlite::Result<()> {
    let hashes: HashMap<EventId, [u8; 16]> =
        client_ids.iter().map(|row| (row.event_id, client_id_hash(&row.id))).collect();
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (id, type, source, severity, timestamp, payload, dedupe_key, conversation_id, agent, \
         user_id, correlation_id, cause, owner, accepted_at, filtered, verdicts, client_id_hash) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for row in rows {
        let event = &row.event;
        insert.execute(params![
            event.id().0.as_bytes(),
            event.kind().as_str(),
            event.source().as_str(),
            event.severity().as_str(),
            event.timestamp().as_millis(),
            row.packed.payload(),
            event.dedupe_key(),
            event.conversation_id(),
            event.agent().as_str(),
            event.user_id(),
            event.correlation_id(),
            event.cause().as_str(),
            row.owner,
            row.accepted_at.as_millis(),
            row.filtered,
            row.verdicts.json().get(),
            hashes.get(&event.id()),
        ])?;
    }
    Ok(())
}

pub(super) fn client_event_id(connection: &Connection, rows: &[ClientEventIdRow]) -> rusqlite::Result<()> {
    // A client event id whose event was deleted may be used again, even while its old row exists.
    let mut insert = connection.prepare_cached(
        "INSERT INTO brought_ids (token_owner, id, event_id, content, at) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (token_owner, id) DO UPDATE SET event_id = excluded.event_id, \
         content = excluded.content, at = excluded.at",
    )?;
    for row in rows {
        insert.execute(params![row.token_owner, row.id, row.event_id.0.as_bytes(), row.content, row.at.as_millis()])?;
    }
    Ok(())
}

pub(super) fn notifications<'a>(
    connection: &Connection,
    rows: impl Iterator<Item = &'a NotificationRow>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO notifications (id, owner, conversation_id, agent, subscriber_id, priority, inject_at, state, \
         reason, content, call_id, created_at, ended_at, waiting, template_error) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, \
         content = excluded.content, call_id = excluded.call_id, ended_at = excluded.ended_at, \
         waiting = excluded.waiting, template_error = excluded.template_error",
    )?;
    for row in rows {
        let waiting = match row.end_reason {
            None => postcard::to_allocvec(&row.notification).unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        let (owner, conversation, agent) = row.key.columns();
        insert.execute(params![
            row.notification.id.0.as_bytes(),
            owner,
            conversation,
            agent,
            row.notification.subscriber.as_str(),
            row.notification.priority.as_str(),
            row.notification.inject_at.as_str(),
            row.end_reason.as_ref().map_or("pending", EndReason::name),
            row.end_reason.as_ref().map(EndReason::reason),
            row.content,
            row.call_id,
            row.notification.since.as_millis(),
            row.ended_at.map(Time::as_millis),
            waiting,
            row.template_error,
        ])?;
    }
    Ok(())
}

/// Inserts injections; the first row gets the sequence number after `latest`.
pub(super) fn injections(connection: &Connection, rows: &[InjectionRow], latest: i64) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO injections (sequence, owner, conversation_id, agent, call_id, point, at, unseen, answer, taken, \
         system_messages_json, tool_result_digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for (row, sequence) in rows.iter().zip(latest + 1..) {
        let (owner, conversation, agent) = row.key.columns();
        insert.execute(params![
            sequence,
            owner,
            conversation,
            agent,
            row.call_id,
            row.point.as_str(),
            row.at.as_millis(),
            row.unseen,
            json(&row.answer),
            postcard::to_allocvec(&row.taken).unwrap_or_default(),
            json(&row.messages),
            row.tool_result_digest,
        ])?;
    }
    Ok(())
}

/// Inserts all rows that publishing and injecting write.
pub(super) fn all(connection: &Connection, changes: &Changes, latest: i64) -> rusqlite::Result<()> {
    conversations(connection, changes.conversations.values())?;
    events(connection, &changes.events, &changes.client_event_ids)?;
    client_event_id(connection, &changes.client_event_ids)?;
    notifications(connection, changes.notifications.values())?;
    injections(connection, &changes.injections, latest)
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON")
}
