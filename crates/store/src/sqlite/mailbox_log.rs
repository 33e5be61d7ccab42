//! The mailboxes that changed lately, in the order they changed.
//!
//! A mailbox is saved whole by every commit that touches it. Written in its place, each would change a page of its own
//! somewhere in the file, and a commit for eight conversations would be eight pages and more. So new states go to the
//! end of a log, and only what has not changed again for [`KEPT`] rows moves to its place: the states of a busy mailbox
//! in between never do. What the log holds is known here, so that nothing is looked for twice.

use std::collections::{BTreeSet, VecDeque};

use bellwire_core::Time;
use rusqlite::{Connection, Row};

use crate::keys::KeyedMap;
use crate::rows::{ConversationKey, MailboxKey, MailboxRow};

/// How many rows the log keeps, and how many leave it at once: few in a build for tests, where all of this has to happen.
const KEPT: usize = if cfg!(debug_assertions) { 12 } else { 8_192 };
const STEP: usize = if cfg!(debug_assertions) { 4 } else { 256 };
/// The most that leave at once. A commit may bring a thousand, so that more than this is never left for the next.
const LEAVING_MAX: usize = 4_096;

/// What the log holds, without the states themselves.
#[derive(Default)]
pub(super) struct MailboxLog {
    /// The number of the oldest row; from there on they are counted through.
    first: i64,
    /// Whose newest state each row is, oldest first; none where a later row has a newer one, or it was erased.
    rows: VecDeque<Option<MailboxKey>>,
    newest: KeyedMap<MailboxKey, Newest>,
    /// Those of them that are not their conversation's own agent's, in order: there are few.
    sub_agents: BTreeSet<MailboxKey>,
    by_due: BTreeSet<(Time, i64)>,
    /// Up to here, whatever is due in its place has changed again since: it is in the log.
    looked: Time,
    /// What was found to be due in its place when that was last asked, and when that was.
    handed: Option<(Time, Vec<MailboxKey>)>,
}

#[derive(Copy, Clone)]
struct Newest {
    sequence: i64,
    due_at: Time,
}

/// Rows that leave the log: all up to a number, of which some are their mailbox's newest and move to their place.
pub(super) struct Leaving {
    pub(super) last: i64,
    pub(super) settling: Vec<i64>,
}

impl MailboxLog {
    /// What the log of this file holds.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT sequence, owner, conversation_id, agent, due_at FROM mailbox_log ORDER BY sequence";
        let mut query = connection.prepare(sql)?;
        let mut rows = query.query([])?;
        let mut log = Self { first: 1, ..Self::default() };
        while let Some(row) = rows.next()? {
            let sequence = row.get(0)?;
            if log.rows.is_empty() {
                log.first = sequence;
            }
            while log.next() < sequence {
                log.rows.push_back(None);
            }
            log.append(key(row, 1)?, Time::from_millis(row.get(4)?));
        }
        Ok(log)
    }

    /// The number the next row gets.
    pub(super) fn next(&self) -> i64 {
        self.first + self.rows.len() as i64
    }

    /// The row with a mailbox's newest state; none where that is in its place.
    pub(super) fn newest(&self, key: &MailboxKey) -> Option<i64> {
        self.newest.get(key).map(|newest| newest.sequence)
    }

    /// The agents of a conversation, besides its own, whose mailboxes are here.
    pub(super) fn sub_agents<'a>(&'a self, conversation: &'a ConversationKey) -> impl Iterator<Item = &'a MailboxKey> {
        let from = MailboxKey::new(conversation, "");
        self.sub_agents.range(from..).take_while(move |key| key.conversation == *conversation)
    }

    /// Which mailboxes of the log are due, the earliest first.
    pub(super) fn due(&self, now: Time, limit: usize) -> impl Iterator<Item = (Time, MailboxKey)> {
        let due = self.by_due.iter().take_while(move |(due_at, _)| *due_at <= now).take(limit);
        due.filter_map(move |(due_at, sequence)| Some((*due_at, self.rows.get(self.place(*sequence)?)?.clone()?)))
    }

    /// From which time on something may be due in its place.
    ///
    /// What is due is handled, and what is handled is appended to the log. So once everything that was found is here,
    /// there is nothing left to find up to then, however many rows still say that they are due.
    pub(super) fn looked(&mut self) -> Time {
        if let Some((at, found)) = self.handed.take()
            && found.iter().all(|key| self.newest.contains_key(key))
        {
            self.looked = self.looked.max(at);
        }
        self.looked
    }

    /// What was found to be due in its place by now.
    pub(super) fn hand(&mut self, now: Time, found: Vec<MailboxKey>) {
        self.handed = Some((now, found));
    }

    /// What is to leave the log with the next commit, if it has become too long.
    pub(super) fn leaving(&self) -> Option<Leaving> {
        if self.rows.len() < KEPT + STEP {
            return None;
        }
        let count = (self.rows.len() - KEPT).min(LEAVING_MAX);
        let oldest = (self.first..).zip(self.rows.iter().take(count));
        let settling = oldest.filter_map(|(sequence, newest)| newest.is_some().then_some(sequence)).collect();
        Some(Leaving { last: self.first + count as i64 - 1, settling })
    }

    /// The commit succeeded: these rows are in the log, and those have left it.
    pub(super) fn committed(&mut self, rows: &[(MailboxKey, MailboxRow)], left: Option<&Leaving>) {
        for (key, row) in rows {
            self.append(key.clone(), row.due_at);
        }
        while left.is_some_and(|left| self.first <= left.last) {
            let Some(key) = self.rows.pop_front() else { break };
            if let Some(newest) = key.and_then(|key| self.take_newest(&key)) {
                // One that is overdue was not handled yet, and must be found in its place.
                let before = Time::from_millis(newest.due_at.as_millis().saturating_sub(1));
                self.looked = self.looked.min(before);
                self.handed.iter_mut().for_each(|(at, _)| *at = (*at).min(before));
            }
            self.first += 1;
        }
    }

    /// The commit that erased a person succeeded: none of their mailboxes is here.
    pub(super) fn forget(&mut self, user_id: &str) {
        for at in 0..self.rows.len() {
            if let Some(key) = self.rows[at].take_if(|key| &**key.owner() == user_id) {
                self.take_newest(&key);
            }
        }
    }

    /// Takes out what is known of a mailbox whose row goes.
    fn take_newest(&mut self, key: &MailboxKey) -> Option<Newest> {
        let newest = self.newest.remove(key)?;
        self.by_due.remove(&(newest.due_at, newest.sequence));
        if is_a_sub_agents(key) {
            self.sub_agents.remove(key);
        }
        Some(newest)
    }

    fn append(&mut self, key: MailboxKey, due_at: Time) {
        let sequence = self.next();
        match self.newest.insert(key.clone(), Newest { sequence, due_at }) {
            Some(older) => {
                self.by_due.remove(&(older.due_at, older.sequence));
                if let Some(row) = self.place(older.sequence).and_then(|at| self.rows.get_mut(at)) {
                    *row = None;
                }
            }
            None if is_a_sub_agents(&key) => drop(self.sub_agents.insert(key.clone())),
            None => {}
        }
        // What never is due need not be looked for.
        if due_at < Time::NEVER {
            self.by_due.insert((due_at, sequence));
        }
        self.rows.push_back(Some(key));
    }

    /// Where a row is among those that are here.
    fn place(&self, sequence: i64) -> Option<usize> {
        usize::try_from(sequence - self.first).ok()
    }
}

