//! One commit: one multi-row statement per table, all or none.

use bellwire_core::Time;
use bellwire_core::notification::Fate;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection};
use sqlx::{Connection as _, QueryBuilder};

use super::{SqliteWriter, failure, transaction};
use crate::error::StoreError;
use crate::rows::Changes;
use crate::writer::{Backend, Before};

/// Rows per statement, so that no statement has more values than the driver binds.
const ROWS_MAX: usize = 1000;

/// A probe writes as much as the largest event's payload: where that fits, a commit fits.
const PROBE_BYTES: i64 = 64 * 1024;

impl Backend for SqliteWriter {
    async fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.file.check()?;
        transaction::begin(&mut self.connection).await.map_err(failure)?;
        let written = write(&mut self.connection, changes).await;
        transaction::end(&mut self.connection, written).await.map_err(failure)
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        self.file.check()?;
        transaction::begin(&mut self.connection).await.map_err(failure)?;
        // Equal bytes would not be written again, and so tell nothing.
        let written = sqlx::query("INSERT OR REPLACE INTO readiness (one, room) VALUES (1, randomblob($1))")
            .bind(PROBE_BYTES)
            .execute(&mut self.connection)
            .await;
        transaction::end(&mut self.connection, written).await.map(drop).map_err(failure)
    }

    async fn prune(&mut self, before: &Before, limit: usize) -> Result<usize, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        // Nothing waits longer than its time to live, which is at most as long as events are kept.
        let statements = [
            (
                "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE accepted_at < $1 ORDER BY id LIMIT $2)",
                before.events,
            ),
            (
                "DELETE FROM brought_ids WHERE (token_owner, id) IN (SELECT token_owner, id FROM brought_ids WHERE at < $1 LIMIT $2)",
                before.events,
            ),
            (
                "DELETE FROM superseded WHERE event_id IN (SELECT event_id FROM superseded WHERE at < $1 ORDER BY event_id LIMIT $2)",
                before.events,
            ),
            (
                "DELETE FROM notifications WHERE id IN (SELECT id FROM notifications WHERE state <> 'pending' AND created_at < $1 ORDER BY id LIMIT $2)",
                before.events,
            ),
            (
                "DELETE FROM injections WHERE (conversation_id, agent, call_id) IN (SELECT conversation_id, agent, call_id FROM injections WHERE at < $1 LIMIT $2)",
                before.answers,
            ),
            (
                "DELETE FROM idempotency_keys WHERE (token_id, route, name) IN (SELECT token_id, route, name FROM idempotency_keys WHERE at < $1 LIMIT $2)",
                before.once,
            ),
        ];
        self.file.check()?;
        transaction::begin(&mut self.connection).await.map_err(failure)?;
        let deleted = delete(&mut self.connection, &statements, limit).await;
        let gone = transaction::end(&mut self.connection, deleted).await.map_err(failure)?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }

    async fn close(self) -> Result<(), StoreError> {
        self.connection.close().await.map_err(failure)
    }
}

