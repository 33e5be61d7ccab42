//! Erases a person in bounded steps. Each step is a transaction.
//!
//! Most rows are found by an index. Events and notifications are found by walking through their tables, some thousand
//! rows per step. An index by owner would write another page per owner for every event; it more than doubled the bytes
//! that publishing writes. Erasures are rare, and other commands run between the steps.
//!
//! The connection runs with `secure_delete`, so SQLite overwrites what is deleted with zeros. The last step copies the
//! write-ahead log into the file and truncates it, because its frames still hold the pages as they were before.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use bellwire_core::Time;
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::people_write::channel;
use super::{BUSY, SqliteWriter, failed, row_count, transaction};
use crate::erasing::user_digest;
use crate::error::StoreError;
use crate::people::OutboxCounts;
use crate::writer::{EraseProgress, Erased};

/// At most this many bytes of events are deleted in one step: zeroing large payloads takes as long as writing them.
const DELETED_BYTES_MAX: i64 = 4 * 1024 * 1024;
/// The maximum number of events and notifications that one step reads, and the maximum bytes of these events: the
/// column with the owner comes after the payload, so that SQLite must read past it.
const LOOKED_MAX: usize = 3_000;
const LOOKED_BYTES_MAX: i64 = 16 * 1024 * 1024;
/// How long the last step waits for readers of the write-ahead log before other commands go first.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(10);

/// The erasures in progress, by user id.
pub(super) type Erasures = HashMap<String, ErasureCursor>;

/// How far an erasure is. It is in memory only: a restart begins again with what is left.
pub(super) struct ErasureCursor {
    /// The number from which on the mailbox log has no record about the person.
    log_until: i64,
    tables: TableCursor,
}

impl ErasureCursor {
    pub(super) fn new(connection: &Connection, log_until: i64) -> rusqlite::Result<Self> {
        Ok(Self { log_until, tables: TableCursor::new(connection)? })
    }
}

/// The numbers of the rows that are still to be looked at. Rows that are inserted later are not the person's, because calls
/// about the person are refused meanwhile.
#[derive(Clone)]
struct TableCursor {
    events: Range<i64>,
    notifications: Range<i64>,
}

impl TableCursor {
    fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let rows = |sql: &str| connection.query_row(sql, [], |row| Ok(row.get(0)?..row.get(1)?));
        Ok(Self {
            events: rows("SELECT COALESCE(MIN(rowid), 0), COALESCE(MAX(rowid), -1) + 1 FROM events")?,
            notifications: rows("SELECT COALESCE(MIN(rowid), 0), COALESCE(MAX(rowid), -1) + 1 FROM notifications")?,
        })
    }

    fn is_done(&self) -> bool {
        self.events.is_empty() && self.notifications.is_empty()
    }
}

/// The rows of a person that are due or claimed by timers and workers, and their mailboxes, go first. Deleting a delivery
/// returns its channel if it waited.
const DELIVERIES: &str = "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE user_id = ?1 LIMIT ?2) \
                          RETURNING IIF(state = 'waiting', channel, NULL)";
const FIRST: [&str; 5] = [
    "DELETE FROM notify_requests WHERE key IN (SELECT key FROM notify_requests WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM notify_requests WHERE key IN (SELECT key FROM notify_requests WHERE on_behalf_of = ?1 LIMIT ?2)",
    "DELETE FROM reminders WHERE id IN (SELECT id FROM reminders WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM direct_messages WHERE delivery_id IN (SELECT delivery_id FROM direct_messages WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM mailboxes WHERE rowid IN (SELECT rowid FROM mailboxes WHERE owner = ?1 LIMIT ?2)",
];
const EVENTS: &str = "SELECT rowid, COALESCE(OCTET_LENGTH(payload), 0), COALESCE(OCTET_LENGTH(verdicts), 0), \
                      COALESCE(owner = ?1, 0), id FROM events WHERE rowid >= ?2 AND rowid < ?3 ORDER BY rowid LIMIT ?4";
/// What belongs to one event, by its id.
const OF_EVENT: [&str; 2] =
    ["DELETE FROM brought_ids WHERE event_id = ?1", "DELETE FROM superseded WHERE event_id = ?1"];