/// A person's mailbox counts as one too; nobody asks for the agents of no conversation.
fn is_a_sub_agents(key: &MailboxKey) -> bool {
    &*key.agent != "main"
}

/// The mailbox that three columns name, from this one on.
pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<MailboxKey> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    Ok(MailboxKey::new(&ConversationKey::new(text(column)?, text(column + 1)?), text(column + 2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox(id: &str) -> MailboxKey {
        MailboxKey::new(&ConversationKey::new("ada", id), "main")
    }

    fn row(id: &str, due_at: i64) -> (MailboxKey, MailboxRow) {
        let due_at = Time::from_millis(due_at);
        (mailbox(id), MailboxRow { state: Vec::new(), pending: Vec::new(), due_at })
    }

    /// Commits these rows, and lets go what has to.
    fn commit(log: &mut MailboxLog, rows: &[(MailboxKey, MailboxRow)]) {
        let leaving = log.leaving();
        log.committed(rows, leaving.as_ref());
    }

    #[test]
    fn one_that_leaves_the_log_before_it_is_handled_is_looked_for_in_its_place() {
        let mut log = MailboxLog { first: 1, ..MailboxLog::default() };
        commit(&mut log, &[row("late", 100)]);
        let others: Vec<_> = (0..KEPT + STEP).map(|number| row(&number.to_string(), 50)).collect();
        commit(&mut log, &others);
        // At 200 all are due and only some are handled; nothing was found in its place.
        assert!(log.looked() < Time::from_millis(100));
        log.hand(Time::from_millis(200), Vec::new());
        assert_eq!(log.newest(&mailbox("late")), Some(1));
        commit(&mut log, &[row("0", 900), row("1", 900)]);
        assert_eq!(log.newest(&mailbox("late")), None, "it has left the log");
        assert!(log.looked() < Time::from_millis(100), "and is found where it went");
    }

    #[test]
    fn what_was_handled_is_not_looked_for_again() {
        let mut log = MailboxLog { first: 1, ..MailboxLog::default() };
        assert_eq!(log.looked(), Time::default());
        log.hand(Time::from_millis(200), vec![mailbox("a")]);
        assert_eq!(log.looked(), Time::default(), "it was found and is not in the log: nobody has handled it");
        log.hand(Time::from_millis(200), vec![mailbox("a")]);
        commit(&mut log, &[row("a", 900)]);
        assert_eq!(log.looked(), Time::from_millis(200));
    }

    #[test]
    fn however_much_a_commit_brings_the_next_one_makes_room() {
        let mut log = MailboxLog { first: 1, ..MailboxLog::default() };
        let many: Vec<_> = (0..1_000).map(|number| row(&number.to_string(), 50)).collect();
        commit(&mut log, &many);
        commit(&mut log, &[row("one", 50)]);
        assert!(log.rows.len() <= KEPT + 1, "{} rows", log.rows.len());
    }

    #[test]
    fn nothing_of_a_person_who_was_erased_is_due_or_moves_to_its_place() {
        let mut log = MailboxLog { first: 1, ..MailboxLog::default() };
        commit(&mut log, &(0..KEPT + STEP).map(|number| row(&number.to_string(), 50)).collect::<Vec<_>>());
        log.forget("ada");
        assert_eq!(log.due(Time::from_millis(100), 10).count(), 0);
        assert!(log.leaving().is_some_and(|leaving| leaving.settling.is_empty()));
    }
}
