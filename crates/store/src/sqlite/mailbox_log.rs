//! The mailboxes that changed lately: each as it is in memory, and how it came to that in the file.
//!
//! A mailbox is saved by every commit that touches it. Written in its place, each would change a page of its own somewhere
//! in the file, and all of it for the few bytes an event changes. So a commit appends one record to a log, with what has
//! changed in each of its mailboxes; and only what has not changed again for long moves to its place. The first change of
//! a mailbox is the whole of it, and so is the next as soon as those in between take as much: the log stays short, and a
//! start reads about twice what the mailboxes have.

mod change;
mod difference;

use std::collections::{BTreeSet, HashSet, VecDeque};

use bellwire_core::Time;
use rusqlite::{Connection, Row, params};

use crate::error::StoreError;
use crate::keys::KeyedMap;
use crate::rows::{ConversationKey, MailboxKey, MailboxRow};
use change::{Image, MailboxChange};

/// About this part of what the log may keep leaves it at once, and at least so many bytes.
const LEAVING_PART: usize = 64;
const LEAVING_MIN: usize = 1024;
/// How many mailboxes may move to their places with one commit, give or take those of one record.
const MOVED_MAX: usize = 4_096;
/// Records are counted through; where so many are missing, the numbers are wrong and not the records gone.
const GAP_MAX: i64 = 1_000_000;

/// What the log holds.
#[derive(Default)]
pub(super) struct MailboxLog {
    /// How many bytes it may have.
    bytes_max: usize,
    /// The number of the oldest record; from there on they are counted through.
    first: i64,
    records: VecDeque<Record>,
    /// How many bytes all records have.
    bytes: usize,
    mailboxes: KeyedMap<MailboxKey, Logged>,
    /// Those of them that are not their conversation's own agent's, in order: there are few.
    sub_agents: BTreeSet<MailboxKey>,
    by_due: BTreeSet<(Time, MailboxKey)>,
    /// Up to here, whatever is due in its place has changed again since: it is in the log.
    looked: Time,
    /// What was found to be due in its place when that was last asked, and when that was.
    handed: Option<(Time, Vec<(Time, MailboxKey)>)>,
}

/// A record, without the changes themselves.
#[derive(Default)]
struct Record {
    bytes: usize,
    /// The mailboxes that are whole in it, and how many of them are still counted from here.
    whole: Vec<MailboxKey>,
    needed: usize,
}

/// A mailbox of the log.
struct Logged {
    image: Image,
    /// The record in which it is whole, and the one with its latest change.
    since: i64,
    latest: i64,
    /// How many bytes the changes after the whole have.
    spent: usize,
}

/// What a commit writes of mailboxes, and what the log will be when that has succeeded.
pub(super) struct LogPlan {
    number: i64,
    /// What the log gets; empty where no mailbox changed.
    record: Vec<u8>,
    changes: Vec<Changed>,
    /// Those that the record says are deleted.
    deleted: Vec<MailboxKey>,
    /// The records up to this number leave the log.
    leaving: Option<i64>,
    /// Those whose newest state leaves with a record, and moves to its place.
    moving: Vec<MailboxKey>,
}

impl LogPlan {
    /// How many rows it writes, about.
    pub(super) fn work(&self) -> usize {
        self.changes.len() + self.moving.len()
    }
}

struct Changed {
    key: MailboxKey,
    image: Image,
    whole: bool,
    bytes: usize,
}