const EVENT: &str = "DELETE FROM events WHERE rowid = ?1";
const NOTIFICATIONS: &str = "SELECT rowid, COALESCE(owner = ?1, 0), COALESCE(state = 'pending', 0) FROM notifications \
                             WHERE rowid >= ?2 AND rowid < ?3 ORDER BY rowid LIMIT ?4";
const NOTIFICATION: &str = "DELETE FROM notifications WHERE rowid = ?1";
/// The rest, in this order: answers are found by tokens and subjects, and the person's own calls are answered with 409
/// for as long as their tokens are there.
const LAST: [&str; 18] = [
    "DELETE FROM ledger WHERE id IN (SELECT id FROM ledger WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM inbound_messages WHERE (channel, thread) IN \
     (SELECT channel, thread FROM inbound_messages WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM reply_contexts WHERE (user_id, conversation_id, agent) IN \
     (SELECT user_id, conversation_id, agent FROM reply_contexts WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM answer_counts WHERE key IN (SELECT key FROM answer_counts WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM person_targets WHERE (channel, target, user_id) IN \
     (SELECT channel, target, user_id FROM person_targets WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM injections WHERE sequence IN (SELECT sequence FROM injections WHERE owner = ?1 LIMIT ?2)",
    "DELETE FROM inbox WHERE (user_id, id) IN (SELECT user_id, id FROM inbox WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM inbox_positions WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM confirmations WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM user_settings WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN (SELECT known.token_id, known.route, known.name \
     FROM tokens CROSS JOIN idempotency_keys AS known ON known.token_id = tokens.id WHERE tokens.user_id = ?1 LIMIT ?2)",
    "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN (SELECT known.token_id, known.route, known.name \
     FROM sessions CROSS JOIN idempotency_keys AS known ON known.token_id = sessions.id WHERE sessions.user_id = ?1 \
     LIMIT ?2)",
    "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN (SELECT known.token_id, known.route, known.name \
     FROM idempotency_subjects AS about CROSS JOIN idempotency_keys AS known ON known.token_id = about.token_id \
     AND known.route = about.route AND known.name = about.name AND known.at = about.at WHERE about.user_id = ?1 LIMIT ?2)",
    "DELETE FROM idempotency_subjects WHERE (user_id, token_id, route, name) IN \
     (SELECT user_id, token_id, route, name FROM idempotency_subjects WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM conversations WHERE (id, user_id) IN (SELECT id, user_id FROM conversations WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM sign_in_codes WHERE code IN (SELECT code FROM sign_in_codes WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens WHERE user_id = ?1 LIMIT ?2)",
];

const REMEMBER: &str =
    "INSERT INTO erased_users (digest, at) VALUES (?1, ?2) ON CONFLICT (digest) DO UPDATE SET at = excluded.at";
const IS_REMEMBERED: &str = "SELECT EXISTS (SELECT 1 FROM erased_users WHERE digest = ?1)";

/// The people whose erasure was in progress when the store was last open.
pub(super) fn unfinished(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let users = || -> rusqlite::Result<Vec<String>> {
        connection.prepare("SELECT user_id FROM erasures")?.query_map([], |row| row.get(0))?.collect()
    };
    users().map_err(failed)
}

impl SqliteWriter {
    /// Runs one step of at most about `limit` rows. The first one records that the erasure is in progress.
    pub(super) fn erase_step(&mut self, user: &str, limit: usize, now: Time) -> Result<Erased, StoreError> {
        let is_first = !self.erasures.contains_key(user);
        let has_mailbox = is_first && self.log.has_mailbox_of(user);
        let (until, mut tables) = match self.erasures.get(user) {
            Some(cursor) => (cursor.log_until, cursor.tables.clone()),
            None => (self.log.next(), TableCursor::new(&self.connection).map_err(failed)?),
        };
        let plan = self.log.plan_until(until, limit, Some(user));
        let (log, moved) = (&self.log, plan.work());
        let erased = transaction::commit(&self.connection, |connection| {
            if is_first {
                connection.execute("INSERT OR IGNORE INTO erasures (user_id) VALUES (?1)", [user])?;
            }
            log.write(connection, &plan)?;
            let deleted = rows(connection, user, limit.saturating_sub(moved), &mut tables)?;
            // In the same transaction: after a crash, the rest may have no rows, and the person was known nevertheless.
            if deleted.rows > 0 || has_mailbox {
                connection.execute(REMEMBER, params![user_digest(user), now.as_millis()])?;
            }
            Ok(deleted)
        });
        let Deleted { rows, looked, pending, outbox, all } = erased.map_err(failed)?;
        self.log.committed(plan);
        if is_first {
            self.log.forget(user);
        }
        self.erasures.insert(user.to_owned(), ErasureCursor { log_until: until, tables });
        let progress = match all && self.log.begins_at_or_after(until) {
            // The rows are deleted, so this must not be an error: a retry would delete new rows of the person.
            true => self.end_erasure(user).unwrap_or_else(|error| EraseProgress::Failed(failed(error))),
            false => EraseProgress::More,
        };
        Ok(Erased { rows: moved + rows, looked, pending, outbox, progress })
    }