async fn delete(
    connection: &mut SqliteConnection,
    statements: &[(&'static str, Time)],
    limit: i64,
) -> sqlx::Result<u64> {
    let mut gone = 0;
    for (sql, before) in statements {
        let done = sqlx::query(*sql).bind(before.as_millis()).bind(limit).execute(&mut *connection).await?;
        gone += done.rows_affected();
    }
    Ok(gone)
}

async fn write(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    conversations(connection, changes).await?;
    events(connection, changes).await?;
    brought(connection, changes).await?;
    once(connection, changes).await?;
    superseded(connection, changes).await?;
    mailboxes(connection, changes).await?;
    notifications(connection, changes).await?;
    injections(connection, changes).await?;
    settings(connection, changes).await?;
    tokens(connection, changes).await?;
    for user in &changes.erased_users {
        erase(connection, user).await?;
    }
    Ok(())
}

async fn conversations(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    let rows: Vec<_> = changes.conversations.values().collect();
    for rows in rows.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new(
            "INSERT INTO conversations (id, user_id, title, boundary, created_at, seen_at) ",
        );
        sql.push_values(rows, |mut values, row| {
            values
                .push_bind(&*row.id)
                .push_bind(&*row.user_id)
                .push_bind(&row.title)
                .push_bind(row.boundary.as_str())
                .push_bind(row.created_at.as_millis())
                .push_bind(row.seen_at.as_millis());
        });
        sql.push(
            " ON CONFLICT (id) DO UPDATE SET title = excluded.title, boundary = excluded.boundary, \
             seen_at = excluded.seen_at",
        );
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn events(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for rows in changes.events.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new(
            "INSERT INTO events (id, type, source, severity, timestamp, payload, dedupe_key, conversation_id, agent, \
             user_id, correlation_id, cause, owner, accepted_at, filtered, verdicts) ",
        );
        sql.push_values(rows, |mut values, row| {
            let event = row.event.to_stored();
            values
                .push_bind(event.id.0.as_bytes().to_vec())
                .push_bind(event.kind)
                .push_bind(event.source)
                .push_bind(event.severity.as_str())
                .push_bind(event.timestamp.as_millis())
                .push_bind(event.payload)
                .push_bind(event.dedupe_key)
                .push_bind(event.conversation_id)
                .push_bind(event.agent)
                .push_bind(event.user_id)
                .push_bind(event.correlation_id)
                .push_bind(event.cause.as_str())
                .push_bind(&*row.owner)
                .push_bind(row.accepted_at.as_millis())
                .push_bind(i64::from(row.filtered))
                .push_bind(json(&row.verdicts));
        });
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn brought(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for rows in changes.brought.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new("INSERT INTO brought_ids (token_owner, id, event_id, content, at) ");
        sql.push_values(rows, |mut values, row| {
            values
                .push_bind(&row.token_owner)
                .push_bind(&row.id)
                .push_bind(row.event_id.0.as_bytes().to_vec())
                .push_bind(row.content.to_vec())
                .push_bind(row.at.as_millis());
        });
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn once(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for rows in changes.once.chunks(ROWS_MAX) {
        let mut sql =
            QueryBuilder::<Driver>::new("INSERT INTO idempotency_keys (token_id, route, name, content, answer, at) ");
        sql.push_values(rows, |mut values, row| {
            values
                .push_bind(&row.once.token_id)
                .push_bind(&row.once.route)
                .push_bind(&row.once.key)
                .push_bind(row.once.content.to_vec())
                .push_bind(&row.answer)
                .push_bind(row.at.as_millis());
        });
        // After a day a name may be used again, also while its old row waits to be deleted.
        sql.push(
            " ON CONFLICT (token_id, route, name) DO UPDATE SET content = excluded.content, \
             answer = excluded.answer, at = excluded.at",
        );
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn superseded(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for rows in changes.superseded.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new("INSERT INTO superseded (event_id, subscriber_id, newer_id, at) ");
        sql.push_values(rows, |mut values, row| {
            values
                .push_bind(row.event_id.0.as_bytes().to_vec())
                .push_bind(&row.subscriber)
                .push_bind(row.by.0.as_bytes().to_vec())
                .push_bind(row.at.as_millis());
        });
        // An event for several conversations may be superseded in each; the first is told.
        sql.push(" ON CONFLICT (event_id, subscriber_id) DO NOTHING");
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn mailboxes(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for rows in changes.mailbox_rows.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new("INSERT INTO mailboxes (conversation_id, agent, state, due_at) ");
        sql.push_values(rows, |mut values, (key, row)| {
            values
                .push_bind(&*key.conversation_id)
                .push_bind(&*key.agent)
                .push_bind(&row.state)
                .push_bind(row.due_at.as_millis());
        });
        sql.push(
            " ON CONFLICT (conversation_id, agent) DO UPDATE SET state = excluded.state, due_at = excluded.due_at",
        );
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn notifications(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    let rows: Vec<_> = changes.notifications.values().collect();
    for rows in rows.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new(
            "INSERT INTO notifications (id, conversation_id, agent, subscriber_id, priority, inject_at, state, reason, \
             content, call_id, created_at, ended_at, waiting) ",
        );
        sql.push_values(rows, |mut values, row| {
            let waiting = match row.fate {
                None => postcard::to_allocvec(&row.notification).unwrap_or_default(),
                Some(_) => Vec::new(),
            };
            values
                .push_bind(row.notification.id.0.as_bytes().to_vec())
                .push_bind(&*row.key.conversation_id)
                .push_bind(&*row.key.agent)
                .push_bind(row.notification.subscriber.as_str())
                .push_bind(row.notification.priority.as_str())
                .push_bind(row.notification.inject_at.as_str())
                .push_bind(row.fate.as_ref().map_or("pending", Fate::name))
                .push_bind(row.fate.as_ref().map(Fate::reason))
                .push_bind(&row.content)
                .push_bind(&row.call_id)
                .push_bind(row.notification.since.as_millis())
                .push_bind(row.ended_at.map(Time::as_millis))
                .push_bind(waiting);
        });
        sql.push(
            " ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, \
             content = excluded.content, call_id = excluded.call_id, ended_at = excluded.ended_at, \
             waiting = excluded.waiting",
        );
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn injections(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for (key, call_id) in &changes.unseen {
        sqlx::query(
            "UPDATE injections SET unseen = 1, system_messages_json = '[]' \
             WHERE conversation_id = $1 AND agent = $2 AND call_id = $3",
        )
        .bind(&*key.conversation_id)
        .bind(&*key.agent)
        .bind(call_id)
        .execute(&mut *connection)
        .await?;
    }
    for row in &changes.injections {
        sqlx::query(
            "INSERT INTO injections (conversation_id, agent, call_id, point, at, sequence, unseen, answer, taken, \
             system_messages_json) VALUES ($1, $2, $3, $4, $5, \
             (SELECT COALESCE(MAX(sequence), 0) + 1 FROM injections WHERE conversation_id = $1), $6, $7, $8, $9)",
        )
        .bind(&*row.key.conversation_id)
        .bind(&*row.key.agent)
        .bind(&row.call_id)
        .bind(row.point.as_str())
        .bind(row.at.as_millis())
        .bind(i64::from(row.unseen))
        .bind(json(&row.answer))
        .bind(postcard::to_allocvec(&row.taken).unwrap_or_default())
        .bind(json(&row.messages))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn settings(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for (user, (settings, at)) in &changes.settings {
        sqlx::query(
            "INSERT INTO user_settings (user_id, disabled_subscribers_json, settings_json, updated_at) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (user_id) DO UPDATE SET \
             disabled_subscribers_json = excluded.disabled_subscribers_json, \
             settings_json = excluded.settings_json, updated_at = excluded.updated_at",
        )
        .bind(user)
        .bind(json(&settings.disabled_subscribers))
        .bind(&settings.rest)
        .bind(at.as_millis())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn tokens(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for token in changes.tokens.values() {
        sqlx::query(
            "INSERT INTO tokens (id, secret_hash, scope, name, user_id, origin, conversation_id, created_at, \
             expires_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at",
        )
        .bind(&token.id)
        .bind(&token.secret_hash)
        .bind(&token.scope)
        .bind(&token.name)
        .bind(&token.user_id)
        .bind(&token.origin)
        .bind(&token.conversation_id)
        .bind(token.created_at.as_millis())
        .bind(token.expires_at.map(Time::as_millis))
        .bind(token.revoked_at.map(Time::as_millis))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn erase(connection: &mut SqliteConnection, user: &str) -> sqlx::Result<()> {
    let theirs = "IN (SELECT id FROM conversations WHERE user_id = $1)";
    let statements = [
        format!("DELETE FROM mailboxes WHERE conversation_id {theirs}"),
        format!("DELETE FROM notifications WHERE conversation_id {theirs}"),
        format!("DELETE FROM injections WHERE conversation_id {theirs}"),
        "DELETE FROM brought_ids WHERE event_id IN (SELECT id FROM events WHERE owner = $1)".to_owned(),
        "DELETE FROM superseded WHERE event_id IN (SELECT id FROM events WHERE owner = $1)".to_owned(),
        "DELETE FROM idempotency_keys WHERE token_id IN (SELECT id FROM tokens WHERE user_id = $1)".to_owned(),
        "DELETE FROM events WHERE owner = $1".to_owned(),
        "DELETE FROM conversations WHERE user_id = $1".to_owned(),
        "DELETE FROM user_settings WHERE user_id = $1".to_owned(),
        "DELETE FROM tokens WHERE user_id = $1".to_owned(),
    ];
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(user).execute(&mut *connection).await?;
    }
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON")
}
