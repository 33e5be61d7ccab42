//! One commit: one multi-row statement per table, all or none.

use bellwire_core::Time;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection};
use sqlx::{Connection as _, QueryBuilder};

use super::insert::{Rows, json};
use super::mailbox_log::Leaving;
use super::script::Script;
use super::{SqliteWriter, failure, people_write, prune, transaction};
use crate::error::StoreError;
use crate::rows::Changes;
use crate::writer::{Backend, Before};

/// Rows per statement of the tables that are rarely written, so that none has more values than the driver binds.
pub(super) const ROWS_MAX: usize = 1000;
/// A probe writes as much as the largest event's payload: where that fits, a commit fits.
const PROBE_BYTES: i64 = 64 * 1024;

/// What goes with a person, in this order: some is found by what goes later.
const ERASED: [&str; 11] = [
    "DELETE FROM mailboxes WHERE owner = $1",
    "DELETE FROM mailbox_log WHERE owner = $1",
    "DELETE FROM notifications WHERE owner = $1",
    "DELETE FROM injections WHERE owner = $1",
    "DELETE FROM brought_ids WHERE event_id IN (SELECT id FROM events WHERE owner = $1)",
    "DELETE FROM superseded WHERE event_id IN (SELECT id FROM events WHERE owner = $1)",
    "DELETE FROM idempotency_keys WHERE token_id IN (SELECT id FROM tokens WHERE user_id = $1)",
    "DELETE FROM events WHERE owner = $1",
    "DELETE FROM conversations WHERE user_id = $1",
    "DELETE FROM user_settings WHERE user_id = $1",
    "DELETE FROM tokens WHERE user_id = $1",
];

impl Backend for SqliteWriter {
    async fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.file.check()?;
        let leaving = self.log.leaving();
        let rows = Rows::of(changes, &mut self.sequence, self.log.next());
        let written = write(&mut self.connection, changes, rows, leaving.as_ref()).await;
        transaction::settle(&mut self.connection, written).await.map_err(failure)?;
        self.log.committed(&changes.mailbox_rows, leaving.as_ref());
        changes.erased_users.iter().for_each(|user| self.log.forget(user));
        Ok(())
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
        self.file.check()?;
        transaction::begin(&mut self.connection).await.map_err(failure)?;
        let deleted = prune::old_rows(&mut self.connection, before, limit).await;
        let gone = transaction::end(&mut self.connection, deleted).await.map_err(failure)?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }

    async fn close(self) -> Result<(), StoreError> {
        self.connection.close().await.map_err(failure)
    }
}

/// Every statement costs a turn of the driver's thread, so a commit is one text where it can be: it begins, inserts
/// into each table, and commits. What does not fit one text takes more rounds of the same kind.
async fn write(
    connection: &mut SqliteConnection,
    changes: &Changes,
    mut rows: Rows<'_>,
    leaving: Option<&Leaving>,
) -> sqlx::Result<()> {
    let mut script = Script::beginning();
    loop {
        rows.round(&mut script);
        if rows.is_empty() {
            break;
        }
        std::mem::take(&mut script).run(connection).await?;
    }
    if changes.has_rare() {
        std::mem::take(&mut script).run(connection).await?;
        rare(connection, changes).await?;
    }
    if let Some(leaving) = leaving {
        std::mem::take(&mut script).run(connection).await?;
        script.settle(leaving);
    }
    script.commit();
    script.run(connection).await
}

/// What is written now and then.
async fn rare(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    // After the injections themselves: one of this very commit may be reported as unseen.
    unseen(connection, changes).await?;
    once(connection, changes).await?;
    superseded(connection, changes).await?;
    settings(connection, changes).await?;
    people_write::write(connection, &changes.people).await?;
    tokens(connection, changes).await?;
    for user in &changes.erased_users {
        erase(connection, user).await?;
    }
    Ok(())
}

async fn unseen(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for (key, call_id) in &changes.unseen {
        sqlx::query(
            "UPDATE injections SET unseen = 1, system_messages_json = '[]' \
             WHERE owner = $1 AND conversation_id = $2 AND agent = $3 AND call_id = $4",
        )
        .bind(&**key.owner())
        .bind(&*key.conversation.id)
        .bind(&*key.agent)
        .bind(call_id)
        .execute(&mut *connection)
        .await?;
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
        .bind(json(settings))
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
    for statement in ERASED.iter().chain(&people_write::ERASED) {
        sqlx::query(*statement).bind(user).execute(&mut *connection).await?;
    }
    Ok(())
}
