//! All or none, also where the disk fails in the middle.

use rusqlite::Connection;

/// Does the work in a transaction that nobody else can write beside; what does not go well is taken back.
pub(super) fn whole<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // The writer reads by this connection too, and must never see what was refused.
    if !connection.is_autocommit() {
        say(connection, "ROLLBACK")?;
    }
    say(connection, "BEGIN IMMEDIATE")?;
    let done = work(connection).and_then(|value| say(connection, "COMMIT").map(|()| value));
    // On a full disk SQLite has rolled back by itself.
    if done.is_err() && !connection.is_autocommit() {
        let _ = say(connection, "ROLLBACK");
    }
    done
}

/// Does the work in a transaction that is always rolled back.
pub(super) fn undone<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    if !connection.is_autocommit() {
        say(connection, "ROLLBACK")?;
    }
    say(connection, "BEGIN IMMEDIATE")?;
    let done = work(connection);
    // Some errors have rolled back already.
    if !connection.is_autocommit() {
        say(connection, "ROLLBACK")?;
    }
    done
}

fn say(connection: &Connection, word: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(word)?.execute([]).map(drop)
}
