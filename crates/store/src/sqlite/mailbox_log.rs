//! The log of recently changed mailboxes.
//!
//! Every commit saves the mailboxes it changed. Updating the row of each mailbox would write one page per mailbox,
//! although an event changes only a few bytes. So a commit appends one record to a log (table `mailbox_log`), with the
//! changes of all its mailboxes. Only a mailbox that has not changed for long is written to its row (table
//! `mailboxes`).
//!
//! The first change of a mailbox in the log is its full image; the record with it is the mailbox's *base*. The
//! following changes are differences. When they are as large as the image, the next change is a full image again. So
//! the log stays short, and a start reads about twice the size of the mailboxes.

mod change;
mod difference;
mod plan;
mod start;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;

use bellwire_core::Time;
use rusqlite::Row;

use crate::keys::KeyedMap;
use crate::rows::{ConversationKey, MailboxKey};
use change::Image;

/// The log and the latest state of its mailboxes, in memory.
#[derive(Default)]
pub(super) struct MailboxLog {
    /// The maximum size, in bytes.
    bytes_max: usize,
    /// The number of the oldest record; the following ones have consecutive numbers.
    first: i64,
    records: VecDeque<Record>,
    /// The size of all records, in bytes.
    bytes: usize,
    mailboxes: KeyedMap<MailboxKey, Logged>,
    /// The mailboxes of sub-agents, in order; there are few.
    sub_agents: BTreeSet<MailboxKey>,
    by_due: BTreeSet<(Time, MailboxKey)>,
    /// Rows up to this position are outdated: their mailboxes are in the log.
    rows_checked_until: DuePosition,
    /// The due rows that the last query found, and the position up to which it searched.
    due_rows: Option<(DuePosition, Vec<(DuePosition, MailboxKey)>)>,
    /// The buffer of the last record, reused because the system would page in a new one for each commit.
    buffer: Vec<u8>,
}

/// A position in the table of mailboxes ordered by due time: the time in milliseconds and the rowid. Many rows may have the
/// same time.
pub(super) type DuePosition = (i64, i64);

/// A record without its bytes.
#[derive(Default)]
struct Record {
    bytes: usize,
    /// The mailboxes with a full image in it, and how many of them still have it as their base.
    full: Vec<MailboxKey>,
    needed: usize,
}

/// A mailbox in the log.
struct Logged {
    image: Image,
    /// The record with its full image, and the record with its latest change.
    base: i64,
    latest: i64,
    /// The size of the differences after the full image.
    difference_bytes: usize,
}

struct Changed {
    key: MailboxKey,
    image: Image,
    full: bool,
    bytes: usize,
}

impl MailboxLog {
    /// Sets the maximum size.
    pub(super) fn keeping(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// The number of the next record.
    pub(super) fn next(&self) -> i64 {
        self.first + self.records.len() as i64
    }

    pub(super) fn has(&self, key: &MailboxKey) -> bool {
        self.mailboxes.contains_key(key)
    }

    /// The latest state of a mailbox and the ids of its pending notifications; none if it is not in the log.
    pub(super) fn newest(&self, key: &MailboxKey) -> Option<(&[u8], &[u8])> {
        self.mailboxes.get(key).map(|logged| logged.image.parts())
    }

    /// All mailboxes of the log, each with its latest state and the ids of its pending notifications.
    pub(super) fn newest_of_all(&self) -> impl Iterator<Item = (&MailboxKey, (&[u8], &[u8]))> {
        self.mailboxes.iter().map(|(key, logged)| (key, logged.image.parts()))
    }

    /// All mailboxes of the log, with their states.
    pub(super) fn all(&self) -> impl Iterator<Item = (&MailboxKey, &[u8])> {
        self.mailboxes.iter().map(|(key, logged)| (key, logged.image.parts().0))
    }

    /// The mailboxes of a conversation's sub-agents that are in the log and have pending notifications.
    pub(super) fn sub_agents_with_mail<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> impl Iterator<Item = &'a MailboxKey> {
        let from = MailboxKey::new(conversation, "");
        let here = self.sub_agents.range(from..).take_while(move |key| key.is_in(conversation));
        here.filter(|key| self.newest(key).is_some_and(|(_, pending)| !pending.is_empty()))
    }

    /// The due mailboxes of the log, the earliest first.
    pub(super) fn due(&self, now: Time) -> impl Iterator<Item = (Time, MailboxKey)> {
        self.by_due.iter().take_while(move |(due_at, _)| *due_at <= now).cloned()
    }

    /// When the next mailbox of the log is due after this time.
    pub(super) fn next_due(&self, after: Time) -> Time {
        self.by_due.iter().map(|(due_at, _)| *due_at).find(|due_at| *due_at > after).unwrap_or(Time::NEVER)
    }

