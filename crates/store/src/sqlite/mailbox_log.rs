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

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::Bound;

use bellwire_core::Time;
use rusqlite::{Connection, Row, params};

use crate::error::StoreError;
use crate::keys::KeyedMap;
use crate::rows::{ConversationKey, MailboxKey, MailboxRow};
use change::{Image, MailboxChange};

/// Old records are removed in portions of about this fraction of the maximum log size.
const REMOVED_PART: usize = 64;
const REMOVED_MIN: usize = 1024;
/// About how many mailboxes one commit may write to their rows.
const MOVED_MAX: usize = 4_096;
/// Records have consecutive numbers. A gap larger than this is damage, not removed records.
const GAP_MAX: i64 = 1_000_000;

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

/// The largest buffer that is kept from one commit to the next, in bytes.
const BUFFER_MAX: usize = 4 * 1024 * 1024;

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

/// What a commit writes to the log, and how the log changes after it succeeded.
pub(super) struct LogPlan {
    number: i64,
    /// The new record; empty if no mailbox changed.
    record: Vec<u8>,
    changes: Vec<Changed>,
    /// The mailboxes that the record marks as deleted.
    deleted: Vec<MailboxKey>,
    /// Records up to this number are removed.
    remove_until: Option<i64>,
    /// The mailboxes whose base record is removed, so that they are written to their rows.
    moving_to_rows: Vec<MailboxKey>,
}

impl LogPlan {
    /// About how many rows it writes.
    pub(super) fn work(&self) -> usize {
        self.changes.len() + self.moving_to_rows.len()
    }
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

    /// Reads the log of a database.
    pub(super) fn read(connection: &Connection) -> Result<Self, StoreError> {
        let bytes_max = crate::Sizes::default().mailbox_log_bytes;
        let mut log = Self { first: 1, bytes_max, ..Self::default() };
        // Mailboxes whose base record was removed: their row has the latest state, and their remaining changes are
        // skipped.
        let mut moved: KeyedMap<MailboxKey, i64> = KeyedMap::default();
        let mut query =
            connection.prepare("SELECT sequence, changes FROM mailbox_log ORDER BY sequence").map_err(super::failed)?;
        let mut rows = query.query([]).map_err(super::failed)?;
        while let Some(row) = rows.next().map_err(super::failed)? {
            let number: i64 = row.get(0).map_err(super::failed)?;
            let record = row.get_ref(1).map_err(super::failed)?.as_blob().ok();
            if log.records.is_empty() {
                log.first = number;
            }
            let is_next = (1..i64::MAX / 2).contains(&number) && number - log.next() < GAP_MAX;
            let changes = record.and_then(MailboxChange::read).filter(|_| is_next);
            let (Some(record), Some(changes)) = (record, changes) else { return Err(unreadable(number)) };
            while log.next() < number {
                log.records.push_back(Record::default());
            }
            let mut changed = Vec::with_capacity(changes.len());
            for (change, bytes) in changes {
                let key = change.key();
                if change.is_deleted() {
                    log.remove(&key);
                    moved.remove(&key);
                    continue;
                }
                let known = log.mailboxes.get(&key).filter(|known| known.latest == change.before);
                let image = match known {
                    _ if change.before == 0 => change.full(),
                    Some(known) => change.apply(&known.image),
                    None if change.before < log.first || moved.get(&key) == Some(&change.before) => {
                        moved.insert(key, number);
                        continue;
                    }
                    None => Image::damaged(),
                };
                let full = known.is_none();
                changed.push(Changed { key, image, full, bytes });
            }
            log.append(record.len(), changed);
        }
        Ok(log)
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

    /// Plans the commit of these rows.
    pub(super) fn plan(&mut self, rows: &[(MailboxKey, MailboxRow)]) -> LogPlan {
        let last = self.remove_until();
        let mut record = std::mem::take(&mut self.buffer);
        let mut changes = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            let image = Image::of(row);
            // Write a difference, unless the base is removed or the differences are as large as the image.
            let goes_on =
                |logged: &&Logged| last.is_none_or(|last| logged.base > last) && logged.difference_bytes < image.len();
            let before = self.mailboxes.get(key).filter(goes_on).map(|logged| (logged.latest, &logged.image));
            let bytes = MailboxChange::write(key, &image, before, &mut record);
            changes.push(Changed { key: key.clone(), image, full: before.is_none(), bytes });
        }
        let mut moving_to_rows = last.map_or_else(Vec::new, |last| self.based_on_records_until(last));
        if !moving_to_rows.is_empty() {
            let here: HashSet<&MailboxKey> = rows.iter().map(|(key, _)| key).collect();
            moving_to_rows.retain(|key| !here.contains(key));
        }
        LogPlan { number: self.next(), record, changes, deleted: Vec::new(), remove_until: last, moving_to_rows }
    }

