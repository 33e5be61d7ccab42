//! Erasing a person: bounded steps, each a transaction, each row found by an index.
//!
//! The connection runs with `secure_delete`, so SQLite overwrites what is deleted with zeros. The last step copies the
//! write-ahead log into the file and truncates it, because its frames still hold the pages as they were before.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::{BUSY, SqliteWriter, failed, row_count, transaction};
use crate::error::StoreError;
use crate::writer::{Erased, Progress};

/// At most this many bytes of events are deleted in one step: zeroing large payloads takes as long as writing them.
const EVENT_BYTES_MAX: i64 = 4 * 1024 * 1024;
/// How long the last step waits for readers of the write-ahead log before other commands go first.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(10);

/// What the writer remembers of an erasure: the number from which on the mailbox log has no record about the person.
pub(super) type Erasures = HashMap<String, i64>;

/// The rows of a person that are due or claimed by timers and workers, and their mailboxes. They go first.
const FIRST: [&str; 3] = [
    "DELETE FROM reminders WHERE id IN (SELECT id FROM reminders WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM mailboxes WHERE rowid IN (SELECT rowid FROM mailboxes WHERE owner = ?1 LIMIT ?2)",
];
const EVENTS: &str = "SELECT rowid, id, COALESCE(OCTET_LENGTH(payload), 0) FROM events WHERE owner = ?1 LIMIT ?2";
/// What belongs to one event, by its id.
const OF_EVENT: [&str; 2] =
    ["DELETE FROM brought_ids WHERE event_id = ?1", "DELETE FROM superseded WHERE event_id = ?1"];
const EVENT: &str = "DELETE FROM events WHERE rowid = ?1";
const PENDING: &str = "SELECT COUNT(*) FROM (SELECT state FROM notifications WHERE owner = ?1 ORDER BY rowid LIMIT ?2) \
                       WHERE state = 'pending'";
const NOTIFICATIONS: &str = "DELETE FROM notifications WHERE rowid IN \
                             (SELECT rowid FROM notifications WHERE owner = ?1 ORDER BY rowid LIMIT ?2)";
/// The rest, in this order: answers are found by tokens and subjects, and the person's own calls are answered with 409
/// for as long as their tokens are there.
const LAST: [&str; 10] = [
    "DELETE FROM injections WHERE sequence IN (SELECT sequence FROM injections WHERE owner = ?1 LIMIT ?2)",
    "DELETE FROM inbox WHERE (user_id, id) IN (SELECT user_id, id FROM inbox WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM inbox_positions WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM confirmations WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM user_settings WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN (SELECT known.token_id, known.route, known.name \
     FROM tokens CROSS JOIN idempotency_keys AS known ON known.token_id = tokens.id WHERE tokens.user_id = ?1 LIMIT ?2)",
    "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN (SELECT known.token_id, known.route, known.name \
     FROM idempotency_subjects AS about CROSS JOIN idempotency_keys AS known ON known.token_id = about.token_id \
     AND known.route = about.route AND known.name = about.name AND known.at = about.at WHERE about.user_id = ?1 LIMIT ?2)",
    "DELETE FROM idempotency_subjects WHERE (user_id, token_id, route, name) IN \
     (SELECT user_id, token_id, route, name FROM idempotency_subjects WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM conversations WHERE (id, user_id) IN (SELECT id, user_id FROM conversations WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens WHERE user_id = ?1 LIMIT ?2)",
];

/// The people whose erasure was under way when the file was used last.
pub(super) fn unfinished(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let users = || -> rusqlite::Result<Vec<String>> {
        connection.prepare("SELECT user_id FROM erasures")?.query_map([], |row| row.get(0))?.collect()
    };
    users().map_err(failed)
}

