//! Old rows go a few at a time, each found by an index: what is not old is never looked at.

use bellwire_core::Time;
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::writer::PruneCutoffs;

/// Names of ours begin with the time, so the key itself tells the age.
const BY_NAME: [&str; 3] = [
    "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id < ?1 ORDER BY id LIMIT ?2)",
    "DELETE FROM superseded WHERE event_id IN \
     (SELECT event_id FROM superseded WHERE event_id < ?1 ORDER BY event_id LIMIT ?2)",
    "DELETE FROM notifications WHERE id IN \
     (SELECT id FROM notifications WHERE id < ?1 AND state <> 'pending' ORDER BY id LIMIT ?2)",
];
const BROUGHT: &str = "DELETE FROM brought_ids WHERE (token_owner, id) IN \
                       (SELECT token_owner, id FROM brought_ids WHERE at < ?1 ORDER BY at LIMIT ?2)";
/// What an agent was shown is history for as long as the events are; an answer that said nothing is not.
const ANSWERS: &str = "DELETE FROM injections WHERE (owner, conversation_id, agent, call_id) IN \
                       (SELECT owner, conversation_id, agent, call_id FROM injections WHERE at < ?1 ORDER BY at LIMIT ?2)";
const EMPTY_ANSWERS: &str = "DELETE FROM injections WHERE (owner, conversation_id, agent, call_id) IN \
     (SELECT owner, conversation_id, agent, call_id FROM injections WHERE at < ?1 AND system_messages_json = '[]' LIMIT ?2)";
const ONCE: &str = "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN \
                    (SELECT token_id, route, name FROM idempotency_keys WHERE at < ?1 ORDER BY at LIMIT ?2)";
const SUBJECTS: &str = "DELETE FROM idempotency_subjects WHERE (user_id, token_id, route, name) IN \
    (SELECT user_id, token_id, route, name FROM idempotency_subjects WHERE at < ?1 ORDER BY at LIMIT ?2)";

/// Deletes what is older than it needs to be, at most `limit` rows of each kind; how many went.
pub(super) fn old_rows(connection: &Connection, before: &PruneCutoffs, limit: usize) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let events = first_name_at(before.events.min(oldest_waiting(connection)?));
    let mut gone = 0;
    for sql in BY_NAME {
        gone += connection.execute(sql, params![events, limit])?;
    }
    let by_time = [
        (BROUGHT, before.events),
        (ANSWERS, before.events),
        (EMPTY_ANSWERS, before.answers),
        (ONCE, before.once),
        (SUBJECTS, before.once),
    ];
    for (sql, time) in by_time {
        gone += connection.execute(sql, params![time.as_millis(), limit])?;
    }
    let unread = params![before.unread_inbox.as_millis(), limit];
    gone += connection.execute(super::people_write::PRUNED_UNREAD, unread)?;
    for sql in super::people_write::PRUNED {
        gone += connection.execute(sql, params![before.inbox.as_millis(), limit])?;
    }
    Ok(gone)
}

/// A notification that waits still needs its events, and none of them is older than itself.
fn oldest_waiting(connection: &Connection) -> rusqlite::Result<Time> {
    // An id of another type is damaged, and less than any blob.
    let sql = "SELECT MIN(id) FROM notifications WHERE state = 'pending' AND id >= x''";
    let id: Option<Vec<u8>> = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(id.and_then(|id| Uuid::from_slice(&id).ok()).map_or(Time::NEVER, crate::minted_at))
}

/// The first name that could have been minted at this time.
pub(super) fn first_name_at(time: Time) -> [u8; 16] {
    let millis = u128::try_from(time.as_millis()).unwrap_or(0).min((1 << 48) - 1);
    (millis << 80).to_be_bytes()
}
