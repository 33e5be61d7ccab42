//! `check` says whether commands would succeed, also where only some tables of the file are damaged.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use bellwire_store::{Caller, ErrorKind};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::backends::{Backend, failure};

/// The pages of the database file itself, beside a running store.
struct Pages {
    connection: sqlx::SqliteConnection,
    file: File,
    size: u64,
}

impl Pages {
    async fn of(backend: &Backend) -> Self {
        let mut connection = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
        let size: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut connection).await.unwrap();
        let file = File::options().read(true).write(true).open(backend.path()).unwrap();
        Self { connection, file, size: size.unsigned_abs() }
    }

    /// Where the root page of a table begins in the file, with nothing newer of it in the log beside the file.
    async fn root(&mut self, table: &str) -> u64 {
        sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut self.connection).await.unwrap();
        let sql = "SELECT rootpage FROM sqlite_master WHERE name = $1";
        let page: i64 = sqlx::query_scalar(sql).bind(table).fetch_one(&mut self.connection).await.unwrap();
        (page.unsigned_abs() - 1) * self.size
    }

    /// Writes to the file, gives what was there, and makes every connection forget the pages it remembers.
    async fn overwrite(&mut self, at: u64, bytes: &[u8]) -> Vec<u8> {
        let mut before = vec![0; bytes.len()];
        self.file.read_exact_at(&mut before, at).unwrap();
        self.file.write_all_at(bytes, at).unwrap();
        let write = "INSERT OR REPLACE INTO readiness (one, room) VALUES (2, randomblob(9))";
        sqlx::raw_sql(write).execute(&mut self.connection).await.unwrap();
        before
    }
}

/// Asks for this long, and expects the same answer every time.
async fn stays_unready(backend: &Backend, long: Duration) {
    let start = Instant::now();
    while start.elapsed() < long {
        let ready = backend.store().check().await;
        assert!(ready.is_err(), "ready after {:?} although no event can be written", start.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asks until it is ready; no command comes that could show it.
async fn gets_ready(backend: &Backend) {
    let start = Instant::now();
    while let Err(error) = backend.store().check().await {
        assert!(start.elapsed() < Duration::from_secs(30), "it never gets ready: {error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_store_whose_events_are_on_a_corrupt_page_is_not_ready_until_it_is_repaired() {
    let backend = Backend::sqlite().await;
    backend.publish(failure("grep")).await;
    backend.store().check().await.unwrap();
    let mut pages = Pages::of(&backend).await;
    let root = pages.root("events").await;
    let whole = pages.overwrite(root, &vec![0; usize::try_from(pages.size).unwrap()]).await;
    let refused = backend.publish_as(Caller::user("ada"), failure("sed"), None).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Damaged, "{refused}");
    stays_unready(&backend, Duration::from_millis(4_500)).await;
    pages.overwrite(root, &whole).await;
    pages.connection.close().await.unwrap();
    gets_ready(&backend).await;
    backend.publish(failure("sed")).await;
}

#[tokio::test]
async fn a_corrupt_table_is_noticed_before_any_command_has_failed() {
    let mut backend = Backend::sqlite().await;
    backend.publish(failure("grep")).await;
    backend.restart().await;
    let mut pages = Pages::of(&backend).await;
    let root = pages.root("events").await;
    pages.overwrite(root, &vec![0; usize::try_from(pages.size).unwrap()]).await;
    assert_eq!(backend.store().check().await.unwrap_err().kind, ErrorKind::Damaged);
}

#[tokio::test]
async fn one_command_that_the_database_refuses_does_not_make_a_store_unready_for_ever() {
    let backend = Backend::sqlite().await;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    // Only a row of this one kind is refused; the probe's rows are not.
    let fault = "CREATE TRIGGER fault BEFORE INSERT ON events WHEN NEW.type = 'tool.call.failure' \
                 BEGIN SELECT RAISE(ABORT, 'on purpose'); END";
    sqlx::raw_sql(fault).execute(&mut file).await.unwrap();
    backend.publish_as(Caller::user("ada"), failure("sed"), None).await.unwrap_err();
    assert!(backend.store().check().await.is_err());
    gets_ready(&backend).await;
}
