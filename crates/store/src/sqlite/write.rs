//! Writes one commit in one transaction, frequent rows with cached prepared statements.

use bellwire_core::Time;
use rusqlite::{Connection, params};
use sqlx::Connection as _;

use super::insert::{self, json};
use super::{SqliteWriter, failed, failure, notify_write, people_write, probe, prune, sessions, transaction};
use crate::error::StoreError;
use crate::people::OutboxCounts;
use crate::rows::Changes;
use crate::writer::{Backend, Erased, PruneCutoffs, Pruned};

/// A probe writes as much as the largest payload of an event: if that fits on the disk, a commit does.
const PROBE_BYTES: i64 = 64 * 1024;

impl Backend for SqliteWriter {
    async fn commit(&mut self, changes: &Changes) -> Result<OutboxCounts, StoreError> {
        self.file.check()?;
        let plan = self.log.plan(&changes.mailbox_rows);
        let (log, latest, time) = (&self.log, self.sequence, self.time);
        let written = transaction::commit(&self.connection, |connection| {
            insert::all(connection, changes, latest)?;
            log.write(connection, &plan)?;
            let outbox = if changes.has_rare() { rare(connection, changes)? } else { OutboxCounts::default() };
            Ok((time.note(connection, changes.at)?, outbox))
        });
        let (time, outbox) = written.map_err(failed)?;
        self.time = time;
        self.sequence += changes.injections.len() as i64;
        self.log.committed(plan);
        Ok(outbox)
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        self.file.check()?;
        // SQLite would not write equal bytes again, so they are random.
        let sql = "INSERT OR REPLACE INTO readiness (one, room) VALUES (1, randomblob(?1))";
        let written =
            transaction::commit(&self.connection, |connection| connection.prepare_cached(sql)?.execute([PROBE_BYTES]));
        written.map(drop).map_err(failed)
    }

    async fn probe_tables(&mut self) -> Result<(), StoreError> {
        probe::tables(&self.connection).map_err(failed)
    }

    async fn prune(&mut self, before: &PruneCutoffs, limit: usize) -> Result<Pruned, StoreError> {
        self.file.check()?;
        let rows = transaction::commit(&self.connection, |connection| prune::old_rows(connection, before, limit));
        let rows = rows.map_err(failed)?;
        // A conversation has several rows to read and delete, so the limit is lower.
        let pruned = self.delete_idle(before.conversations, (limit / 8).max(1))?;
        Ok(Pruned { rows: rows + pruned.rows, read: rows + pruned.read, ..pruned })
    }

    fn waiting(&self) -> Result<usize, StoreError> {
        let sql = "SELECT COUNT(*) FROM notifications WHERE state = 'pending'";
        let count: i64 = self.connection.query_row(sql, [], |row| row.get(0)).map_err(failed)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    fn outbox(&self) -> Result<OutboxCounts, StoreError> {
        people_write::outbox(&self.connection).map_err(failed)
    }

    fn unfinished_erasures(&self) -> Vec<String> {
        self.erasures.keys().cloned().collect()
    }

    async fn erase(&mut self, user_id: &str, limit: usize, now: Time) -> Result<Erased, StoreError> {
        self.file.check()?;
        self.erase_step(user_id, limit, now)
    }

    /// Closes the writer's connection last: the last connection removes the write-ahead log.
    async fn close(self) -> Result<(), StoreError> {
        self.reading.close().await.map_err(failure)?;
        self.connection.close().map_err(|(_, error)| failed(error))
    }
}

/// Writes the less frequent rows. Returns the change of the numbers of waiting deliveries.
fn rare(connection: &Connection, changes: &Changes) -> rusqlite::Result<OutboxCounts> {
    // After the injections, because one of the same commit may be reported as unseen.
    unseen(connection, changes)?;
    idempotency_rows(connection, changes)?;
    superseded(connection, changes)?;
    settings(connection, changes)?;
    notify_write::write(connection, &changes.notify)?;
    tokens(connection, changes)?;
    sessions::write(connection, &changes.sessions)?;
    people_write::write(connection, &changes.people)
}

fn unseen(connection: &Connection, changes: &Changes) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE injections SET unseen = 1, system_messages_json = '[]' \
         WHERE owner = ?1 AND conversation_id = ?2 AND agent = ?3 AND call_id = ?4",
    )?;
    for (key, call_id) in &changes.unseen {
        let (owner, conversation, agent) = key.columns();
        update.execute(params![owner, conversation, agent, call_id])?;
    }
    Ok(())
}

fn idempotency_rows(connection: &Connection, changes: &Changes) -> rusqlite::Result<()> {
    // After a day a key may be used again, even if its old row is not deleted yet.
    let mut insert = connection.prepare_cached(
        "INSERT INTO idempotency_keys (token_id, route, name, content, answer, at) VALUES (?, ?, ?, ?, ?, ?) \
         ON CONFLICT (token_id, route, name) DO UPDATE SET content = excluded.content, \
         answer = excluded.answer, at = excluded.at",
    )?;
    let mut subject = connection.prepare_cached(
        "INSERT INTO idempotency_subjects (user_id, token_id, route, name, at) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (user_id, token_id, route, name) DO UPDATE SET at = excluded.at",
    )?;
    for row in &changes.idempotency_rows {
        let (key, at) = (&row.key, row.at.as_millis());
        insert.execute(params![key.token_id, key.route, key.key, key.content, row.answer, at])?;
        for user in &row.people {
            subject.execute(params![user, key.token_id, key.route, key.key, at])?;
        }
    }
    Ok(())
}

fn superseded(connection: &Connection, changes: &Changes) -> rusqlite::Result<()> {
    // An event for several conversations may be superseded in each; only the first is stored.
    let mut insert = connection.prepare_cached(
        "INSERT INTO superseded (event_id, subscriber_id, newer_id, at) VALUES (?, ?, ?, ?) \
         ON CONFLICT (event_id, subscriber_id) DO NOTHING",
    )?;
    for row in &changes.superseded {
        insert.execute(params![row.event_id.0.as_bytes(), row.subscriber, row.by.0.as_bytes(), row.at.as_millis()])?;
    }
    Ok(())
}

fn settings(connection: &Connection, changes: &Changes) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO user_settings (user_id, disabled_subscribers_json, settings_json, updated_at) \
         VALUES (?, ?, ?, ?) ON CONFLICT (user_id) DO UPDATE SET \
         disabled_subscribers_json = excluded.disabled_subscribers_json, \
         settings_json = excluded.settings_json, updated_at = excluded.updated_at",
    )?;
    for (user, (settings, at)) in &changes.settings {
        insert.execute(params![user, json(&settings.disabled_subscribers), json(settings), at.as_millis()])?;
        notify_write::targets(connection, user, settings)?;
    }
    Ok(())
}

fn tokens(connection: &Connection, changes: &Changes) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO tokens (id, secret_hash, scope, name, user_id, origin, conversation_id, created_at, \
         expires_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at",
    )?;
    for token in changes.tokens.values() {
        insert.execute(params![
            token.id,
            token.secret_hash,
            token.scope,
            token.name,
            token.user_id,
            token.origin,
            token.conversation_id,
            token.created_at.as_millis(),
            token.expires_at.map(Time::as_millis),
            token.revoked_at.map(Time::as_millis),
        ])?;
    }
    Ok(())
}
