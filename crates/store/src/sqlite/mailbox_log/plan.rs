//! What a commit writes to the log, and how the log changes after the commit has succeeded.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::change::{Image, MailboxChange};
use super::{Changed, Logged, MailboxLog};
use crate::rows::{MailboxKey, MailboxRow};

/// Old records are removed in portions of about this fraction of the maximum log size.
const REMOVED_PART: usize = 64;
const REMOVED_MIN: usize = 1024;
/// About how many mailboxes one commit may write to their rows.
const MOVED_MAX: usize = 4_096;
/// The largest buffer that is kept from one commit to the next, in bytes.
const BUFFER_MAX: usize = 4 * 1024 * 1024;

/// What a commit writes to the log, and how the log changes after it succeeded.
pub(in crate::sqlite) struct LogPlan {
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
    pub(in crate::sqlite) fn work(&self) -> usize {
        self.changes.len() + self.moving_to_rows.len()
    }
}

impl MailboxLog {
    /// Plans the commit of these rows.
    pub(in crate::sqlite) fn plan(&mut self, rows: &[(MailboxKey, MailboxRow)]) -> LogPlan {
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
    pub(in crate::sqlite) fn plan_until(&self, until: i64, limit: usize, erased: Option<&str>) -> LogPlan {
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
    pub(in crate::sqlite) fn plan_deletion(&self, deleted: Vec<MailboxKey>) -> LogPlan {
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

    /// Writes a plan.
    pub(in crate::sqlite) fn write(&self, connection: &Connection, plan: &LogPlan) -> rusqlite::Result<()> {
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

    /// Applies a plan after its commit has succeeded.
    pub(in crate::sqlite) fn committed(&mut self, plan: LogPlan) {
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

/// About how many bytes of old records one commit removes from a log of this size.
fn removed_at_once(bytes_max: usize) -> usize {
    (bytes_max / REMOVED_PART).max(REMOVED_MIN)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use bellwire_core::Time;

    use super::super::tests::{KEPT, commit, file, found, log, row, row_of};
    use super::*;
    use crate::rows::ConversationKey;

    const REMOVED: usize = REMOVED_MIN;

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
