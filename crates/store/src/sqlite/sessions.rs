//! Reads and writes sign-in codes and sessions.

use bellwire_core::Time;
use rusqlite::{Connection, params};
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite as Driver, SqliteRow};

use super::read::column;
use super::{Sqlite, SqliteWriter, failure, row_count};
use crate::error::StoreError;
use crate::executor::SessionRowSource;
use crate::sessions::{Session, SessionChanges, SessionOwner, SessionReader, SignInCode};

const SESSIONS: &str =
    "SELECT id, secret_hash, scope, user_id, name, created_at, expires_at, used_at FROM sessions WHERE ";

/// Retention: expired codes and ended sessions.
pub(super) const PRUNED: [&str; 2] = [
    "DELETE FROM sign_in_codes WHERE code IN (SELECT code FROM sign_in_codes WHERE expires_at < ?1 LIMIT ?2)",
    "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE ends_at < ?1 LIMIT ?2)",
];

pub(super) fn write(connection: &Connection, changes: &SessionChanges) -> rusqlite::Result<()> {
    for (code, row) in &changes.codes {
        match row {
            Some(row) => connection.execute(
                "INSERT INTO sign_in_codes (code, scope, user_id, expires_at) VALUES (?, ?, ?, ?)",
                params![code, row.scope, row.user_id, row.expires_at.as_millis()],
            )?,
            None => connection.execute("DELETE FROM sign_in_codes WHERE code = ?", params![code])?,
        };
    }
    for (id, row) in &changes.sessions {
        match row {
            Some(row) => connection.execute(
                "INSERT INTO sessions (id, secret_hash, scope, user_id, name, created_at, expires_at, used_at, ends_at) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) \
                 ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, ends_at = excluded.ends_at",
                params![
                    id,
                    row.secret_hash,
                    row.scope,
                    row.user_id,
                    row.name,
                    row.created_at.as_millis(),
                    row.expires_at.as_millis(),
                    row.used_at.as_millis(),
                    row.ends_at().as_millis(),
                ],
            )?,
            None => connection.execute("DELETE FROM sessions WHERE id = ?", params![id])?,
        };
    }
    Ok(())
}

impl SessionRowSource for SqliteWriter {
    async fn sign_in_code(&mut self, code: &[u8]) -> Result<Option<SignInCode>, StoreError> {
        let row = sqlx::query("SELECT scope, user_id, expires_at FROM sign_in_codes WHERE code = $1").bind(code);
        let row = row.fetch_optional(&mut self.reading).await.map_err(failure)?;
        let Some(row) = &row else { return Ok(None) };
        Ok(Some(SignInCode {
            code: code.to_vec(),
            scope: column(row, 0)?,
            user_id: column(row, 1)?,
            expires_at: Time::from_millis(column(row, 2)?),
        }))
    }

    async fn session(&mut self, id: &str) -> Result<Option<Session>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(SESSIONS);
        sql.push("id = ").push_bind(id);
        let row = sql.build().fetch_optional(&mut self.reading).await.map_err(failure)?;
        row.as_ref().map(session).transpose()
    }

    async fn sessions_of(&mut self, user_id: &str, scope: &str, limit: usize) -> Result<Vec<Session>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(SESSIONS);
        sql.push("user_id = ").push_bind(user_id).push(" AND scope = ").push_bind(scope);
        sql.push(" ORDER BY used_at LIMIT ").push_bind(row_count(limit));
        let rows = sql.build().fetch_all(&mut self.reading).await.map_err(failure)?;
        rows.iter().map(session).collect()
    }
}

impl SessionReader for Sqlite {
    async fn has_sign_in_code(&self, code: &[u8]) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 FROM sign_in_codes WHERE code = $1").bind(code);
        Ok(row.fetch_optional(&self.pool).await.map_err(failure)?.is_some())
    }

    async fn session_by_secret(&self, hash: &[u8]) -> Result<Option<Session>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(SESSIONS);
        sql.push("secret_hash = ").push_bind(hash.to_vec());
        let row = sql.build().fetch_optional(&self.pool).await.map_err(failure)?;
        row.as_ref().map(session).transpose()
    }

    async fn sessions(&self, owner: &SessionOwner, now: Time, limit: usize) -> Result<Vec<Session>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(SESSIONS);
        match &owner.user_id {
            Some(user_id) => {
                sql.push("user_id = ").push_bind(user_id).push(" AND scope = ").push_bind(&owner.scope);
            }
            // As text, because a parameter would not match the index of operators' sessions.
            None => {
                sql.push(if owner.scope == "admin" { "scope = 'admin'" } else { "FALSE" });
            }
        }
        sql.push(" AND +ends_at > ").push_bind(now.as_millis());
        sql.push(" ORDER BY created_at DESC, id DESC LIMIT ").push_bind(row_count(limit));
        let rows = sql.build().fetch_all(&self.pool).await.map_err(failure)?;
        rows.iter().map(session).collect()
    }
}

fn session(row: &SqliteRow) -> Result<Session, StoreError> {
    Ok(Session {
        id: column(row, 0)?,
        secret_hash: column(row, 1)?,
        scope: column(row, 2)?,
        user_id: column(row, 3)?,
        name: column(row, 4)?,
        created_at: Time::from_millis(column(row, 5)?),
        expires_at: Time::from_millis(column(row, 6)?),
        used_at: Time::from_millis(column(row, 7)?),
    })
}
