//! Transactions that also roll back after a disk error.

use rusqlite::Connection;

/// Runs the work in an immediate transaction and commits it; rolls back on error.
pub(super) fn commit<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // The writer also reads through this connection and must not see uncommitted changes of an earlier error.
    if !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    execute(connection, "BEGIN IMMEDIATE")?;
    let done = work(connection).and_then(|value| execute(connection, "COMMIT").map(|()| value));
    // On a full disk, SQLite has already rolled back.
    if done.is_err() && !connection.is_autocommit() {
        let _ = execute(connection, "ROLLBACK");
    }
    done
}

/// Runs the work in a transaction and always rolls back.
pub(super) fn roll_back<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    if !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    execute(connection, "BEGIN IMMEDIATE")?;
    let done = work(connection);
    // After some errors, SQLite has already rolled back.
    if !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    done
}

fn execute(connection: &Connection, word: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(word)?.execute([]).map(drop)
}
