//! Retention: deletes old rows in small steps. Each is found by an index, so that newer rows are not read.

use bellwire_core::Time;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::row_count;
use crate::notify::day_of;
use crate::writer::PruneCutoffs;

/// Tables whose ids start with the creation time, so that the primary key gives the age.
const BY_ID: [&str; 3] = [
    // At most about 4 MiB of events per step, because overwriting deleted data takes as long as writing it.
    "DELETE FROM events WHERE id IN (SELECT id FROM (SELECT id, bytes, SUM(bytes) OVER (ORDER BY id) AS sum FROM \
     (SELECT id, OCTET_LENGTH(payload) + OCTET_LENGTH(verdicts) AS bytes FROM events WHERE id < ?1 ORDER BY id LIMIT ?2)) \
     WHERE sum - bytes < 4194304)",
    "DELETE FROM superseded WHERE (event_id, subscriber_id) IN \
     (SELECT event_id, subscriber_id FROM superseded WHERE event_id < ?1 ORDER BY event_id LIMIT ?2)",
    "DELETE FROM notifications WHERE id IN \
     (SELECT id FROM notifications WHERE id < ?1 AND state <> 'pending' ORDER BY id LIMIT ?2)",
];
const CLIENT_EVENT_IDS: &str = "DELETE FROM brought_ids WHERE (token_owner, id) IN \
                       (SELECT token_owner, id FROM brought_ids WHERE at < ?1 ORDER BY at LIMIT ?2)";
/// Answers with messages are kept as long as the events; empty answers are deleted earlier.
const ANSWERS: &str = "DELETE FROM injections WHERE sequence IN (SELECT sequence FROM (SELECT sequence, bytes, \
     SUM(bytes) OVER (ORDER BY at, sequence) AS sum FROM (SELECT sequence, at, \
     OCTET_LENGTH(answer) + OCTET_LENGTH(taken) + OCTET_LENGTH(system_messages_json) AS bytes \
     FROM injections WHERE at < ?1 ORDER BY at, sequence LIMIT ?2)) WHERE sum - bytes < 4194304)";
const EMPTY_ANSWERS: &str = "DELETE FROM injections WHERE sequence IN \
     (SELECT sequence FROM injections WHERE at < ?1 AND system_messages_json = '[]' LIMIT ?2)";
const IDEMPOTENCY_KEYS: &str = "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN \
                    (SELECT token_id, route, name FROM idempotency_keys WHERE at < ?1 ORDER BY at LIMIT ?2)";
const NOTIFY_REQUESTS: &str =
    "DELETE FROM notify_requests WHERE key IN (SELECT key FROM notify_requests WHERE ended_at < ?1 LIMIT ?2)";
/// What belongs to inbound messages is kept as long as their events.
const INBOUND: [&str; 3] = [
    "DELETE FROM inbound_messages WHERE (channel, thread) IN \
     (SELECT channel, thread FROM inbound_messages WHERE at < ?1 ORDER BY at LIMIT ?2)",
    "DELETE FROM reply_contexts WHERE (user_id, conversation_id, agent) IN \
     (SELECT user_id, conversation_id, agent FROM reply_contexts WHERE at < ?1 ORDER BY at LIMIT ?2)",
    "DELETE FROM answer_counts WHERE key IN (SELECT key FROM answer_counts WHERE at < ?1 ORDER BY at LIMIT ?2)",
];
const LEDGER: &str = "DELETE FROM ledger WHERE id IN (SELECT id FROM ledger WHERE id < ?1 ORDER BY id LIMIT ?2)";
const LEDGER_DAYS: &str = "DELETE FROM ledger_days WHERE (origin, day, decision) IN \
    (SELECT origin, day, decision FROM ledger_days WHERE day < ?1 ORDER BY day LIMIT ?2)";
const SUBJECTS: &str = "DELETE FROM idempotency_subjects WHERE (user_id, token_id, route, name) IN \
    (SELECT user_id, token_id, route, name FROM idempotency_subjects WHERE at < ?1 ORDER BY at LIMIT ?2)";

const ERASED_USERS: &str =
    "DELETE FROM erased_users WHERE digest IN (SELECT digest FROM erased_users WHERE at < ?1 ORDER BY at LIMIT ?2)";

/// Deletes old rows, at most `limit`. Returns their number.
pub(super) fn old_rows(connection: &Connection, before: &PruneCutoffs, limit: usize) -> rusqlite::Result<usize> {
    let events = first_id_at(before.events.min(oldest_waiting(connection)?));
    let mut left = limit;
    for sql in BY_ID {
        left = left.saturating_sub(connection.execute(sql, params![events, row_count(left)])?);
    }
    let by_time = [
        (CLIENT_EVENT_IDS, before.events),
        (ANSWERS, before.events),
        (EMPTY_ANSWERS, before.answers),
        (ERASED_USERS, before.answers),
        (IDEMPOTENCY_KEYS, before.idempotency_keys),
        (SUBJECTS, before.idempotency_keys),
        (super::people_write::PRUNED_UNREAD, before.unread_inbox),
        (NOTIFY_REQUESTS, before.idempotency_keys),
    ];
    let of_people = super::people_write::PRUNED.map(|sql| (sql, before.inbox));
    let of_inbound = INBOUND.map(|sql| (sql, before.events));
    let of_chats = super::chats::pruned(before);
    let of_sessions = super::sessions::PRUNED.map(|sql| (sql, before.sessions));
    let rare = of_inbound.into_iter().chain(of_chats).chain(of_sessions);
    for (sql, time) in by_time.into_iter().chain(of_people).chain(rare) {
        left = left.saturating_sub(connection.execute(sql, params![time.as_millis(), row_count(left)])?);
    }
    left = left.saturating_sub(connection.execute(LEDGER, params![first_id_at(before.ledger), row_count(left)])?);
    left = left.saturating_sub(connection.execute(LEDGER_DAYS, params![day_of(before.ledger), row_count(left)])?);
    Ok(limit - left)
}