impl MailboxLog {
    /// The same, with this many bytes at most.
    pub(super) fn keeping(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// What the log of this file holds.
    pub(super) fn read(connection: &Connection) -> Result<Self, StoreError> {
        let bytes_max = crate::Sizes::default().mailbox_log_bytes;
        let mut log = Self { first: 1, bytes_max, ..Self::default() };
        // Mailboxes whose whole has left the log: what is left of their changes is in their place.
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
                    _ if change.before == 0 => change.whole(),
                    Some(known) => change.apply(&known.image),
                    None if change.before < log.first || moved.get(&key) == Some(&change.before) => {
                        moved.insert(key, number);
                        continue;
                    }
                    None => Image::damaged(),
                };
                let whole = known.is_none();
                changed.push(Changed { key, image, whole, bytes });
            }
            log.append(record.len(), changed);
        }
        Ok(log)
    }

    /// The number the next record gets.
    pub(super) fn next(&self) -> i64 {
        self.first + self.records.len() as i64
    }

    pub(super) fn has(&self, key: &MailboxKey) -> bool {
        self.mailboxes.contains_key(key)
    }

    /// A mailbox's newest state and the ids of what waits in it; none where that is in its place.
    pub(super) fn newest(&self, key: &MailboxKey) -> Option<(&[u8], &[u8])> {
        self.mailboxes.get(key).map(|logged| logged.image.parts())
    }

    /// All mailboxes of the log, each with its newest state and the ids of what waits in it.
    pub(super) fn newest_of_all(&self) -> impl Iterator<Item = (&MailboxKey, (&[u8], &[u8]))> {
        self.mailboxes.iter().map(|(key, logged)| (key, logged.image.parts()))
    }

    /// All mailboxes of the log, with their states.
    pub(super) fn all(&self) -> impl Iterator<Item = (&MailboxKey, &[u8])> {
        self.mailboxes.iter().map(|(key, logged)| (key, logged.image.parts().0))
    }

    /// The agents of a conversation, besides its own, whose mailboxes are here and in which something waits.
    pub(super) fn sub_agents_with_mail<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> impl Iterator<Item = &'a MailboxKey> {
        let from = MailboxKey::new(conversation, "");
        let here = self.sub_agents.range(from..).take_while(move |key| key.is_in(conversation));
        here.filter(|key| self.newest(key).is_some_and(|(_, pending)| !pending.is_empty()))
    }

    /// Which mailboxes of the log are due, the earliest first.
    pub(super) fn due(&self, now: Time) -> impl Iterator<Item = (Time, MailboxKey)> {
        self.by_due.iter().take_while(move |(due_at, _)| *due_at <= now).cloned()
    }

    /// When the next mailbox of the log is due after this time.
    pub(super) fn next_due(&self, after: Time) -> Time {
        self.by_due.iter().map(|(due_at, _)| *due_at).find(|due_at| *due_at > after).unwrap_or(Time::NEVER)
    }

    /// From which time on something may be due in its place.
    ///
    /// What is due is handled, and what is handled is appended to the log. So up to the first that was found and is not
    /// here there is nothing left to find, however many rows still say that they are due.
    pub(super) fn looked(&mut self) -> Time {
        if let Some((at, found)) = self.handed.take() {
            let left = found.iter().filter(|(_, key)| !self.mailboxes.contains_key(key));
            let left = left.map(|(due_at, _)| due_at.minus(1)).min();
            self.looked = self.looked.max(left.map_or(at, |left| left.min(at)));
        }
        self.looked
    }

    /// What was found to be due in its place by now, each with its time.
    pub(super) fn hand(&mut self, now: Time, found: Vec<(Time, MailboxKey)>) {
        self.handed = Some((now, found));
    }

    /// What a commit with these rows has to write.
    pub(super) fn plan(&self, rows: &[(MailboxKey, MailboxRow)]) -> LogPlan {
        let last = self.leaving();
        let mut record = Vec::new();
        let mut changes = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            let image = Image::of(row);
            // What is counted from a record that leaves begins anew, and so does what has taken as much as the whole.
            let goes_on = |logged: &&Logged| last.is_none_or(|last| logged.since > last) && logged.spent < image.len();
            let before = self.mailboxes.get(key).filter(goes_on).map(|logged| (logged.latest, &logged.image));
            let bytes = MailboxChange::write(key, &image, before, &mut record);
            changes.push(Changed { key: key.clone(), image, whole: before.is_none(), bytes });
        }
        let mut moving = last.map_or_else(Vec::new, |last| self.counted_up_to(last));
        if !moving.is_empty() {
            let here: HashSet<&MailboxKey> = rows.iter().map(|(key, _)| key).collect();
            moving.retain(|key| !here.contains(key));
        }
        LogPlan { number: self.next(), record, changes, deleted: Vec::new(), leaving: last, moving }
    }

    /// Lets the records below this number leave, at most about `limit` mailboxes and records at once. The mailboxes of the
    /// person who is being erased do not move to their places. A mailbox may move before its record can leave: until the
    /// record does, both say the same.
    pub(super) fn plan_until(&self, until: i64, limit: usize, erased: Option<&str>) -> LogPlan {
        let (mut last, mut moving) = (None, Vec::new());
        for ((number, record), left) in (self.first..until).zip(&self.records).zip((1..=limit).rev()) {
            let is_here = |key: &&MailboxKey| self.mailboxes.get(key).is_some_and(|logged| logged.since == number);
            let mut here = record.whole.iter().filter(is_here).filter(|key| erased != Some(&**key.owner()));
            moving.extend(here.by_ref().take(left.saturating_sub(moving.len())).cloned());
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
            leaving: last,
            moving,
        }
    }

    /// What the log says of mailboxes that are deleted: a record that names them.
    pub(super) fn plan_deletion(&self, deleted: Vec<MailboxKey>) -> LogPlan {
        let mut record = Vec::new();
        deleted.iter().for_each(|key| MailboxChange::write_deleted(key, &mut record));
        LogPlan { number: self.next(), record, changes: Vec::new(), deleted, leaving: None, moving: Vec::new() }
    }

    /// The mailboxes of a conversation that are in the log.
    pub(super) fn in_conversation<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> impl Iterator<Item = &'a MailboxKey> {
        let main = self.mailboxes.get_key_value(&MailboxKey::new(conversation, "main"));
        let from = MailboxKey::new(conversation, "");
        let sub_agents = self.sub_agents.range(from..).take_while(move |key| key.is_in(conversation));
        main.map(|(key, _)| key).into_iter().chain(sub_agents)
    }

    /// Whether nothing waits in a mailbox of the log and it will do nothing by itself. Of a damaged one that is not known.
    pub(super) fn is_idle(&self, key: &MailboxKey) -> bool {
        self.mailboxes.get(key).is_some_and(|Logged { image, .. }| {
            let (state, pending) = image.parts();
            !state.is_empty() && pending.is_empty() && image.due_at() == Time::NEVER
        })
    }

    /// Whether all records below this number have left.
    pub(super) fn begins_at_or_after(&self, number: i64) -> bool {
        self.first >= number
    }

    /// Drops the mailboxes of a person who is being erased. Their records are still in the file.
    pub(super) fn forget(&mut self, owner: &str) {
        let theirs: Vec<MailboxKey> = self.mailboxes.keys().filter(|key| &**key.owner() == owner).cloned().collect();
        for key in theirs {
            self.remove(&key);
        }
    }

    /// Up to which record all leave with the next commit: those that nobody needs, as soon as they are worth it, and the
    /// oldest where the log has become too long.
    fn leaving(&self) -> Option<i64> {
        let at_once = leaving_at_once(self.bytes_max);
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

    /// The mailboxes that are counted from the records up to this one.
    fn counted_up_to(&self, last: i64) -> Vec<MailboxKey> {
        let leaving = (self.first..=last).zip(&self.records);
        let counted = leaving.flat_map(|(number, record)| {
            let here = move |key: &&MailboxKey| self.mailboxes.get(key).is_some_and(|logged| logged.since == number);
            record.whole.iter().filter(here).cloned()
        });
        counted.collect()
    }

    /// The commit succeeded.
    pub(super) fn committed(&mut self, plan: LogPlan) {
        let last = plan.leaving.unwrap_or(0);
        for key in &plan.deleted {
            self.remove(key);
        }
        if !plan.record.is_empty() {
            self.append(plan.record.len(), plan.changes);
        }
        plan.moving.iter().for_each(|key| self.move_out(key));
        while self.first <= last {
            let Some(record) = self.records.pop_front() else { break };
            self.bytes -= record.bytes;
            self.first += 1;
        }
    }

    /// A mailbox has gone to its place.
    fn move_out(&mut self, key: &MailboxKey) {
        let Some(due_at) = self.remove(key) else { return };
        // One that is overdue was not handled yet, and must be found in its place.
        let before = Time::from_millis(due_at.as_millis().saturating_sub(1));
        self.looked = self.looked.min(before);
        self.handed.iter_mut().for_each(|(at, _)| *at = (*at).min(before));
    }

    /// Takes a mailbox out of the memory of the log; when it was due.
    fn remove(&mut self, key: &MailboxKey) -> Option<Time> {
        let logged = self.mailboxes.remove(key)?;
        if let Some(record) = self.place(logged.since).and_then(|at| self.records.get_mut(at)) {
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
        for Changed { key, image, whole, bytes } in changes {
            let due_at = image.due_at();
            let (mut since, mut spent, mut was_due) = (number, 0, Time::NEVER);
            match self.mailboxes.get(&key) {
                Some(logged) => {
                    was_due = logged.image.due_at();
                    match whole {
                        true => {
                            if let Some(from) = self.place(logged.since).and_then(|at| self.records.get_mut(at)) {
                                from.needed -= 1;
                            }
                        }
                        false => (since, spent) = (logged.since, logged.spent + bytes),
                    }
                }
                None if key.is_sub_agents() => drop(self.sub_agents.insert(key.clone())),
                None => {}
            }
            // What never is due need not be looked for.
            if was_due != due_at {
                self.by_due.remove(&(was_due, key.clone()));
                if due_at < Time::NEVER {
                    self.by_due.insert((due_at, key.clone()));
                }
            }
            if whole {
                record.whole.push(key.clone());
                record.needed += 1;
            }
            self.mailboxes.insert(key, Logged { image, since, latest: number, spent });
        }
        self.bytes += bytes;
        self.records.push_back(record);
    }

    /// Where a record is among those that are here.
    fn place(&self, number: i64) -> Option<usize> {
        usize::try_from(number - self.first).ok()
    }

    /// Writes what is planned.
    pub(super) fn write(&self, connection: &Connection, plan: &LogPlan) -> rusqlite::Result<()> {
        if !plan.record.is_empty() {
            let mut insert = connection.prepare_cached("INSERT INTO mailbox_log (sequence, changes) VALUES (?, ?)")?;
            insert.execute(params![plan.number, plan.record])?;
        }
        for key in &plan.moving {
            if let Some(logged) = self.mailboxes.get(key) {
                move_to_its_place(connection, key, &logged.image)?;
            }
        }
        let Some(last) = plan.leaving else { return Ok(()) };
        connection.prepare_cached("DELETE FROM mailbox_log WHERE sequence <= ?1")?.execute([last]).map(drop)
    }
}

/// Without its changes the row says nothing, and whoever has to be told that something is missing is told. If it were
/// gone, and the first, then what follows it would look as if it were in its place.
fn unreadable(number: i64) -> StoreError {
    super::damaged(&format!(
        "mailbox_log {number}; restore a backup, or go on without what it says: \
         UPDATE mailbox_log SET changes = x'' WHERE sequence = {number}"
    ))
}

fn move_to_its_place(connection: &Connection, key: &MailboxKey, image: &Image) -> rusqlite::Result<()> {
    let mut place = connection.prepare_cached(
        "INSERT INTO mailboxes (owner, conversation_id, agent, state, pending, due_at) VALUES (?, ?, ?, ?, ?, ?) \
         ON CONFLICT (owner, conversation_id, agent) DO UPDATE SET state = excluded.state, \
         pending = excluded.pending, due_at = excluded.due_at",
    )?;
    let (state, pending) = image.parts();
    let due_at = image.due_at().as_millis();
    let (owner, conversation, agent) = key.columns();
    place.execute(params![owner, conversation, agent, state, pending, due_at]).map(drop)
}

/// The mailbox that three columns name, from this one on.
pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<MailboxKey> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    Ok(MailboxKey::from_columns(text(column)?, text(column + 1)?, text(column + 2)?))
}

