//! Raw inserts, the minimum work of a durable hub: write event rows in groups and wait for the disk after each commit.
//!
//! The rows are those the hub wrote in the same run, read from its database. Mailboxes and notifications, which the hub
//! writes too, are left out: this is an upper bound, not an alternative.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

const COLUMNS: &str = "id, type, source, severity, timestamp, payload, dedupe_key, conversation_id, agent, user_id, \
                       correlation_id, cause, owner, accepted_at, filtered, verdicts";

/// The columns of one row of `events`.
type EventColumns = [Value; 16];

/// Inserts the hub's latest events into a new database, `group` rows per commit; returns rows per second.
pub(crate) fn insert(hub: &Path, group: usize, lap_max: Duration) -> f64 {
    let (table, rows) = written(hub).expect("the hub's file can be read beside it");
    let folder = tempfile::tempdir_in(hub.parent().expect("a file lies in a folder")).expect("a folder is made");
    let into = Connection::open(folder.path().join("rows.db")).expect("a file is made");
    into.pragma_update(None, "journal_mode", "WAL").expect("a new file takes a log");
    into.pragma_update(None, "synchronous", "FULL").expect("it is the default");
    into.execute(&table, []).expect("the same table is made");
    let start = Instant::now();
    let mut written = 0;
    for group in rows.chunks(group.max(1)) {
        commit(&into, group).expect("rows that were written once can be written again");
        written += group.len();
        if start.elapsed() > lap_max {
            break;
        }
    }
    written as f64 / start.elapsed().as_secs_f64()
}

/// The SQL of the hub's events table and its latest 20,000 rows, oldest first.
fn written(hub: &Path) -> rusqlite::Result<(String, Vec<EventColumns>)> {
    let from = Connection::open(hub)?;
    let table = from.query_row("SELECT sql FROM sqlite_master WHERE name = 'events'", [], |row| row.get(0))?;
    let mut query = from.prepare(&format!("SELECT {COLUMNS} FROM events ORDER BY id DESC LIMIT 20000"))?;
    let rows = query.query_map([], |row| {
        let mut columns = [const { Value::Null }; 16];
        columns.iter_mut().enumerate().try_for_each(|(at, column)| row.get(at).map(|value| *column = value))?;
        Ok(columns)
    })?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<EventColumns>>>()?;
    rows.reverse();
    Ok((table, rows))
}

fn commit(connection: &Connection, rows: &[EventColumns]) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let places = vec!["?"; 16].join(", ");
    let mut insert = connection.prepare_cached(&format!("INSERT INTO events ({COLUMNS}) VALUES ({places})"))?;
    for row in rows {
        insert.execute(params_from_iter(row))?;
    }
    connection.prepare_cached("COMMIT")?.execute([]).map(drop)
}
