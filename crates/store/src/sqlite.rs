//! The SQLite backend: one file, one writer thread, and a pool of readers.
//!
//! The writer keeps mailboxes in memory, so no second process may write to the same file; a lock file prevents that.
//! Readers have their own connections and see only committed rows.

mod chats;
mod chats_read;
mod chats_write;
mod conversation_list;
mod erase;
mod event_list;
mod hub_time;
mod identity;
mod idle;
mod inbox_read;
mod inspect;
mod migrate;
mod notify_read;
mod notify_write;
mod people_read;
mod people_rows;
mod people_source;
mod people_write;
mod probe;
mod prune;
mod read;
mod rows;
mod sessions;
mod transaction;
mod unreadable;

mod insert;
mod mailbox_log;
mod write;

pub use inspect::{Inspection, SavedMailbox};

use std::fs::File;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::OpenFlags;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::error::{ErrorKind, StoreError};
use crate::refusals::{LocalRefusalCache, RefusalCache};
use crate::single_writer::SingleWriterStore;
use crate::writer::{self, StoreOptions};

/// A store in one SQLite file.
pub type SqliteStore = SingleWriterStore<Sqlite>;

/// The reading side of a SQLite store.
#[derive(Clone)]
pub struct Sqlite {
    pool: SqlitePool,
}

/// The backend of the writer. It runs on its own thread.
pub(crate) struct SqliteWriter {
    /// Reads rows that are not in memory, through sqlx like the readers.
    reading: SqliteConnection,
    /// Writes, and waits for the disk on the writer's own thread. Through another thread, a commit of a few rows took
    /// twice as long.
    connection: rusqlite::Connection,
    /// The identity of the open file, to detect that it was deleted or replaced.
    file: identity::FileIdentity,
    /// The mailboxes in the log.
    log: mailbox_log::MailboxLog,
    time: hub_time::HubTime,
    /// The erasures in progress.
    erasures: erase::Erasures,
    /// Where the search for idle conversations and mailboxes continues.
    idle: idle::IdleCursor,
    /// The sequence number of the latest injection. Sequence numbers order the injections of a conversation.
    sequence: i64,
    /// The lock file, locked while the store is open.
    _lock: File,
}

/// The number of reader connections.
const READERS: u32 = 4;
/// How long a connection waits for a lock that another one holds.
const BUSY: Duration = Duration::from_secs(5);
/// A checkpoint truncates the write-ahead log to this size, so that a burst does not occupy the disk forever.
const JOURNAL_BYTES: i64 = 64 * 1024 * 1024;
/// The capacity of the statement cache. There are fewer cached statements, so each is prepared once.
const STATEMENTS: usize = 128;

impl SqliteStore {
    /// Opens the file. Creates it if needed and applies missing migrations.
    pub async fn open(path: &Path, opening: StoreOptions) -> Result<Self, StoreError> {
        Self::open_with_refusal_cache(path, opening, Arc::new(LocalRefusalCache::default())).await
    }

    /// The same with another cache for refusals by the hourly limits.
    pub async fn open_with_refusal_cache(
        path: &Path,
        opening: StoreOptions,
        refusals: Arc<dyn RefusalCache>,
    ) -> Result<Self, StoreError> {
        Self::open_file(path, opening, refusals).await.map_err(|error| with_path(path, error))
    }

    async fn open_file(
        path: &Path,
        opening: StoreOptions,
        refusals: Arc<dyn RefusalCache>,
    ) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        create_private(path)?;
        let mut reading = options(path).create_if_missing(true).connect().await.map_err(failure)?;
        migrate::run(&mut reading, opening.clock.now()).await?;
        end_leases(&mut reading).await?;
        let pool = SqlitePoolOptions::new()
            .max_connections(READERS)
            .connect_with(options(path).read_only(true))
            .await
            .map_err(failure)?;
        let latest: i64 = sqlx::query_scalar("SELECT COALESCE(MAX(sequence), 0) FROM injections")
            .fetch_one(&mut reading)
            .await
            .map_err(failure)?;
        let (connection, file) = (writing(path).map_err(failed)?, identity::FileIdentity::of(path)?);
        let mut log = mailbox_log::MailboxLog::read(&connection)?.keeping(opening.sizes.mailbox_log_bytes);
        let mut time = hub_time::HubTime::read(&connection).map_err(failed)?;
        if let Some(ahead_ms) = opening.clock.start(time.last_now()) {
            tracing::warn!(
                ahead_ms,
                "stored times are ahead of the clock; the clock is followed, and they count as now"
            );
            time = hub_time::set_back(&connection, &mut log, opening.clock.now()).map_err(failed)?;
        }
        // Retention deletes old injections together with their sequence numbers. Starting at the current time never
        // reuses one.
        let sequence = latest.max(opening.clock.now().as_millis());
        let erased = erase::unfinished(&connection)?;
        erased.iter().for_each(|user| log.forget(user));
        let cursor = |user| Ok((user, erase::ErasureCursor::new(&connection, log.next()).map_err(failed)?));
        let erasures = erased.into_iter().map(cursor).collect::<Result<_, StoreError>>()?;
        let idle = idle::IdleCursor::default();
        let backend = SqliteWriter { connection, reading, file, log, time, erasures, idle, sequence, _lock: lock };
        let (writer, running) = writer::make(backend, opening, refusals)?;
        spawn_writer_thread(running)?;
        Ok(Self { writer, reader: Sqlite { pool } })
    }

    /// Applies missing migrations and returns their names. Starts nothing.
    pub async fn migrate(path: &Path, now: bellwire_core::Time) -> Result<Vec<&'static str>, StoreError> {
        let _lock = lock(path)?;
        create_private(path)?;
        let mut connection = options(path).create_if_missing(true).connect().await.map_err(failure)?;
        let applied = migrate::run(&mut connection, now).await?;
        connection.close().await.map_err(failure)?;
        Ok(applied)
    }
}