/// The creation time of the oldest pending notification. It still needs its events, and none of them is older than
/// itself.
fn oldest_waiting(connection: &Connection) -> rusqlite::Result<Time> {
    // A damaged id of another type sorts before every blob.
    let sql = "SELECT MIN(id) FROM notifications WHERE state = 'pending' AND id >= x''";
    let id: Option<Vec<u8>> = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(id.and_then(|id| Uuid::from_slice(&id).ok()).map_or(Time::NEVER, crate::minted_at))
}

/// The smallest id with this creation time.
pub(super) fn first_id_at(time: Time) -> [u8; 16] {
    let millis = u128::try_from(time.as_millis()).unwrap_or(0).min((1 << 48) - 1);
    (millis << 80).to_be_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use super::super::migrate::MIGRATIONS;
    use super::*;

    fn all_before(time: Time) -> PruneCutoffs {
        PruneCutoffs {
            events: time,
            answers: time,
            inbox: time,
            unread_inbox: time,
            conversations: time,
            idempotency_keys: time,
            ledger: time,
            sessions: time,
        }
    }

    #[test]
    fn a_step_deletes_no_more_rows_than_it_may_of_all_kinds_together() {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let numbers = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)";
        file.execute_batch(&format!(
            "{numbers} INSERT INTO brought_ids SELECT 'admin', i, CAST(i AS BLOB), x'', 1 FROM n;
             {numbers} INSERT INTO superseded SELECT zeroblob(16), i, x'', 1 FROM n;
             {numbers} INSERT INTO injections (owner, conversation_id, agent, call_id, point, at, answer, taken) \
                SELECT 'ada', 'c', 'main', i, 'after_tool', 1, '{{}}', x'' FROM n;
             {numbers} INSERT INTO idempotency_keys SELECT 'admin', 'r', i, x'', '', 1 FROM n;
             {numbers} INSERT INTO idempotency_subjects SELECT 'ada', 'admin', 'r', i, 1 FROM n;
             {numbers} INSERT INTO notify_requests (key, request_id, origin, intent, channel, state, fence, created_at, ended_at) \
                SELECT i, x'', '', 'send', 'email', 'ended', 1, 1, 1 FROM n;
             {numbers} INSERT INTO ledger (id, origin, channel, intent, decision) \
                SELECT unhex(printf('%032x', i)), '', '', '', 'refused' FROM n;
             {numbers} INSERT INTO ledger_days SELECT i, -1, 'refused', 1 FROM n;
             {numbers} INSERT INTO inbound_messages SELECT 'telegram', i, 'ada', 'c', '', 1 FROM n;
             {numbers} INSERT INTO reply_contexts SELECT 'ada', 'c', i, '', 1 FROM n;
             {numbers} INSERT INTO answer_counts SELECT i, 'ada', 1, 1 FROM n;
             {numbers} INSERT INTO chat_messages SELECT 'telegram', '1', i, 'ada', 'c', NULL, NULL, 1, NULL, 0 FROM n;
             {numbers} INSERT INTO chat_updates SELECT 'telegram', i, NULL, 1, 1, 'message' FROM n;
             {numbers} INSERT INTO chat_strangers SELECT 'telegram', i, 1, 1, 0, 1 FROM n;
             {numbers} INSERT INTO pairing_codes SELECT i, 'telegram', i, 1 FROM n;
             {numbers} INSERT INTO chat_buttons SELECT i, 'telegram', '1', 'ada', NULL, NULL, x'', 'c', 1, NULL FROM n;
             {numbers} INSERT INTO kept_messages SELECT i, 'ada', 'telegram', '1', i, '', '', '', '', 1 FROM n;
             {numbers} INSERT INTO sign_in_codes SELECT CAST(i AS BLOB), 'user', 'ada', 1 FROM n;
             {numbers} INSERT INTO sessions SELECT i, CAST(i AS BLOB), 'user', 'ada', NULL, 1, 1, 1, 1 FROM n;"
        ))
        .unwrap();
        let before = all_before(Time::from_millis(10));
        let changes = || file.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0)).unwrap();
        let (start, mut gone) = (changes(), 0);
        loop {
            let earlier = changes();
            let step = old_rows(&file, &before, 30).unwrap();
            assert!(changes() - earlier <= 30, "{} rows in one step", changes() - earlier);
            gone += step;
            if step == 0 {
                break;
            }
        }
        assert_eq!((gone, changes() - start), (1_900, 1_900));
    }

    #[test]
    fn a_step_deletes_few_megabytes_and_goes_on_with_the_next() {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        file.execute_batch(
            "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
             INSERT INTO events SELECT CAST('000' || i AS BLOB), 't', 's', 'info', 1, zeroblob(1024 * 1024), NULL, 'c', 'main', \
                NULL, NULL, 'other', 'ada', 1, 0, '[]', NULL FROM n;
             WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
             INSERT INTO injections (owner, conversation_id, agent, call_id, point, at, answer, taken, system_messages_json) \
                SELECT 'ada', 'c', 'main', i, 'after_tool', 1, zeroblob(6 * 1024 * 1024), x'', '[1]' FROM n;",
        )
        .unwrap();
        let old = Time::from_millis(0x4000_0000_0000);
        let before = all_before(old);
        let steps: Vec<usize> = (0..40).map(|_| old_rows(&file, &before, 1_000).unwrap()).collect();
        assert!(steps.iter().all(|gone| *gone <= 5 + 1), "{steps:?}");
        assert_eq!(steps.iter().sum::<usize>(), 40, "{steps:?}");
    }
}