impl SqliteWriter {
    /// One step of at most about `limit` rows. The first one records that the erasure is under way.
    pub(super) fn erase_step(&mut self, user: &str, limit: usize) -> Result<Erased, StoreError> {
        let until = self.erasures.get(user).copied();
        let is_first = until.is_none();
        let until = until.unwrap_or_else(|| self.log.next());
        let plan = self.log.plan_until(until, limit, Some(user));
        let (log, moved) = (&self.log, plan.work());
        let erased = transaction::whole(&self.connection, |connection| {
            if is_first {
                connection.execute("INSERT OR IGNORE INTO erasures (user_id) VALUES (?1)", [user])?;
            }
            log.write(connection, &plan)?;
            rows(connection, user, limit.saturating_sub(moved))
        });
        let Deleted { rows, pending, all } = erased.map_err(failed)?;
        self.log.committed(plan);
        if is_first {
            self.log.forget(user);
            self.erasures.insert(user.to_owned(), until);
        }
        let progress = match all && self.log.begins_at_or_after(until) {
            // The rows are gone for good: whoever asked again after an error would have new rows deleted.
            true => self.end_erasure(user).unwrap_or_else(|error| Progress::Failed(failed(error))),
            false => Progress::More,
        };
        Ok(Erased { rows: moved + rows, pending, progress })
    }

    /// The rows are gone. When the pages they were on are gone too, so is the record of the erasure.
    fn end_erasure(&mut self, user: &str) -> rusqlite::Result<Progress> {
        if !truncate_wal(&self.connection)? {
            return Ok(Progress::Blocked);
        }
        let ended = "DELETE FROM erasures WHERE user_id = ?1";
        transaction::whole(&self.connection, |connection| connection.execute(ended, [user]))?;
        // The page of that last row, with the person's id, is in the log now.
        if !truncate_wal(&self.connection)? {
            return Ok(Progress::Blocked);
        }
        self.erasures.remove(user);
        Ok(Progress::Done)
    }
}

/// Copies the write-ahead log into the file and empties it; false where a reader still needs it. It waits for readers only
/// where none of them needs an older page.
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

/// What was deleted of a person.
struct Deleted {
    rows: usize,
    /// How many of the rows were pending notifications.
    pending: usize,
    /// Whether no row is left.
    all: bool,
}

/// Deletes about `limit` rows of a person.
fn rows(connection: &Connection, user: &str, limit: usize) -> rusqlite::Result<Deleted> {
    let (mut left, mut pending) = (limit, 0_i64);
    for sql in FIRST {
        left -= some(connection, sql, user, left)?;
    }
    left -= events(connection, user, left)?.min(left);
    if left > 0 {
        let wanted = params![user, row_count(left)];
        pending = connection.prepare_cached(PENDING)?.query_row(wanted, |row| row.get(0))?;
        left -= some(connection, NOTIFICATIONS, user, left)?;
    }
    for sql in LAST {
        left -= some(connection, sql, user, left)?;
    }
    // A statement that found less than it was allowed to has found all.
    Ok(Deleted { rows: limit - left, pending: usize::try_from(pending).unwrap_or(0), all: left > 0 })
}

fn some(connection: &Connection, sql: &str, user: &str, limit: usize) -> rusqlite::Result<usize> {
    if limit == 0 {
        return Ok(0);
    }
    connection.prepare_cached(sql)?.execute(params![user, row_count(limit)])
}