    /// Plans to remove the records below this number, at most about `limit` mailboxes and records. The mailboxes of an
    /// erased person are not written to their rows. A mailbox may be written to its row before its record can be
    /// removed; until then both have the same state.
    pub(super) fn plan_until(&self, until: i64, limit: usize, erased: Option<&str>) -> LogPlan {
        let (mut last, mut moving_to_rows) = (None, Vec::new());
        for ((number, record), left) in (self.first..until).zip(&self.records).zip((1..=limit).rev()) {
            let is_here = |key: &&MailboxKey| self.mailboxes.get(key).is_some_and(|logged| logged.base == number);
            let mut here = record.full.iter().filter(is_here).filter(|key| erased != Some(&**key.owner()));
            moving_to_rows.extend(here.by_ref().take(left.saturating_sub(moving_to_rows.len())).cloned());
            if here.next().is_some() {
                break;
            }
            last = Some(number);
        }
        LogPlan {
            number: self.next(),
            record: Vec::new(),
            changes: Vec::new(),
            deleted: Vec::new(),
            remove_until: last,
            moving_to_rows,
        }
    }

    /// Plans a record that marks these mailboxes as deleted.
    pub(super) fn plan_deletion(&self, deleted: Vec<MailboxKey>) -> LogPlan {
        let mut record = Vec::new();
        deleted.iter().for_each(|key| MailboxChange::write_deleted(key, &mut record));
        LogPlan {
            number: self.next(),
            record,
            changes: Vec::new(),
            deleted,
            remove_until: None,
            moving_to_rows: Vec::new(),
        }
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

    /// The last record to remove with the next commit: records that are no mailbox's base, once they are large enough,
    /// and the oldest records if the log is too long.
    fn remove_until(&self) -> Option<i64> {
        let at_once = removed_at_once(self.bytes_max);
        let too_many = self.bytes.saturating_sub(self.bytes_max);
        let (mut last, mut bytes, mut moved) = (self.first - 1, 0, 0);
        for record in &self.records {
            let is_needed = record.needed > 0 && (too_many < at_once || moved >= MOVED_MAX);
            if is_needed || bytes >= too_many.max(at_once) {
                break;
            }
            (last, bytes, moved) = (last + 1, bytes + record.bytes, moved + record.needed);
        }
        (bytes >= at_once || moved > 0).then_some(last)
    }

    /// The mailboxes whose base is one of the records up to this one.
    fn based_on_records_until(&self, last: i64) -> Vec<MailboxKey> {
        let removed = (self.first..=last).zip(&self.records);
        let based = removed.flat_map(|(number, record)| {
            let here = move |key: &&MailboxKey| self.mailboxes.get(key).is_some_and(|logged| logged.base == number);
            record.full.iter().filter(here).cloned()
        });
        based.collect()
    }

    /// Applies a plan after its commit has succeeded.
    pub(super) fn committed(&mut self, plan: LogPlan) {
        let last = plan.remove_until.unwrap_or(0);
        for key in &plan.deleted {
            self.remove(key);
        }
        if !plan.record.is_empty() {
            self.append(plan.record.len(), plan.changes);
        }
        plan.moving_to_rows.iter().for_each(|key| self.moved_to_row(key));
        while self.first <= last {
            let Some(record) = self.records.pop_front() else { break };
            self.bytes -= record.bytes;
            self.first += 1;
        }
        if plan.record.capacity() <= BUFFER_MAX {
            self.buffer = plan.record;
            self.buffer.clear();
        }
    }

    /// Removes a mailbox that was written to its row.
    fn moved_to_row(&mut self, key: &MailboxKey) {
        let Some(due_at) = self.remove(key) else { return };
        // If it is due, it was not handled yet, so the next query must find its row.
        let before = (due_at.as_millis().saturating_sub(1), i64::MAX);
        self.rows_checked_until = self.rows_checked_until.min(before);
        self.due_rows.iter_mut().for_each(|(at, _)| *at = (*at).min(before));
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

    /// Writes a plan.
    pub(super) fn write(&self, connection: &Connection, plan: &LogPlan) -> rusqlite::Result<()> {
        if !plan.record.is_empty() {
            let mut insert = connection.prepare_cached("INSERT INTO mailbox_log (sequence, changes) VALUES (?, ?)")?;
            insert.execute(params![plan.number, plan.record])?;
        }
        for key in &plan.moving_to_rows {
            if let Some(logged) = self.mailboxes.get(key) {
                write_row(connection, key, &logged.image)?;
            }
        }
        let Some(last) = plan.remove_until else { return Ok(()) };
        connection.prepare_cached("DELETE FROM mailbox_log WHERE sequence <= ?1")?.execute([last]).map(drop)
    }
}

/// The error for an unreadable record, with the statement that empties it. Afterwards, mailboxes that depend on it are
/// reported as damaged. The record must not be deleted: if it were the first one, older rows would count as the latest
/// state.
fn unreadable(number: i64) -> StoreError {
    super::damaged(&format!(
        "mailbox_log {number}; restore a backup, or go on without what it says: \
         UPDATE mailbox_log SET changes = x'' WHERE sequence = {number}"
    ))
}

fn write_row(connection: &Connection, key: &MailboxKey, image: &Image) -> rusqlite::Result<()> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO mailboxes (owner, conversation_id, agent, state, pending, due_at) VALUES (?, ?, ?, ?, ?, ?) \
         ON CONFLICT (owner, conversation_id, agent) DO UPDATE SET state = excluded.state, \
         pending = excluded.pending, due_at = excluded.due_at",
    )?;
    let (state, pending) = image.parts();
    let due_at = image.due_at().as_millis();
    let (owner, conversation, agent) = key.columns();
    upsert.execute(params![owner, conversation, agent, state, pending, due_at]).map(drop)
}