    /// Ends an erasure whose rows are deleted: removes their pages from the write-ahead log, then the record of the
    /// erasure.
    fn end_erasure(&mut self, user: &str) -> rusqlite::Result<EraseProgress> {
        if !truncate_wal(&self.connection)? {
            return Ok(EraseProgress::Blocked);
        }
        let ended = "DELETE FROM erasures WHERE user_id = ?1";
        transaction::commit(&self.connection, |connection| connection.execute(ended, [user]))?;
        // The write-ahead log now contains the page of that record, with the person's id.
        if !truncate_wal(&self.connection)? {
            return Ok(EraseProgress::Blocked);
        }
        self.erasures.remove(user);
        let known = self.connection.query_row(IS_REMEMBERED, [user_digest(user)], |row| row.get(0))?;
        Ok(EraseProgress::Done { known })
    }
}

/// Copies the write-ahead log into the file and truncates it. False = a reader still uses it. Waits for readers only if
/// none of them needs an older page.
fn truncate_wal(connection: &Connection) -> rusqlite::Result<bool> {
    let (log, copied): (i64, i64) =
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    if copied < log {
        return Ok(false);
    }
    connection.busy_timeout(CHECKPOINT_WAIT)?;
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    connection.busy_timeout(BUSY)?;
    busy.map(|busy| busy == 0)
}

/// The rows of a person that one step deleted.
struct Deleted {
    rows: usize,
    /// How many events and notifications were read.
    looked: usize,
    /// How many of the deleted rows were pending notifications.
    pending: usize,
    /// The change of the numbers of waiting deliveries.
    outbox: OutboxCounts,
    /// Whether no row is left.
    all: bool,
}

/// Deletes about `limit` rows of a person.
fn rows(connection: &Connection, user: &str, limit: usize, tables: &mut TableCursor) -> rusqlite::Result<Deleted> {
    let mut step = Deleted { rows: 0, looked: 0, pending: 0, outbox: OutboxCounts::default(), all: false };
    deliveries(connection, user, limit, &mut step)?;
    for sql in FIRST {
        step.rows += some(connection, sql, user, limit - step.rows)?;
    }
    events(connection, user, limit, &mut tables.events, &mut step)?;
    notifications(connection, user, limit, &mut tables.notifications, &mut step)?;
    if !tables.is_done() {
        return Ok(step);
    }
    for sql in super::chats::ERASED.into_iter().chain(LAST) {
        step.rows += some(connection, sql, user, limit.saturating_sub(step.rows))?;
    }
    // A step with budget left has deleted all rows.
    step.all = step.rows < limit;
    Ok(step)
}

fn some(connection: &Connection, sql: &str, user: &str, limit: usize) -> rusqlite::Result<usize> {
    if limit == 0 {
        return Ok(0);
    }
    connection.prepare_cached(sql)?.execute(params![user, row_count(limit)])
}

fn deliveries(connection: &Connection, user: &str, limit: usize, step: &mut Deleted) -> rusqlite::Result<()> {
    let mut delete = connection.prepare_cached(DELIVERIES)?;
    let mut deleted = delete.query(params![user, row_count(limit)])?;
    while let Some(row) = deleted.next()? {
        step.rows += 1;
        channel(row.get_ref(0)?).iter().for_each(|channel| step.outbox.add(channel, -1));
    }
    Ok(())
}