    /// The position after which rows of the table may still be due.
    ///
    /// A due mailbox is handled, and a handled one is appended to the log. So all rows before the first one that was
    /// found and is not in the log are outdated, even if their `due_at` has passed, and need not be read again.
    pub(super) fn rows_checked_until(&mut self) -> DuePosition {
        if let Some((at, found)) = self.due_rows.take() {
            let left = found.iter().filter(|(_, key)| !self.mailboxes.contains_key(key));
            let left = left.map(|((due_at, rowid), _)| (*due_at, rowid - 1)).min();
            self.rows_checked_until = self.rows_checked_until.max(left.map_or(at, |left| left.min(at)));
        }
        self.rows_checked_until
    }

    /// Records the due rows that a query up to a position found.
    pub(super) fn set_due_rows(&mut self, checked_until: DuePosition, found: Vec<(DuePosition, MailboxKey)>) {
        self.due_rows = Some((checked_until, found));
    }

    /// The mailboxes of a conversation that are in the log, behind this agent: its own agent's, then the others in order.
    pub(super) fn in_conversation<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        after: &str,
    ) -> impl Iterator<Item = &'a MailboxKey> + use<'a> {
        let main = MailboxKey::new(conversation, "main");
        let main = self.mailboxes.get_key_value(&main).filter(|_| after < "main");
        let from = (Bound::Excluded(MailboxKey::new(conversation, after)), Bound::Unbounded);
        let sub_agents = self.sub_agents.range(from).take_while(move |key| key.is_in(conversation));
        main.map(|(key, _)| key).into_iter().chain(sub_agents)
    }

    /// Whether a mailbox of the log has no pending notification and no timer. False for a damaged one, whose state is
    /// unknown.
    pub(super) fn is_idle(&self, key: &MailboxKey) -> bool {
        self.mailboxes.get(key).is_some_and(|Logged { image, .. }| {
            let (state, pending) = image.parts();
            !state.is_empty() && pending.is_empty() && image.due_at() == Time::NEVER
        })
    }

    /// Whether all records below this number are removed.
    pub(super) fn begins_at_or_after(&self, number: i64) -> bool {
        self.first >= number
    }

    /// Whether a mailbox of this person is in the log.
    pub(super) fn has_mailbox_of(&self, owner: &str) -> bool {
        self.mailboxes.keys().any(|key| &**key.owner() == owner)
    }

    /// Drops the mailboxes of a person who is being erased from memory. Their records are still in the file.
    pub(super) fn forget(&mut self, owner: &str) {
        let theirs: Vec<MailboxKey> = self.mailboxes.keys().filter(|key| &**key.owner() == owner).cloned().collect();
        for key in theirs {
            self.remove(&key);
        }
    }

    /// Removes a mailbox from memory. Returns its due time.
    fn remove(&mut self, key: &MailboxKey) -> Option<Time> {
        let logged = self.mailboxes.remove(key)?;
        if let Some(record) = self.record_index(logged.base).and_then(|at| self.records.get_mut(at)) {
            record.needed -= 1;
        }
        let due_at = logged.image.due_at();
        self.by_due.remove(&(due_at, key.clone()));
        if key.is_sub_agents() {
            self.sub_agents.remove(key);
        }
        Some(due_at)
    }

    fn append(&mut self, bytes: usize, changes: Vec<Changed>) {
        let number = self.next();
        let mut record = Record { bytes, ..Record::default() };
        for Changed { key, image, full, bytes } in changes {
            let due_at = image.due_at();
            let (mut base, mut difference_bytes, mut was_due) = (number, 0, Time::NEVER);
            match self.mailboxes.get(&key) {
                Some(logged) => {
                    was_due = logged.image.due_at();
                    match full {
                        true => {
                            if let Some(from) = self.record_index(logged.base).and_then(|at| self.records.get_mut(at)) {
                                from.needed -= 1;
                            }
                        }
                        false => (base, difference_bytes) = (logged.base, logged.difference_bytes + bytes),
                    }
                }
                None if key.is_sub_agents() => drop(self.sub_agents.insert(key.clone())),
                None => {}
            }
            // A mailbox without a timer is not indexed.
            if was_due != due_at {
                self.by_due.remove(&(was_due, key.clone()));
                if due_at < Time::NEVER {
                    self.by_due.insert((due_at, key.clone()));
                }
            }
            if full {
                record.full.push(key.clone());
                record.needed += 1;
            }
            self.mailboxes.insert(key, Logged { image, base, latest: number, difference_bytes });
        }
        self.bytes += bytes;
        self.records.push_back(record);
    }

    /// The index of a record in `records`.
    fn record_index(&self, number: i64) -> Option<usize> {
        usize::try_from(number - self.first).ok()
    }
}

