use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use sqlx::{ConnectOptions as _, Connection as _};

use super::mailbox_log::{self, MailboxLog};
use super::read::column;
use super::unreadable;
use super::{BUSY, SqliteStore, failed, failure, lock, migrate, options};
use crate::error::StoreError;
use crate::rows::MailboxKey;

/// What an operator wants to know of a database that nobody serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Steps that the next start will apply.
    pub pending: Vec<&'static str>,
    /// What SQLite finds damaged, and the rows timers, reminders and deliveries would leave out; nothing in a whole
    /// database.
    pub damage: Vec<String>,
}

/// A mailbox, and the bytes that [`bellwire_core::Mailbox::load`] makes it of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedMailbox {
    /// Whose it is.
    pub owner: String,
    /// The conversation; empty where it is the person's own.
    pub conversation_id: String,
    /// The agent of the conversation; where it is the person's own, the origin it is for.
    pub agent: String,
    /// Its state.
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
    /// Looks a database over without changing it. Refused while a hub serves it.
    pub async fn inspect(path: &Path) -> Result<Inspection, StoreError> {
        let _lock = lock(path)?;
        let mut connection = options(path).read_only(true).connect().await.map_err(failure)?;
        let pending = migrate::pending(&mut connection).await?;
        let rows = sqlx::query("PRAGMA quick_check(20)").fetch_all(&mut connection).await.map_err(failure)?;
        let lines: Result<Vec<String>, StoreError> = rows.iter().map(|row| column(row, 0)).collect();
        let mut damage = lines?;
        damage.retain(|line| line != "ok");
        // Where steps are missing, the tables are other ones.
        if pending.is_empty() {
            damage.append(&mut unreadable::rows(&mut connection).await?);
            match looking(path).and_then(|connection| MailboxLog::read(&connection)) {
                Ok(log) => damage.append(&mut unreadable::mailboxes(&mut connection, &log).await?),
                Err(error) => damage.push(error.message),
            }
        }
        connection.close().await.map_err(failure)?;
        Ok(Inspection { pending, damage })
    }

    /// Every mailbox of a database that nobody serves, as it was saved last. What changed lately is in the file as
    /// differences only, so that no query gives it.
    pub async fn mailboxes(path: &Path) -> Result<Vec<SavedMailbox>, StoreError> {
        let _lock = lock(path)?;
        let connection = looking(path).map_err(|error| super::named(path, error))?;
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

/// A connection that changes nothing, also where the file may not be written.
fn looking(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    Ok(connection)
}