/// Reads the next events, and deletes those of the person with their dependent rows.
fn events(
    connection: &Connection,
    user: &str,
    limit: usize,
    left: &mut Range<i64>,
    step: &mut Deleted,
) -> rusqlite::Result<()> {
    if step.rows >= limit || left.is_empty() {
        return Ok(());
    }
    let mut query = connection.prepare_cached(EVENTS)?;
    let mut rows =
        query.query(params![user, left.start, left.end, row_count(LOOKED_MAX.saturating_sub(step.looked))])?;
    let (mut looked_bytes, mut deleted_bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        let (rowid, payload, verdicts): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if row.get(3)? {
            // A damaged id may be of any type.
            let id: Value = row.get(4)?;
            for sql in OF_EVENT {
                step.rows += connection.prepare_cached(sql)?.execute([&id])?;
            }
            // SQLite allows deleting the current row of a query; the query continues after it.
            step.rows += connection.prepare_cached(EVENT)?.execute([rowid])?;
            deleted_bytes += payload + verdicts;
        }
        (left.start, step.looked, looked_bytes) = (rowid + 1, step.looked + 1, looked_bytes + payload);
        if step.rows >= limit || deleted_bytes >= DELETED_BYTES_MAX || looked_bytes >= LOOKED_BYTES_MAX {
            return Ok(());
        }
    }
    // Fewer rows than requested: there are no more.
    if step.looked < LOOKED_MAX {
        left.start = left.end;
    }
    Ok(())
}

