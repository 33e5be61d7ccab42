//! All or none, also where the disk fails in the middle.
//!
//! The driver's own transactions count how deep they are. When SQLite has rolled one back by itself, as it does on a
//! full disk, that count stays wrong and every later `BEGIN` is refused. So the writer says the three words itself.

use sqlx::sqlite::SqliteConnection;

/// Begins to write; nobody else can until it has ended.
pub(super) async fn begin(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(connection).await.map(drop)
}

/// Commits what went well and takes back what did not.
pub(super) async fn end<T>(connection: &mut SqliteConnection, written: sqlx::Result<T>) -> sqlx::Result<T> {
    let committed = match written {
        Ok(value) => sqlx::raw_sql("COMMIT").execute(&mut *connection).await.map(|_| value),
        Err(error) => Err(error),
    };
    settle(connection, committed).await
}

/// Takes back what did not go well, where beginning and committing were part of it.
pub(super) async fn settle<T>(connection: &mut SqliteConnection, committed: sqlx::Result<T>) -> sqlx::Result<T> {
    if committed.is_err() {
        // Where SQLite has rolled back already this says so, and there is nothing left to do.
        let _ = sqlx::raw_sql("ROLLBACK").execute(connection).await;
    }
    committed
}