/// About how many bytes leave a log of this size at once.
fn leaving_at_once(bytes_max: usize) -> usize {
    (bytes_max / LEAVING_PART).max(LEAVING_MIN)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use bellwire_core::{Ids, NotificationId};

    use super::*;

    const KEPT: usize = crate::Sizes::SMALL.mailbox_log_bytes;
    const LEAVING: usize = LEAVING_MIN;

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
            assert!(log.bytes < 2 * LEAVING, "{} bytes", log.bytes);
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
        // All of it is held by the one that is idle, and nobody needs it any more when that has moved.
        for round in 0..KEPT as u32 {
            let state = (0..100_u32).map(|at| (at * at) as u8).chain(round.to_le_bytes()).collect();
            let (first, bytes) = (log.first, log.bytes);
            commit(&mut log, &file, &[row_of("busy", state, 1)]);
            assert!(bytes < log.bytes + 3 * LEAVING, "from {bytes} bytes to {} at once", log.bytes);
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
        assert!(log.looked() < Time::from_millis(100));
        log.hand(Time::from_millis(200), Vec::new());
        assert!(log.has(&mailbox("late")));
        push_out(&mut log, &file, 900);
        commit(&mut log, &file, &[row("one more", 900)]);
        assert!(!log.has(&mailbox("late")), "it has left the log");
        assert!(log.looked() < Time::from_millis(100), "and is found where it went");
    }

    #[test]
    fn handled_mailboxes_are_not_queried_again() {
        let (file, mut log) = (file(), log());
        assert_eq!(log.looked(), Time::default());
        let due = |at: i64, id: &str| (Time::from_millis(at), mailbox(id));
        log.hand(Time::from_millis(200), vec![due(90, "a")]);
        assert_eq!(log.looked(), Time::from_millis(89), "it was found and is not in the log: nobody has handled it");
        log.hand(Time::from_millis(200), vec![due(90, "a")]);
        commit(&mut log, &file, &[row("a", 900)]);
        assert_eq!(log.looked(), Time::from_millis(200));
        log.hand(Time::from_millis(300), vec![due(210, "a"), due(220, "b"), due(230, "c")]);
        assert_eq!(log.looked(), Time::from_millis(219), "the first was handled, and the others will be");
    }

    #[test]
    fn a_large_commit_is_trimmed_by_the_next_one() {
        let (file, mut log) = (file(), log());
        let many: Vec<_> = (0..1_000).map(|number| row(&number.to_string(), 50)).collect();
        commit(&mut log, &file, &many);
        commit(&mut log, &file, &[row("one", 50)]);
        assert!(log.bytes <= KEPT + LEAVING, "{} bytes", log.bytes);
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
            assert!((1..=3).contains(&plan.moving.len()), "{} mailboxes at once", plan.moving.len());
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
