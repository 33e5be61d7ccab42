use bellwire_core::Time;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Row as _};

use super::failure;
use crate::error::{ErrorKind, StoreError};

/// Every step from an empty file to today's tables, in order. A step that was released never changes.
const MIGRATIONS: [(&str, &str); 2] = [
    ("0001_initial", include_str!("../../migrations/sqlite/0001_initial.sql")),
    ("0002_readiness", include_str!("../../migrations/sqlite/0002_readiness.sql")),
];

/// Applies what is missing, each step in a transaction of its own; gives the names of what it applied.
pub(super) async fn run(connection: &mut SqliteConnection, now: Time) -> Result<Vec<&'static str>, StoreError> {
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS migrations (name TEXT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)")
        .execute(&mut *connection)
        .await
        .map_err(failure)?;
    let missing = pending(connection).await?;
    let mut applied = Vec::new();
    for (name, sql) in MIGRATIONS.iter().filter(|(name, _)| missing.contains(name)) {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failure)?;
        sqlx::raw_sql(*sql).execute(&mut *transaction).await.map_err(failure)?;
        sqlx::query("INSERT INTO migrations (name, applied_at) VALUES ($1, $2)")
            .bind(*name)
            .bind(now.as_millis())
            .execute(&mut *transaction)
            .await
            .map_err(failure)?;
        transaction.commit().await.map_err(failure)?;
        applied.push(*name);
    }
    Ok(applied)
}

/// The steps that are missing, in order. A database of a newer Bellwire is refused.
pub(super) async fn pending(connection: &mut SqliteConnection) -> Result<Vec<&'static str>, StoreError> {
    let known = sqlx::query("SELECT name FROM migrations").fetch_all(&mut *connection).await.map_err(failure)?;
    let known: Vec<String> = known.iter().map(|row| row.get(0)).collect();
    if let Some(newer) = known.iter().find(|name| !MIGRATIONS.iter().any(|(ours, _)| ours == name)) {
        let message = format!("the database was made by a newer Bellwire (step {newer}); use that version");
        return Err(StoreError::new(ErrorKind::Broken, message));
    }
    let missing = MIGRATIONS.iter().map(|(name, _)| *name).filter(|name| !known.iter().any(|known| known == name));
    Ok(missing.collect())
}
