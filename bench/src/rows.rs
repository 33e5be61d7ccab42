//! The least a durable hub must do: write the events it took in, in groups, and wait for the disk after each.
//!
//! The rows are those the hub wrote in the same run, read back from its file. What comes on top in the hub, the
//! mailboxes and the notifications, is not written here: this is a ceiling and not a rival.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, QueryBuilder, Row as _};

const COLUMNS: &str = "id, type, source, severity, timestamp, payload, dedupe_key, conversation_id, agent, user_id, \
                       correlation_id, cause, owner, accepted_at, filtered, verdicts";

/// Writes the hub's latest events into a new file, so many to a commit; rows a second.
pub(crate) fn insert(hub: &Path, group: usize, lap_max: Duration) -> f64 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    runtime.block_on(async {
        let mut from = options(hub).connect().await.expect("the hub's file can be read beside it");
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM events ORDER BY id DESC LIMIT 20000")))
                .fetch_all(&mut from)
                .await
                .expect("there are events");
        let table: String = sqlx::query_scalar("SELECT sql FROM sqlite_master WHERE name = 'events'")
            .fetch_one(&mut from)
            .await
            .expect("there is the table");
        let folder = tempfile::tempdir_in(hub.parent().expect("a file lies in a folder")).expect("a folder is made");
        let mut into =
            options(&folder.path().join("rows.db")).create_if_missing(true).connect().await.expect("a file is made");
        sqlx::query(sqlx::AssertSqlSafe(table)).execute(&mut into).await.expect("the same table is made");
        let start = Instant::now();
        let mut written = 0;
        for group in rows.rchunks(group.max(1)).rev() {
            commit(&mut into, group).await.expect("rows that were written once can be written again");
            written += group.len();
            if start.elapsed() > lap_max {
                break;
            }
        }
        written as f64 / start.elapsed().as_secs_f64()
    })
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .statement_cache_capacity(512)
}

async fn commit(connection: &mut SqliteConnection, rows: &[SqliteRow]) -> sqlx::Result<()> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let mut sql = QueryBuilder::<Sqlite>::new(format!("INSERT INTO events ({COLUMNS}) "));
    // They were read newest first.
    sql.push_values(rows.iter().rev(), |mut values, row| {
        for column in 0..16 {
            match column {
                0 => values.push_bind(row.get::<Vec<u8>, _>(column)),
                4 | 13 | 14 => values.push_bind(row.get::<i64, _>(column)),
                _ => values.push_bind(row.get::<Option<String>, _>(column)),
            };
        }
    });
    sql.build().execute(&mut *transaction).await?;
    transaction.commit().await
}
