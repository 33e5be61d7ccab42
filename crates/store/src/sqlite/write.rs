//! One commit: one multi-row statement per table, all or none.

use bellwire_core::Time;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;

use super::insert::{Rows, json};
use super::script::Script;
use super::{SqliteWriter, failure};
use crate::error::StoreError;
use crate::rows::Changes;
use crate::writer::Backend;

impl Backend for SqliteWriter {
    async fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        let done = write(&mut self.connection, changes, &mut self.sequence).await;
        if done.is_err() {
            // Whatever failed may have ended the transaction already; then there is nothing to roll back.
            let _ = sqlx::query("ROLLBACK").execute(&mut self.connection).await;
        }
        done.map_err(failure)
    }

    async fn prune(&mut self, events_before: Time, answers_before: Time, limit: usize) -> Result<usize, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await.map_err(failure)?;
        // Nothing waits longer than its time to live, which is at most as long as events are kept.
        let statements = [
            (
                "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE accepted_at < $1 ORDER BY id LIMIT $2)",
                events_before,
            ),
            (
                "DELETE FROM brought_ids WHERE (token_owner, id) IN (SELECT token_owner, id FROM brought_ids WHERE at < $1 LIMIT $2)",
                events_before,
            ),
            (
                "DELETE FROM notifications WHERE id IN (SELECT id FROM notifications WHERE state <> 'pending' AND created_at < $1 ORDER BY id LIMIT $2)",
                events_before,
            ),
            (
                "DELETE FROM injections WHERE (conversation_id, agent, call_id) IN (SELECT conversation_id, agent, call_id FROM injections WHERE at < $1 LIMIT $2)",
                answers_before,
            ),
        ];
        let mut gone = 0;
        for (sql, before) in statements {
            let done = sqlx::query(sql).bind(before.as_millis()).bind(limit).execute(&mut *transaction).await;
            gone += done.map_err(failure)?.rows_affected();
        }
        transaction.commit().await.map_err(failure)?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }
}

/// Every statement costs a turn of the driver's thread, so a commit is one text where it can be: it begins, inserts
/// into each table, and commits. What does not fit one text takes more rounds of the same kind.
async fn write(connection: &mut SqliteConnection, changes: &Changes, sequence: &mut i64) -> sqlx::Result<()> {
    let mut script = Script::beginning();
    let mut rows = Rows::of(changes, sequence);
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
    script.commit();
    script.run(connection).await
}

/// What is written now and then.
async fn rare(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    unseen(connection, changes).await?;
    settings(connection, changes).await?;
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
             WHERE conversation_id = $1 AND agent = $2 AND call_id = $3",
        )
        .bind(&*key.conversation_id)
        .bind(&*key.agent)
        .bind(call_id)
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