/// The key of a mailbox in three columns, starting with this one.
pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<MailboxKey> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    Ok(MailboxKey::from_columns(text(column)?, text(column + 1)?, text(column + 2)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use bellwire_core::NotificationId;
    use rusqlite::Connection;

    use super::*;
    use crate::rows::MailboxRow;

    pub(super) const KEPT: usize = crate::Sizes::SMALL.mailbox_log_bytes;

    /// A file with nothing in it but mailboxes.
    pub(super) fn file() -> Connection {
        let file = Connection::open_in_memory().unwrap();
        let tables = "CREATE TABLE mailboxes (owner TEXT, conversation_id TEXT, agent TEXT, state BLOB, pending BLOB, \
                      due_at BIGINT, PRIMARY KEY (owner, conversation_id, agent)); \
                      CREATE TABLE mailbox_log (sequence INTEGER NOT NULL PRIMARY KEY, changes BLOB NOT NULL)";
        file.execute_batch(tables).unwrap();
        file
    }

    pub(super) fn mailbox(id: &str) -> MailboxKey {
        MailboxKey::new(&ConversationKey::new("ada", id), "main")
    }

    pub(super) fn row_of(id: &str, state: Vec<u8>, due_at: i64) -> (MailboxKey, MailboxRow) {
        (mailbox(id), MailboxRow { state, pending: Vec::new(), due_at: Time::from_millis(due_at) })
    }

    pub(super) fn row(id: &str, due_at: i64) -> (MailboxKey, MailboxRow) {
        row_of(id, vec![7; 100], due_at)
    }

    pub(super) fn log() -> MailboxLog {
        MailboxLog::read(&file()).unwrap().keeping(KEPT)
    }

    pub(super) fn commit(log: &mut MailboxLog, file: &Connection, rows: &[(MailboxKey, MailboxRow)]) {
        let plan = log.plan(rows);
        log.write(file, &plan).unwrap();
        log.committed(plan);
    }

    /// Enough of others' changes that whatever came before leaves the log.
    fn push_out(log: &mut MailboxLog, file: &Connection, due_at: i64) {
        for _ in 0..2 {
            let many: Vec<_> = (0..2 * KEPT / 100).map(|number| row(&number.to_string(), due_at)).collect();
            commit(log, file, &many);
        }
    }

    /// What a start would find: each mailbox, wherever it is.
    pub(super) fn found(file: &Connection) -> Vec<(MailboxKey, Image)> {
        let log = MailboxLog::read(file).unwrap().keeping(KEPT);
        let mut found: Vec<_> = log.mailboxes.iter().map(|(key, logged)| (key.clone(), logged.image.clone())).collect();
        let mut query =
            file.prepare("SELECT owner, conversation_id, agent, state, pending, due_at FROM mailboxes").unwrap();
        let placed = query.query_map([], |row| {
            let pending: Vec<u8> = row.get(4)?;
            let pending = pending.as_chunks().0.iter().map(|id| NotificationId(uuid::Uuid::from_bytes(*id))).collect();
            let saved = MailboxRow { state: row.get(3)?, pending, due_at: Time::from_millis(row.get(5)?) };
            Ok((key(row, 0)?, Image::of(&saved)))
        });
        found.extend(placed.unwrap().map(Result::unwrap).filter(|(key, _)| !log.has(key)));
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found
    }

    #[test]
    fn one_that_leaves_the_log_before_it_is_handled_is_looked_for_in_its_place() {
        let (file, mut log) = (file(), log());
        commit(&mut log, &file, &[row("late", 100)]);
        // At 200 all are due and only some are handled; nothing was found in its place.
        assert!(log.rows_checked_until() < (100, 0));
        log.set_due_rows((200, i64::MAX), Vec::new());
        assert!(log.has(&mailbox("late")));
        push_out(&mut log, &file, 900);
        commit(&mut log, &file, &[row("one more", 900)]);
        assert!(!log.has(&mailbox("late")), "it has left the log");
        assert!(log.rows_checked_until() < (100, 0), "and is found where it went");
    }

    #[test]
    fn handled_mailboxes_are_not_queried_again() {
        let (file, mut log) = (file(), log());
        assert_eq!(log.rows_checked_until(), (0, 0));
        let due = |at: i64, rowid: i64, id: &str| ((at, rowid), mailbox(id));
        log.set_due_rows((200, 7), vec![due(90, 4, "a")]);
        assert_eq!(log.rows_checked_until(), (90, 3), "it was found and is not in the log: nobody has handled it");
        log.set_due_rows((200, 7), vec![due(90, 4, "a")]);
        commit(&mut log, &file, &[row("a", 900)]);
        assert_eq!(log.rows_checked_until(), (200, 7));
        log.set_due_rows((300, 9), vec![due(210, 1, "a"), due(210, 2, "b"), due(210, 3, "c")]);
        assert_eq!(log.rows_checked_until(), (210, 1), "the first was handled, and those of the same time will be");
    }
}