/// The same for notifications, once there are no more events.
fn notifications(
    connection: &Connection,
    user: &str,
    limit: usize,
    left: &mut Range<i64>,
    step: &mut Deleted,
) -> rusqlite::Result<()> {
    if step.rows >= limit || step.looked >= LOOKED_MAX || left.is_empty() {
        return Ok(());
    }
    let mut query = connection.prepare_cached(NOTIFICATIONS)?;
    let mut rows = query.query(params![user, left.start, left.end, row_count(LOOKED_MAX - step.looked)])?;
    while let Some(row) = rows.next()? {
        let (rowid, is_theirs, is_pending): (i64, bool, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if is_theirs {
            step.rows += connection.prepare_cached(NOTIFICATION)?.execute([rowid])?;
            step.pending += usize::from(is_pending);
        }
        (left.start, step.looked) = (rowid + 1, step.looked + 1);
        if step.rows >= limit {
            return Ok(());
        }
    }
    if step.looked < LOOKED_MAX {
        left.start = left.end;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use std::collections::BTreeSet;

    use super::super::migrate::MIGRATIONS;
    use super::*;

    #[test]
    fn every_statement_finds_its_rows_by_an_index() {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let of_tables = [EVENTS, EVENT, NOTIFICATIONS, NOTIFICATION];
        let first = of_tables.into_iter().chain([DELIVERIES]).chain(FIRST);
        let statements = first.chain(OF_EVENT).chain(super::super::chats::ERASED).chain(LAST);
        for sql in statements {
            let mut plan = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = vec!["1"; plan.parameter_count()];
            let values = rusqlite::params_from_iter(values);
            let lines: Vec<String> = plan.query_map(values, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
            let scans = lines.iter().filter(|line| line.starts_with("SCAN ") && !line.contains("subquery"));
            assert_eq!(scans.count(), 0, "{sql}\n{lines:#?}");
            assert!(lines.iter().any(|line| line.starts_with("SEARCH")), "{sql}\n{lines:#?}");
        }
    }

    /// The tables named in a Markdown table of docs/tokens.md whose header has this word.
    fn documented(header: &str) -> BTreeSet<String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tokens.md");
        let text = std::fs::read_to_string(path).unwrap();
        let table = text.split(&format!("| {header} | table |\n|---|---|\n")).nth(1).unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        rows.flat_map(|row| row.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
    }

    #[test]
    fn the_documentation_names_every_table_as_erased_or_kept() {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let mut query = file.prepare(tables).unwrap();
        let all: BTreeSet<String> = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let first = [EVENT, NOTIFICATION, DELIVERIES].into_iter().chain(FIRST);
        let statements = first.chain(OF_EVENT).chain(super::super::chats::ERASED).chain(LAST);
        let erased = statements.map(|sql| sql.split(' ').nth(2).unwrap().to_owned());
        let erased: BTreeSet<String> = erased.collect();
        assert_eq!(documented("removed"), erased);
        // The runner of the migrations makes its own table.
        let kept: BTreeSet<String> = all.difference(&erased).cloned().chain(["migrations".to_owned()]).collect();
        assert_eq!(documented("kept"), kept);
    }

    /// A file with rows of two people in every table that erasing touches.
    fn file_of(people: [&str; 2], events: usize) -> Connection {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        for user in people {
            let numbers = format!("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {events})");
            file.execute_batch(&format!(
                "{numbers} INSERT INTO events SELECT CAST('{user}' || i AS BLOB), 't', 's', 'info', 1, '{{}}', NULL, 'c', \
                    'main', NULL, NULL, 'other', '{user}', 1, 0, '[]', NULL FROM n;
                 {numbers} INSERT INTO brought_ids SELECT 'admin', '{user}' || i, CAST('{user}' || i AS BLOB), x'', 1 FROM n;
                 {numbers} INSERT INTO superseded SELECT CAST('{user}' || i AS BLOB), 's', x'', 1 FROM n;
                 {numbers} INSERT INTO notifications SELECT CAST('{user}' || i AS BLOB), '{user}', 'c', 'main', 's', 'high', \
                    'after_tool', CASE i % 2 WHEN 0 THEN 'pending' ELSE 'injected' END, NULL, NULL, NULL, 1, NULL, x'', NULL \
                    FROM n;
                 {numbers} INSERT INTO injections (owner, conversation_id, agent, call_id, point, at, answer, taken) \
                    SELECT '{user}', 'c', 'main', i, 'after_tool', 1, '{{}}', x'' FROM n;
                 {numbers} INSERT INTO mailboxes SELECT '{user}', 'c' || i, 'main', x'', x'', 1 FROM n;
                 {numbers} INSERT INTO tokens (id, secret_hash, scope, user_id, created_at) \
                    SELECT '{user}' || i, CAST('{user}' || i AS BLOB), 'user', '{user}', 1 FROM n;
                 {numbers} INSERT INTO idempotency_keys SELECT '{user}' || i, 'r', 'own', x'', '', 1 FROM n;
                 {numbers} INSERT INTO sign_in_codes SELECT CAST('{user}' || i AS BLOB), 'user', '{user}', 1 FROM n;
                 {numbers} INSERT INTO sessions SELECT 's{user}' || i, CAST('{user}' || i AS BLOB), 'user', '{user}', NULL, 1, \
                    1, 1, 1 FROM n;
                 {numbers} INSERT INTO idempotency_keys SELECT 's{user}' || i, 'r', 'own', x'', '', 1 FROM n;
                 {numbers} INSERT INTO idempotency_keys SELECT 'admin', 'r', '{user}' || i, x'', '', 1 FROM n;
                 {numbers} INSERT INTO idempotency_subjects SELECT '{user}', 'admin', 'r', '{user}' || i, 1 FROM n;
                 {numbers} INSERT INTO conversations (id, user_id, registered, boundary, created_at, seen_at) \
                    SELECT 'c' || i, '{user}', 0, '', 1, 1 FROM n;
                 {numbers} INSERT INTO notify_requests (key, request_id, origin, intent, channel, user_id, state, fence, \
                    created_at) SELECT CAST('{user}' || i AS BLOB), x'', '', 'send', 'email', '{user}', 'ended', 1, 1 FROM n;
                 {numbers} INSERT INTO notify_requests (key, request_id, origin, intent, channel, on_behalf_of, state, fence, \
                    created_at) SELECT CAST('for {user}' || i AS BLOB), x'', '', 'send', 'email', '{user}', 'ended', 1, 1 FROM n;
                 {numbers} INSERT INTO ledger (id, origin, user_id, channel, intent, decision) \
                    SELECT CAST('{user}' || i AS BLOB), '', '{user}', '', '', 'refused' FROM n;
                 {numbers} INSERT INTO inbound_messages SELECT 'telegram', '{user}' || i, '{user}', 'c', '', 1 FROM n;
                 {numbers} INSERT INTO reply_contexts SELECT '{user}', 'c', i, '', 1 FROM n;
                 {numbers} INSERT INTO answer_counts SELECT CAST('{user}' || i AS BLOB), '{user}', 1, 1 FROM n;
                 {numbers} INSERT INTO person_targets SELECT 'email', i, '{user}' FROM n;
                 {numbers} INSERT INTO chat_messages SELECT 'telegram', '{user}', i, '{user}', 'c', NULL, NULL, 1, NULL, 0 FROM n;
                 {numbers} INSERT INTO chat_buttons SELECT CAST('{user}' || i AS BLOB), 'telegram', '{user}', '{user}', NULL, \
                    NULL, x'', 'c', 1, NULL FROM n;
                 {numbers} INSERT INTO kept_messages SELECT CAST('{user}' || i AS BLOB), '{user}', 'telegram', '{user}', i, '', \
                    '', '', '', 1 FROM n;
                 INSERT INTO chat_pairings VALUES ('telegram', '{user}', '{user}', '', 1);
                 INSERT INTO pairing_codes VALUES (CAST('{user}' AS BLOB), 'telegram', '{user}', 1);
                 {numbers} INSERT INTO direct_messages SELECT CAST('{user}' || i AS BLOB), '{user}', '', NULL, '', 0 FROM n;
                 INSERT INTO user_settings (user_id, updated_at) VALUES ('{user}', 1);
                 INSERT INTO confirmations VALUES ('{user}', 'x', '', x'', 1, 1);
                 INSERT INTO inbox_positions VALUES ('{user}', 1);"
            ))
            .unwrap();
        }
        file
    }

    fn rows_in(file: &Connection) -> i64 {
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let tables: Vec<String> =
            file.prepare(tables).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let count = |name: &String| {
            file.query_row(&format!("SELECT COUNT(*) FROM \"{name}\""), [], |row| row.get::<_, i64>(0)).unwrap()
        };
        tables.iter().map(count).sum()
    }

    #[test]
    fn damaged_events_are_erased_too() {
        let file = file_of(["ada", "bob"], 3);
        file.execute_batch(
            "UPDATE events SET id = 'text', payload = x'ff' WHERE id = CAST('ada1' AS BLOB);
             UPDATE events SET id = 7, payload = 1 WHERE id = CAST('ada2' AS BLOB);",
        )
        .unwrap();
        let mut tables = TableCursor::new(&file).unwrap();
        assert!(rows(&file, "ada", 1_000, &mut tables).unwrap().all);
        let left = file.query_row("SELECT COUNT(*) FROM events WHERE owner = 'ada'", [], |row| row.get::<_, i64>(0));
        assert_eq!(left.unwrap(), 0);
    }

    #[test]
    fn a_step_deletes_as_many_rows_as_it_may_and_the_last_one_leaves_nothing_of_the_person() {
        let file = file_of(["ada", "bob"], 100);
        let changes = || file.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0)).unwrap();
        let (mut steps, mut pending) = (0, 0);
        let mut tables = TableCursor::new(&file).unwrap();
        loop {
            let before = changes();
            let Deleted { rows, pending: gone, all, .. } = rows(&file, "ada", 50, &mut tables).unwrap();
            let work = changes() - before;
            assert!(work <= 52 && work == rows as i64, "{work} rows in one step, and {rows} were counted");
            (steps, pending) = (steps + 1, pending + gone);
            if all {
                break;
            }
        }
        assert_eq!(rows_in(&file), rows_in(&file_of(["bob", "nobody"], 100)) / 2, "the rows of one person are left");
        assert_eq!(pending, 50);
        assert!(steps > 20, "{steps} steps");
    }

    #[test]
    fn a_step_looks_at_a_bounded_number_of_rows_and_bytes_of_others() {
        let file = file_of(["ada", "bob"], 4_000);
        file.execute("UPDATE events SET payload = zeroblob(64 * 1024) WHERE rowid % 10 = 0", []).unwrap();
        let mut tables = TableCursor::new(&file).unwrap();
        let (mut steps, mut looked_at) = (0, 0);
        loop {
            let Deleted { rows, looked, all, .. } = rows(&file, "carol", 500, &mut tables).unwrap();
            assert!(rows == 0 && looked <= LOOKED_MAX, "{rows} rows, {looked} looked at");
            (steps, looked_at) = (steps + 1, looked_at + looked);
            if all {
                break;
            }
        }
        assert_eq!(looked_at, 16_000, "each row once");
        assert!(steps >= 6, "{steps} steps");
    }
}