/// The key of a mailbox in three columns, starting with this one.
pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<MailboxKey> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    Ok(MailboxKey::from_columns(text(column)?, text(column + 1)?, text(column + 2)?))
}

/// About how many bytes of old records one commit removes from a log of this size.
fn removed_at_once(bytes_max: usize) -> usize {
    (bytes_max / REMOVED_PART).max(REMOVED_MIN)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use bellwire_core::{Ids, NotificationId};

    use super::*;

    const KEPT: usize = crate::Sizes::SMALL.mailbox_log_bytes;
    const REMOVED: usize = REMOVED_MIN;

    /// A file with nothing in it but mailboxes.
    fn file() -> Connection {
        let file = Connection::open_in_memory().unwrap();
        let tables = "CREATE TABLE mailboxes (owner TEXT, conversation_id TEXT, agent TEXT, state BLOB, pending BLOB, \
                      due_at BIGINT, PRIMARY KEY (owner, conversation_id, agent)); \
                      CREATE TABLE mailbox_log (sequence INTEGER NOT NULL PRIMARY KEY, changes BLOB NOT NULL)";
        file.execute_batch(tables).unwrap();
        file
    }

    fn mailbox(id: &str) -> MailboxKey {
        MailboxKey::new(&ConversationKey::new("ada", id), "main")
    }

    fn row_of(id: &str, state: Vec<u8>, due_at: i64) -> (MailboxKey, MailboxRow) {
        (mailbox(id), MailboxRow { state, pending: Vec::new(), due_at: Time::from_millis(due_at) })
    }

    fn row(id: &str, due_at: i64) -> (MailboxKey, MailboxRow) {
        row_of(id, vec![7; 100], due_at)
    }

    fn log() -> MailboxLog {
        MailboxLog::read(&file()).unwrap().keeping(KEPT)
    }

    fn commit(log: &mut MailboxLog, file: &Connection, rows: &[(MailboxKey, MailboxRow)]) {
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
    fn found(file: &Connection) -> Vec<(MailboxKey, Image)> {
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
    fn a_start_finds_the_latest_state_of_every_mailbox() {
        let (file, mut log) = (file(), log());
        let (mut newest, mut ids) = (std::collections::BTreeMap::new(), Ids::seeded(1));
        for round in 0..400_usize {
            // Some change in every commit, some now and then, one only once; the first keep growing and shrinking.
            let changing = [round % 3, 10 + round % 17, 100 + (round == 5) as usize, 200 + round / 40];
            let rows: Vec<_> = changing
                .into_iter()
                .map(|id| {
                    let state = (0..40 + (round * id) % 300).flat_map(|at| ((at * at + id) as u16).to_le_bytes());
                    let mut row = row_of(&id.to_string(), state.chain(round.to_le_bytes()).collect(), round as i64);
                    row.1.pending = (0..round % 5).map(|_| ids.notification(Time::ZERO)).collect();
                    row
                })
                .collect();
            commit(&mut log, &file, &rows);
            newest.extend(rows.into_iter().map(|(key, row)| (key, Image::of(&row))));
            if round % 7 == 0 {
                assert_eq!(found(&file), newest.clone().into_iter().collect::<Vec<_>>(), "after {round}");
            }
            if round % 50 == 49 {
                log = MailboxLog::read(&file).unwrap().keeping(KEPT);
            }
        }
        let placed: i64 = file.query_row("SELECT COUNT(*) FROM mailboxes", [], |row| row.get(0)).unwrap();
        assert!(placed > 5, "some have come to rest");
    }

    #[test]
    fn one_mailbox_that_changes_all_the_time_keeps_the_log_short() {
        let (file, mut log) = (file(), log());
        for round in 0..1_000 {
            let state: Vec<u8> = (0..100_u32).map(|at| (at * at) as u8).chain(i32::to_le_bytes(round)).collect();
            commit(&mut log, &file, &[row_of("chat", state, 1)]);
            assert!(log.bytes < 2 * REMOVED, "{} bytes", log.bytes);
        }
        let kept: i64 = file.query_row("SELECT SUM(LENGTH(changes)) FROM mailbox_log", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, log.bytes as i64);
    }

    #[test]
    fn a_mailbox_whose_change_is_missing_is_damaged_and_the_others_are_not() {
        let (file, mut log) = (file(), log());
        for number in [1, 2, 3] {
            let mut state: Vec<u8> = (0..90).collect();
            state[0] = number;
            commit(&mut log, &file, &[row_of("chat", state, 5), row_of(&number.to_string(), vec![7; 90], 5)]);
        }
        file.execute("DELETE FROM mailbox_log WHERE sequence = 2", []).unwrap();
        let log = MailboxLog::read(&file).unwrap().keeping(KEPT);
        assert_eq!(log.newest(&mailbox("chat")), Some((&b""[..], &b""[..])));
        assert_eq!(log.newest(&mailbox("3")), Some((&[7; 90][..], &b""[..])));
        assert_eq!(log.due(Time::from_millis(9)).count(), 2, "nobody is kept busy with what is damaged");
    }

    #[test]
    fn a_record_that_cannot_be_read_is_refused_and_without_it_nothing_old_passes_for_new() {
        let (file, mut log) = (file(), log());
        for number in 1..4 {
            commit(&mut log, &file, &[row_of("chat", [&[number; 1][..], &[7; 90]].concat(), 5)]);
        }
        file.execute("UPDATE mailbox_log SET changes = x'05' WHERE sequence = 1", []).unwrap();
        let refused = MailboxLog::read(&file).err().unwrap().message;
        let advice = refused.split_once("go on without what it says: ").unwrap().1;
        file.execute(advice, []).unwrap();
        assert_eq!(MailboxLog::read(&file).unwrap().newest(&mailbox("chat")), Some((&b""[..], &b""[..])));
        for number in [1 << 40, i64::MAX, 0, i64::MIN] {
            file.execute("UPDATE mailbox_log SET sequence = ?1 WHERE sequence NOT IN (1, 2)", [number]).unwrap();
            assert!(MailboxLog::read(&file).is_err(), "a number that was damaged takes neither memory nor the hub");
        }
    }

    #[test]
    fn unneeded_records_are_removed_in_small_steps() {
        let (file, mut log) = (file(), log());
        commit(&mut log, &file, &[row("idle", 1)]);
        let before = log.first;
        // The idle mailbox keeps all records in the log; they are removed after it was written to its row.
        for round in 0..KEPT as u32 {
            let state = (0..100_u32).map(|at| (at * at) as u8).chain(round.to_le_bytes()).collect();
            let (first, bytes) = (log.first, log.bytes);
            commit(&mut log, &file, &[row_of("busy", state, 1)]);
            assert!(bytes < log.bytes + 3 * REMOVED, "from {bytes} bytes to {} at once", log.bytes);
            if first == before && log.first > before {
                return;
            }
        }
        panic!("the log became {} bytes long", log.bytes);
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

    #[test]
    fn a_large_commit_is_trimmed_by_the_next_one() {
        let (file, mut log) = (file(), log());
        let many: Vec<_> = (0..1_000).map(|number| row(&number.to_string(), 50)).collect();
        commit(&mut log, &file, &many);
        commit(&mut log, &file, &[row("one", 50)]);
        assert!(log.bytes <= KEPT + REMOVED, "{} bytes", log.bytes);
    }

    #[test]
    fn records_leave_in_bounded_steps_and_take_nothing_of_an_erased_person_to_its_place() {
        let (file, mut log) = (file(), log());
        let bobs = |id: &str, state: u8, due_at: i64| {
            let key = MailboxKey::new(&ConversationKey::new("bob", id), "main");
            (key, MailboxRow { state: vec![state; 20], pending: Vec::new(), due_at: Time::from_millis(due_at) })
        };
        let first: Vec<_> = (0..7).map(|number| bobs(&number.to_string(), number, 5)).chain([row("hers", 5)]).collect();
        commit(&mut log, &file, &first);
        commit(&mut log, &file, &[bobs("0", 9, 6), row("hers too", 5)]);
        let until = log.next();
        log.forget("ada");
        commit(&mut log, &file, &[bobs("later", 1, 5)]);
        let mut steps = 0;
        while !log.begins_at_or_after(until) {
            let plan = log.plan_until(until, 3, Some("ada"));
            assert!((1..=3).contains(&plan.moving_to_rows.len()), "{} mailboxes at once", plan.moving_to_rows.len());
            log.write(&file, &plan).unwrap();
            log.committed(plan);
            steps += 1;
        }
        assert_eq!(steps, 3);
        let left: i64 = file.query_row("SELECT COUNT(*) FROM mailbox_log", [], |row| row.get(0)).unwrap();
        assert_eq!((left, log.bytes > 0), (1, true), "what came later is still there");
        let mut expected: Vec<_> = first[1..7].iter().map(|(key, row)| (key.clone(), Image::of(row))).collect();
        expected.extend([bobs("0", 9, 6), bobs("later", 1, 5)].map(|(key, row)| (key, Image::of(&row))));
        expected.sort_by(|(one, _), (other, _)| one.cmp(other));
        assert_eq!(found(&file), expected);
        let more: Vec<_> = (0..50).map(|number| bobs(&number.to_string(), number, 5)).collect();
        (0..5).for_each(|_| commit(&mut log, &file, &more));
    }
}
