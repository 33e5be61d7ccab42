use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use sqlx::{ConnectOptions as _, Connection as _};

use super::mailbox_log::{self, MailboxLog};
use super::read::column;
use super::unreadable;
use super::{BUSY, SqliteStore, failed, failure, lock, migrate, options};
use crate::error::StoreError;
use crate::rows::MailboxKey;

/// The result of checking a database that is not in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The migrations that the next start will apply.
    pub pending: Vec<&'static str>,
    /// Damage that SQLite reports, and rows that timers, reminders and deliveries would skip; empty if the database is
    /// intact.
    pub damage: Vec<String>,
}

/// A mailbox in the form that [`bellwire_core::Mailbox::load`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedMailbox {
    /// The owner.
    pub owner: String,
    /// The conversation; empty for a person's mailbox.
    pub conversation_id: String,
    /// The agent; for a person's mailbox, the origin.
    pub agent: String,
    /// The saved state.
    pub state: Vec<u8>,
}

impl SavedMailbox {
    fn new(key: &MailboxKey, state: &[u8]) -> Self {
        let (owner, conversation_id, agent) = key.columns();
        Self {
            owner: owner.to_owned(),
            conversation_id: conversation_id.to_owned(),
            agent: agent.to_owned(),
            state: state.to_owned(),
        }
    }
}

impl SqliteStore {
    /// Checks a database without changing it. Refused while a hub uses it.
    pub async fn inspect(path: &Path) -> Result<Inspection, StoreError> {
        let _lock = lock(path)?;
        let mut connection = options(path).read_only(true).connect().await.map_err(failure)?;
        let pending = migrate::pending(&mut connection).await?;
        let rows = sqlx::query("PRAGMA quick_check(20)").fetch_all(&mut connection).await.map_err(failure)?;
        let lines: Result<Vec<String>, StoreError> = rows.iter().map(|row| column(row, 0)).collect();
        let mut damage = lines?;
        damage.retain(|line| line != "ok");
        // Before missing migrations are applied, the tables have another schema.
        if pending.is_empty() {
            damage.append(&mut unreadable::rows(&mut connection).await?);
            match read_only(path).and_then(|connection| MailboxLog::read(&connection)) {
                Ok(log) => damage.append(&mut unreadable::mailboxes(&mut connection, &log).await?),
                Err(error) => damage.push(error.message),
            }
        }
        connection.close().await.map_err(failure)?;
        Ok(Inspection { pending, damage })
    }

    /// The latest saved state of every mailbox of a database that is not in use. Recent states exist only as
    /// differences in the log, so that no SQL query can return them.
    pub async fn mailboxes(path: &Path) -> Result<Vec<SavedMailbox>, StoreError> {
        let _lock = lock(path)?;
        let connection = read_only(path).map_err(|error| super::with_path(path, error))?;
        let log = MailboxLog::read(&connection)?;
        let mut mailboxes: Vec<_> = log.all().map(|(key, state)| SavedMailbox::new(key, state)).collect();
        let mut query =
            connection.prepare("SELECT owner, conversation_id, agent, state FROM mailboxes").map_err(failed)?;
        let mut rows = query.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let key = mailbox_log::key(row, 0).map_err(failed)?;
            if !log.has(&key) {
                mailboxes.push(SavedMailbox::new(&key, &row.get::<_, Vec<u8>>(3).map_err(failed)?));
            }
        }
        Ok(mailboxes)
    }
}

/// A read-only connection, which also works if the file is not writable.
fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    Ok(connection)
}