/// Runs the writer on its own thread, because it blocks while it waits for the disk.
fn spawn_writer_thread(running: impl Future<Output = ()> + Send + 'static) -> Result<(), StoreError> {
    let started = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let thread = std::thread::Builder::new().name("bellwire-writer".to_owned());
        thread.spawn(move || runtime.block_on(running)).map(drop)
    };
    started().map_err(|error| StoreError::new(ErrorKind::Broken, format!("the writer has no thread: {error}")))
}

/// Ends all leases at start. Only an earlier process can hold them, and the lock proves that it has ended.
async fn end_leases(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    for sql in [
        "UPDATE deliveries SET lease_until = 0 WHERE state IN ('claimed', 'started')",
        "UPDATE leases SET until = 0 WHERE until > 0",
        "UPDATE notify_requests SET lease_until = 0 WHERE state IN ('claimed', 'started')",
    ] {
        sqlx::query(sql).execute(&mut *connection).await.map_err(failure)?;
    }
    Ok(())
}

/// WAL lets readers read while the writer writes. FULL waits for the disk at every commit, because an answer promises
/// durability.
fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
        .pragma("temp_store", "memory")
        .pragma("secure_delete", "ON")
        .pragma("journal_size_limit", JOURNAL_BYTES.to_string())
}

/// The same options for the writer's connection, with a checkpoint every 16 MiB of write-ahead log, because a page that
/// changed many times is copied only once. The file is already in WAL mode. The page cache keeps SQLite's default of 2
/// MB: the writer mostly appends to tables, and after a rebalanced tree a commit scans the whole cache (with 64 MB, a
/// third of the injections per second were lost).
fn writing(path: &Path) -> rusqlite::Result<rusqlite::Connection> {
    // Without CREATE: a file that was deleted must not be replaced by an empty one.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    // Overwrite all deleted data with zeros, also after updates and retention, because an erasure cannot find text that
    // was deleted before it. `FAST` leaves the text in pages that become free, and an erasure would have to overwrite
    // every free page of the file. Publishing writes 2 to 3 % more bytes than with `FAST` or without it.
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 4_000, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", JOURNAL_BYTES, |_| Ok(()))?;
    Ok(connection)
}

/// Adds the path of the database to the error.
fn with_path(path: &Path, error: StoreError) -> StoreError {
    let name = path.display().to_string();
    let has_path = error.message.contains(name.trim_end_matches(".db"));
    let message = if has_path { error.message } else { format!("{name}: {}", error.message) };
    StoreError { message, ..error }
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let path = path.with_extension("lock");
    let broken = |error: std::io::Error| StoreError::new(ErrorKind::Broken, format!("{}: {error}", path.display()));
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(broken)?;
    file.try_lock().map_err(|_| {
        let message = format!("another Bellwire serves this data: {} is locked", path.display());
        StoreError::new(ErrorKind::Broken, message)
    })?;
    Ok(file)
}

/// Creates a missing database with mode 0600; SQLite gives the write-ahead log the same mode. An existing file keeps
/// its mode.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::new(ErrorKind::Broken, format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Classifies a database error by what the caller can do about it.
fn failure(error: sqlx::Error) -> StoreError {
    let code = match &error {
        sqlx::Error::Database(database) => database.code().and_then(|code| code.parse().ok()),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => return damaged(&error.to_string()),
        _ => None,
    };
    sorted(code, &error)
}

/// The same for rusqlite.
fn failed(error: rusqlite::Error) -> StoreError {
    use rusqlite::Error::{FromSqlConversionFailure, InvalidColumnType, Utf8Error};
    match error {
        FromSqlConversionFailure(..) | InvalidColumnType(..) | Utf8Error(..) => damaged(&error.to_string()),
        _ => sorted(error.sqlite_error().map(|error| error.extended_code), &error),
    }
}

/// A row count or limit as SQLite takes it.
fn row_count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

fn sorted(code: Option<i32>, error: &dyn std::error::Error) -> StoreError {
    // The low byte is the primary result code: 13 full, 5 busy, 6 locked, 10 input/output, 11 a corrupt page. A disk
    // quota or a limit on file sizes gives 778 (a failed write), or 4874 for the index of the write-ahead log; both
    // mean a full disk.
    let kind = match code.map(|code| (code, code & 0xff)) {
        Some((778 | 4874, _) | (_, 13)) => ErrorKind::NoSpace,
        Some((_, 5 | 6 | 10)) => ErrorKind::Retry,
        Some((_, 11)) => ErrorKind::Damaged,
        _ => ErrorKind::Broken,
    };
    let message = match kind {
        ErrorKind::NoSpace => "the disk takes no more of the database; nothing was accepted".to_owned(),
        _ => format!("the database failed: {error}"),
    };
    StoreError::new(kind, message)
}

/// The error for a value that this version cannot read.
fn damaged(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Damaged, format!("a row of the database is damaged: {what}"))
}