/// Deletes events with what belongs to them; all of `limit` where there may be more.
fn events(connection: &Connection, user: &str, limit: usize) -> rusqlite::Result<usize> {
    let mut query = connection.prepare_cached(EVENTS)?;
    let found = query.query_map(params![user, row_count(limit)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    // A damaged id may be of any type.
    let found: Vec<(i64, Value, i64)> = found.collect::<rusqlite::Result<_>>()?;
    let (mut gone, mut bytes) = (0, 0);
    for (rowid, id, length) in &found {
        for sql in OF_EVENT {
            gone += connection.prepare_cached(sql)?.execute([id])?;
        }
        gone += connection.prepare_cached(EVENT)?.execute([rowid])?;
        bytes += length;
        if gone >= limit || bytes >= EVENT_BYTES_MAX {
            return Ok(limit);
        }
    }
    Ok(gone)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use super::super::migrate::MIGRATIONS;
    use super::*;

    #[test]
    fn every_statement_finds_its_rows_by_an_index() {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let statements = [EVENTS, EVENT, PENDING, NOTIFICATIONS].into_iter().chain(FIRST).chain(OF_EVENT).chain(LAST);
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

    /// A file with rows of two people in every table that erasing touches.
    fn file_of(people: [&str; 2], events: usize) -> Connection {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        for user in people {
            let numbers = format!("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {events})");
            file.execute_batch(&format!(
                "{numbers} INSERT INTO events SELECT CAST('{user}' || i AS BLOB), 't', 's', 'info', 1, '{{}}', NULL, 'c', \
                    'main', NULL, NULL, 'other', '{user}', 1, 0, '[]' FROM n;
                 {numbers} INSERT INTO brought_ids SELECT 'admin', '{user}' || i, CAST('{user}' || i AS BLOB), x'', 1 FROM n;
                 {numbers} INSERT INTO superseded SELECT CAST('{user}' || i AS BLOB), 's', x'', 1 FROM n;
                 {numbers} INSERT INTO notifications SELECT CAST('{user}' || i AS BLOB), '{user}', 'c', 'main', 's', 'high', \
                    'after_tool', CASE i % 2 WHEN 0 THEN 'pending' ELSE 'injected' END, NULL, NULL, NULL, 1, NULL, x'' FROM n;
                 {numbers} INSERT INTO injections (owner, conversation_id, agent, call_id, point, at, answer, taken) \
                    SELECT '{user}', 'c', 'main', i, 'after_tool', 1, '{{}}', x'' FROM n;
                 {numbers} INSERT INTO mailboxes SELECT '{user}', 'c' || i, 'main', x'', x'', 1 FROM n;
                 {numbers} INSERT INTO tokens (id, secret_hash, scope, user_id, created_at) \
                    SELECT '{user}' || i, CAST('{user}' || i AS BLOB), 'user', '{user}', 1 FROM n;
                 {numbers} INSERT INTO idempotency_keys SELECT '{user}' || i, 'r', 'own', x'', '', 1 FROM n;
                 {numbers} INSERT INTO idempotency_keys SELECT 'admin', 'r', '{user}' || i, x'', '', 1 FROM n;
                 {numbers} INSERT INTO idempotency_subjects SELECT '{user}', 'admin', 'r', '{user}' || i, 1 FROM n;
                 {numbers} INSERT INTO conversations (id, user_id, registered, boundary, created_at, seen_at) \
                    SELECT 'c' || i, '{user}', 0, '', 1, 1 FROM n;
                 INSERT INTO user_settings (user_id, updated_at) VALUES ('{user}', 1);
                 INSERT INTO confirmations VALUES ('{user}', '', x'', 1, 1);
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
        assert!(rows(&file, "ada", 1_000).unwrap().all);
        let left = file.query_row("SELECT COUNT(*) FROM events WHERE owner = 'ada'", [], |row| row.get::<_, i64>(0));
        assert_eq!(left.unwrap(), 0);
    }

    #[test]
    fn a_step_deletes_as_many_rows_as_it_may_and_the_last_one_leaves_nothing_of_the_person() {
        let file = file_of(["ada", "bob"], 100);
        let changes = || file.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0)).unwrap();
        let (mut steps, mut pending) = (0, 0);
        loop {
            let before = changes();
            let Deleted { rows, pending: gone, all } = rows(&file, "ada", 50).unwrap();
            let work = changes() - before;
            assert!(work <= 52 && rows <= 50, "{work} rows in one step");
            (steps, pending) = (steps + 1, pending + gone);
            if all {
                break;
            }
        }
        assert_eq!(rows_in(&file), rows_in(&file_of(["bob", "nobody"], 100)) / 2, "the rows of one person are left");
        assert_eq!(pending, 50);
        assert!(steps > 20, "{steps} steps");
    }
}
