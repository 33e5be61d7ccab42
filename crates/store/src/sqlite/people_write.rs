//! The rows of people in a commit.

use bellwire_core::Time;
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection};
use uuid::Uuid;

use super::insert::json;
use super::write::ROWS_MAX;
use crate::people::PeopleChanges;

/// What is forgotten with a person.
pub(super) const ERASED: [&str; 5] = [
    "DELETE FROM inbox WHERE user_id = $1",
    "DELETE FROM inbox_positions WHERE user_id = $1",
    "DELETE FROM deliveries WHERE user_id = $1",
    "DELETE FROM reminders WHERE user_id = $1",
    "DELETE FROM confirmations WHERE user_id = $1",
];

/// What goes when it is older than the inbox is kept.
pub(super) const PRUNED: [&str; 3] = [
    "DELETE FROM inbox WHERE (user_id, id) IN (SELECT user_id, id FROM inbox WHERE read_at < $1 LIMIT $2)",
    "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE ended_at < $1 LIMIT $2)",
    "DELETE FROM reminders WHERE id IN (SELECT id FROM reminders WHERE ended_at < $1 LIMIT $2)",
];

pub(super) async fn write(connection: &mut SqliteConnection, changes: &PeopleChanges) -> sqlx::Result<()> {
    inbox(connection, changes).await?;
    positions(connection, changes).await?;
    deliveries(connection, changes).await?;
    reminders(connection, changes).await?;
    confirmations(connection, changes).await?;
    for (name, value) in &changes.secrets {
        let sql = sqlx::query("INSERT INTO secrets (name, value) VALUES ($1, $2)");
        sql.bind(name).bind(value).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn inbox(connection: &mut SqliteConnection, changes: &PeopleChanges) -> sqlx::Result<()> {
    let rows: Vec<_> = changes.inbox.values().collect();
    for rows in rows.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new(
            "INSERT INTO inbox (user_id, id, shelf, type, origin, conversation_id, title, message, toast_json, \
             correlation_id, created_at, read_at, dismissed_at, acted_json, created_sequence, changed_sequence) ",
        );
        sql.push_values(rows, |mut values, row| {
            values
                .push_bind(&row.user_id)
                .push_bind(bytes(row.id.0))
                .push_bind(row.shelf.as_str())
                .push_bind(row.level.as_str())
                .push_bind(&row.origin)
                .push_bind(&row.conversation_id)
                .push_bind(&row.title)
                .push_bind(&row.message)
                .push_bind(row.toast.as_ref().map(json))
                .push_bind(&row.correlation_id)
                .push_bind(row.created_at.as_millis())
                .push_bind(row.read_at.map(Time::as_millis))
                .push_bind(row.dismissed_at.map(Time::as_millis))
                .push_bind(json(&row.acted))
                .push_bind(row.created_sequence)
                .push_bind(row.changed_sequence);
        });
        sql.push(
            " ON CONFLICT (user_id, id) DO UPDATE SET read_at = excluded.read_at, \
             dismissed_at = excluded.dismissed_at, acted_json = excluded.acted_json, \
             changed_sequence = excluded.changed_sequence",
        );
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn positions(connection: &mut SqliteConnection, changes: &PeopleChanges) -> sqlx::Result<()> {
    let rows: Vec<_> = changes.positions.iter().collect();
    for rows in rows.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new("INSERT INTO inbox_positions (user_id, position) ");
        sql.push_values(rows, |mut values, (user, position)| {
            values.push_bind(user.to_string()).push_bind(**position);
        });
        sql.push(" ON CONFLICT (user_id) DO UPDATE SET position = excluded.position");
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn deliveries(connection: &mut SqliteConnection, changes: &PeopleChanges) -> sqlx::Result<()> {
    let rows: Vec<_> = changes.deliveries.values().collect();
    for rows in rows.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new(
            "INSERT INTO deliveries (id, notification_id, user_id, channel, target, state, reason, attempts, \
             not_before, lease_until, fence, letter_id, created_at, ended_at) ",
        );
        sql.push_values(rows, |mut values, row| {
            values
                .push_bind(bytes(row.id))
                .push_bind(row.notification_id.map(|id| bytes(id.0)))
                .push_bind(&row.user_id)
                .push_bind(row.channel.as_str())
                .push_bind(&row.target)
                .push_bind(row.state.as_str())
                .push_bind(&row.reason)
                .push_bind(i64::from(row.attempts))
                .push_bind(row.not_before.as_millis())
                .push_bind(row.lease_until.map(Time::as_millis))
                .push_bind(row.fence)
                .push_bind(row.letter_id.map(bytes))
                .push_bind(row.created_at.as_millis())
                .push_bind(row.ended_at.map(Time::as_millis));
        });
        sql.push(
            " ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, \
             attempts = excluded.attempts, not_before = excluded.not_before, lease_until = excluded.lease_until, \
             fence = excluded.fence, letter_id = excluded.letter_id, ended_at = excluded.ended_at",
        );
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn reminders(connection: &mut SqliteConnection, changes: &PeopleChanges) -> sqlx::Result<()> {
    let rows: Vec<_> = changes.reminders.values().collect();
    for rows in rows.chunks(ROWS_MAX) {
        let mut sql = QueryBuilder::<Driver>::new(
            "INSERT INTO reminders (id, user_id, origin, conversation_id, message, type, asked, at, due_at, \
             correlation_id, created_at, ended_at, notification_id) ",
        );
        sql.push_values(rows, |mut values, row| {
            values
                .push_bind(bytes(row.id))
                .push_bind(&row.user_id)
                .push_bind(&row.origin)
                .push_bind(&row.conversation_id)
                .push_bind(&row.message)
                .push_bind(row.level.as_str())
                .push_bind(i64::from(row.asked))
                .push_bind(row.at.as_millis())
                .push_bind(row.due_at.as_millis())
                .push_bind(&row.correlation_id)
                .push_bind(row.created_at.as_millis())
                .push_bind(row.ended_at.map(Time::as_millis))
                .push_bind(row.notification_id.map(|id| bytes(id.0)));
        });
        sql.push(
            " ON CONFLICT (id) DO UPDATE SET due_at = excluded.due_at, ended_at = excluded.ended_at, \
             notification_id = excluded.notification_id",
        );
        sql.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn confirmations(connection: &mut SqliteConnection, changes: &PeopleChanges) -> sqlx::Result<()> {
    for (user, row) in &changes.confirmations {
        let Some(row) = row else {
            sqlx::query("DELETE FROM confirmations WHERE user_id = $1").bind(&**user).execute(&mut *connection).await?;
            continue;
        };
        sqlx::query(
            "INSERT INTO confirmations (user_id, address, code, expires_at, tries) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (user_id) DO UPDATE SET address = excluded.address, code = excluded.code, \
             expires_at = excluded.expires_at, tries = excluded.tries",
        )
        .bind(&**user)
        .bind(&row.address)
        .bind(&row.code)
        .bind(row.expires_at.as_millis())
        .bind(row.tries)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

fn bytes(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}
