use std::path::Path;

use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::{SqliteStore, failure, lock, migrate, options};
use crate::error::StoreError;

/// What an operator wants to know of a database that nobody serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Steps that the next start will apply.
    pub pending: Vec<&'static str>,
    /// What SQLite finds damaged; nothing in a whole database.
    pub damage: Vec<String>,
}

impl SqliteStore {
    /// Looks a database over without changing it. Refused while a hub serves it.
    pub async fn inspect(path: &Path) -> Result<Inspection, StoreError> {
        let _lock = lock(path)?;
        let mut connection = options(path).read_only(true).connect().await.map_err(failure)?;
        let pending = migrate::pending(&mut connection).await?;
        let rows = sqlx::query("PRAGMA quick_check(20)").fetch_all(&mut connection).await.map_err(failure)?;
        let damage = rows.iter().map(|row| row.get::<String, _>(0)).filter(|line| line != "ok").collect();
        connection.close().await.map_err(failure)?;
        Ok(Inspection { pending, damage })
    }
}
