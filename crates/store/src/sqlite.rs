//! One file, one writer, readers beside it.
//!
//! The writer keeps mailboxes in memory, so no second process may write the same file: a lock file beside it sees to
//! that. Readers have connections of their own and see committed rows only.

mod erase;
mod hub_time;
mod identity;
mod idle;
mod inspect;
mod migrate;
mod people_read;
mod people_write;
mod probe;
mod prune;
mod read;
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

/// The writing side, on a thread of its own.
pub(crate) struct SqliteWriter {
    /// Looks up what is not in memory, as the readers do.
    reading: SqliteConnection,
    /// Writes, and waits for the disk in this very thread: with another one in between, a commit of a few rows would
    /// take twice as long.
    connection: rusqlite::Connection,
    /// The file the connection writes, and that others will look for under its name.
    file: identity::FileIdentity,
    /// Which mailboxes are in the log.
    log: mailbox_log::MailboxLog,
    time: hub_time::HubTime,
    /// The erasures that are under way.
    erasures: erase::Erasures,
    /// Where the next look for conversations and mailboxes that nobody uses goes on.
    idle: idle::IdleCursor,
    /// The number of the latest injection: they are counted through, so that each conversation's are in order.
    sequence: i64,
    /// Held for as long as the store is open.
    _lock: File,
}

/// How many readers work at once.
const READERS: u32 = 4;
/// How long one waits for another to be done with the file.
const BUSY: Duration = Duration::from_secs(5);
/// A checkpoint truncates the log to this, so that one burst does not keep the disk for ever.
const JOURNAL_BYTES: i64 = 64 * 1024 * 1024;
/// More than there are statements that are kept: what is written often is prepared once.
const STATEMENTS: usize = 64;

impl SqliteStore {
    /// Opens the file, creating it and bringing its tables up to date.
    pub async fn open(path: &Path, opening: StoreOptions) -> Result<Self, StoreError> {
        Self::open_remembering(path, opening, Arc::new(LocalRefusalCache::default())).await
    }

    /// The same, with refusals of the hourly cap remembered elsewhere.
    pub async fn open_remembering(
        path: &Path,
        opening: StoreOptions,
        refusals: Arc<dyn RefusalCache>,
    ) -> Result<Self, StoreError> {
        Self::open_file(path, opening, refusals).await.map_err(|error| named(path, error))
    }

    async fn open_file(
        path: &Path,
        opening: StoreOptions,
        refusals: Arc<dyn RefusalCache>,
    ) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        private(path)?;
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
        // Old answers go, and with them their numbers: the time is never below any that was given.
        let sequence = latest.max(opening.clock.now().as_millis());
        let erased = erase::unfinished(&connection)?;
        erased.iter().for_each(|user| log.forget(user));
        let erasures = erased.into_iter().map(|user| (user, log.next())).collect();
        let idle = idle::IdleCursor::default();
        let backend = SqliteWriter { connection, reading, file, log, time, erasures, idle, sequence, _lock: lock };
        let (writer, running) = writer::make(backend, opening, refusals)?;
        on_a_thread(running)?;
        Ok(Self { writer, reader: Sqlite { pool } })
    }

    /// Brings the tables up to date and says what was done, without starting anything.
    pub async fn migrate(path: &Path, now: bellwire_core::Time) -> Result<Vec<&'static str>, StoreError> {
        let _lock = lock(path)?;
        private(path)?;
        let mut connection = options(path).create_if_missing(true).connect().await.map_err(failure)?;
        let applied = migrate::run(&mut connection, now).await?;
        connection.close().await.map_err(failure)?;
        Ok(applied)
    }
}

/// Runs the writer on a thread of its own, where waiting for the disk holds up nobody else.
fn on_a_thread(running: impl Future<Output = ()> + Send + 'static) -> Result<(), StoreError> {
    let started = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let thread = std::thread::Builder::new().name("bellwire-writer".to_owned());
        thread.spawn(move || runtime.block_on(running)).map(drop)
    };
    started().map_err(|error| StoreError::new(ErrorKind::Broken, format!("the writer has no thread: {error}")))
}

/// Whoever had claimed a delivery, or was trying one, was the process before this one, and it is gone: the lock says so.
/// Nobody need wait until its leases run out to hear what became of them.
async fn end_leases(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let ended = sqlx::query("UPDATE deliveries SET lease_until = 0 WHERE state IN ('claimed', 'started')");
    ended.execute(connection).await.map(drop).map_err(failure)
}

/// WAL lets readers read while the writer writes; FULL waits for the disk at every commit, because an answer promises
/// it.
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

/// The same for the one that writes, with a checkpoint every 16 MiB of log: a page is changed many times and need be copied
/// only once. The file is in WAL mode by then, and stays so. Its memory for pages is SQLite's own 2 MB: what it writes are
/// the ends of tables, and a commit after which a tree was balanced looks at every page there is (with 64 MB, a third of
/// the injections a second were lost to it).
fn writing(path: &Path) -> rusqlite::Result<rusqlite::Connection> {
    // A file that is not there any more must not be made anew, empty.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    // What is deleted is overwritten with zeros, whoever deletes it and why: an update or a prune leaves no text of a person
    // behind that a later erasure could not find. It costs 2 % more bytes written.
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 4_000, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", JOURNAL_BYTES, |_| Ok(()))?;
    Ok(connection)
}

/// The error with the file it is about, for whoever has to look after it.
fn named(path: &Path, error: StoreError) -> StoreError {
    let name = path.display().to_string();
    let named = error.message.contains(name.trim_end_matches(".db"));
    let message = if named { error.message } else { format!("{name}: {}", error.message) };
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

/// A database that is made is its owner's alone; the log beside it takes the same mode. One that is there keeps its own.
fn private(path: &Path) -> Result<(), StoreError> {
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

/// Sorts a database error by what can be done about it.
fn failure(error: sqlx::Error) -> StoreError {
    let code = match &error {
        sqlx::Error::Database(database) => database.code().and_then(|code| code.parse().ok()),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => return damaged(&error.to_string()),
        _ => None,
    };
    sorted(code, &error)
}

/// The same for the connection that writes.
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
    // The low byte is the primary result code: 13 full, 5 busy, 6 locked, 10 input/output, 11 a corrupt page. Beyond a quota or a limit
    // on file sizes the disk is as full as any, and SQLite calls it 778, a write that failed; 4874 is the same for the
    // index of its log.
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

/// A value in a row that this version does not understand.
fn damaged(what: &str) -> StoreError {
    StoreError::new(ErrorKind::Damaged, format!("a row of the database is damaged: {what}"))
}
