//! Stores the hub's last time, and adjusts rows with times in the future after the wall clock was set back.

use bellwire_core::Time;
use rusqlite::{Connection, params};

use super::mailbox_log::MailboxLog;
use super::transaction;

/// A commit writes `last_now` when the stored value is this much older.
const NOTED_EVERY_MS: u64 = 10_000;

/// The stored value of `last_now`.
#[derive(Copy, Clone)]
pub(super) struct HubTime(Option<Time>);

impl HubTime {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut query = connection.prepare("SELECT last_now FROM hub_time WHERE one = 1")?;
        let last = query.query([])?.next()?.map(|row| row.get(0)).transpose()?;
        Ok(Self(last.map(Time::from_millis)))
    }

    pub(super) fn last_now(self) -> Option<Time> {
        self.0
    }

    /// Writes the time of a commit, if the stored one is too old.
    pub(super) fn note(self, connection: &Connection, now: Time) -> rusqlite::Result<Self> {
        if self.0.is_some_and(|noted| now < noted.plus(NOTED_EVERY_MS)) {
            return Ok(self);
        }
        write(connection, now)
    }
}

fn write(connection: &Connection, now: Time) -> rusqlite::Result<HubTime> {
    let sql = "INSERT INTO hub_time (one, last_now) VALUES (1, ?1) \
               ON CONFLICT (one) DO UPDATE SET last_now = excluded.last_now";
    connection.prepare_cached(sql)?.execute([now.as_millis()])?;
    Ok(HubTime(Some(now)))
}

/// The updates of times that are ahead of `now`. Limits and quiet hours are checked again when a row is due, so rows
/// that wait become due now; a mailbox adjusts its own times when it is loaded. A reminder keeps its distance from the
/// time it was created; a notification that only waits for the hourly limit (`asked = 0`) is due now.
const FROM_THE_FUTURE: [&str; 11] = [
    "UPDATE mailboxes SET due_at = ?1 WHERE due_at > ?1 AND due_at < 9223372036854775807",
    "UPDATE reminders SET at = MIN(at, ?1), due_at = MIN(due_at, ?1), created_at = MIN(created_at, ?1) \
     WHERE ended_at IS NULL AND asked = 0 AND MAX(at, due_at, created_at) > ?1",
    "UPDATE reminders SET due_at = MAX(at, ?1) WHERE ended_at IS NULL AND due_at > at AND due_at > ?1",
    "UPDATE reminders SET at = ?1 + (at - created_at), due_at = ?1 + (due_at - created_at), created_at = ?1 \
     WHERE ended_at IS NULL AND asked <> 0 AND created_at > ?1",
    "UPDATE deliveries SET not_before = ?1 WHERE state = 'waiting' AND not_before > ?1",
    "UPDATE deliveries SET created_at = ?1 WHERE created_at > ?1",
    "UPDATE inbox SET created_at = ?1 WHERE created_at > ?1",
    "UPDATE conversations SET seen_at = MIN(seen_at, ?1), workers = '[]' WHERE seen_at > ?1 OR workers <> '[]'",
    "UPDATE idempotency_keys SET at = ?1 WHERE at > ?1",
    "UPDATE idempotency_subjects SET at = ?1 WHERE at > ?1",
    "UPDATE confirmations SET expires_at = ?1 + 86400000 WHERE expires_at > ?1 + 86400000",
];

/// Adjusts all rows with times in the future, in one transaction. The mailbox log is emptied first, because its
/// mailboxes have due times too.
pub(super) fn set_back(connection: &Connection, log: &mut MailboxLog, now: Time) -> rusqlite::Result<HubTime> {
    let plan = log.plan_until(log.next(), usize::MAX, None);
    let time = transaction::commit(connection, |connection| {
        log.write(connection, &plan)?;
        for statement in FROM_THE_FUTURE.into_iter().chain(super::chats::FROM_THE_FUTURE) {
            connection.execute(statement, params![now.as_millis()])?;
        }
        write(connection, now)
    })?;
    log.committed(plan);
    Ok(time)
}
