//! Reads the log of a database at start.

use rusqlite::Connection;

use super::change::{Image, MailboxChange};
use super::{Changed, MailboxLog, Record};
use crate::error::StoreError;
use crate::keys::KeyedMap;
use crate::rows::MailboxKey;
use crate::sqlite::{damaged, failed};

/// Records have consecutive numbers. A gap larger than this is damage, not removed records.
const GAP_MAX: i64 = 1_000_000;

impl MailboxLog {
    /// Reads the log of a database.
    pub(in crate::sqlite) fn read(connection: &Connection) -> Result<Self, StoreError> {
        let bytes_max = crate::Sizes::default().mailbox_log_bytes;
        let mut log = Self { first: 1, bytes_max, ..Self::default() };
        // Mailboxes whose base record was removed: their row has the latest state, and their remaining changes are
        // skipped.
        let mut moved: KeyedMap<MailboxKey, i64> = KeyedMap::default();
        let mut query =
            connection.prepare("SELECT sequence, changes FROM mailbox_log ORDER BY sequence").map_err(failed)?;
        let mut rows = query.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let number: i64 = row.get(0).map_err(failed)?;
            let record = row.get_ref(1).map_err(failed)?.as_blob().ok();
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
}

/// The error for an unreadable record, with the statement that empties it. Afterwards, mailboxes that depend on it are
/// reported as damaged. The record must not be deleted: if it were the first one, older rows would count as the latest
/// state.
fn unreadable(number: i64) -> StoreError {
    damaged(&format!(
        "mailbox_log {number}; restore a backup, or go on without what it says: \
         UPDATE mailbox_log SET changes = x'' WHERE sequence = {number}"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use bellwire_core::{Ids, Time};

    use super::super::tests::{KEPT, commit, file, found, log, mailbox, row_of};
    use super::*;

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
}
