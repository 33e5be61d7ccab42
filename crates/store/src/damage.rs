//! Unreadable rows. Timers and deliveries skip them, and the operator finds them in the log and the metrics.

use std::collections::{BTreeMap, HashMap};

use bellwire_core::Time;

use crate::error::StoreError;
use crate::rows::MailboxKey;

/// After how long a damaged mailbox or person is read again. The delay doubles with each failure, from the first value to
/// the second, so a repair is noticed after ten minutes at the latest.
const RETRY_MIN_MS: u64 = 60_000;
const RETRY_MAX_MS: u64 = 10 * 60_000;
/// The maximum number of mailboxes, and of people, that one tick reads again.
const RETRIED_MAX: usize = 8;

/// The result of a query: the readable rows, and the errors of the damaged ones.
pub(crate) struct Found<T> {
    pub(crate) rows: Vec<T>,
    /// The table and key of each damaged row, with the error.
    pub(crate) damaged: Vec<(String, StoreError)>,
}

impl<T> From<Vec<T>> for Found<T> {
    fn from(rows: Vec<T>) -> Self {
        Self { rows, damaged: Vec::new() }
    }
}

/// The rows found damaged since the store was opened. Timers read the same row again and again, so it is logged and
/// counted only the first time.
#[derive(Default)]
pub(crate) struct Damage {
    /// Each damaged row, with the person it belongs to, if that is known.
    known: HashMap<String, Option<Box<str>>>,
    /// How many were found since the last [`Damage::take_fresh`].
    fresh: usize,
    /// Damaged mailboxes, which timers skip, and people with damaged rows, whom reminders and deliveries skip.
    mailboxes: HashMap<MailboxKey, Retry>,
    people: BTreeMap<String, Retry>,
}

/// When a damaged row is read again.
struct Retry {
    at: Time,
    wait_ms: u64,
}

impl Retry {
    fn after(last: Option<&Self>, now: Time) -> Self {
        let wait_ms = last.map_or(RETRY_MIN_MS, |last| (last.wait_ms * 2).min(RETRY_MAX_MS));
        Self { at: now.plus(wait_ms), wait_ms }
    }
}

impl Damage {
    /// Records a skipped row of this person, by its table and key.
    pub(crate) fn note(&mut self, user_id: &str, row: String, error: &StoreError) {
        self.note_row(row, Some(user_id), error);
    }

    fn note_row(&mut self, row: String, user_id: Option<&str>, error: &StoreError) {
        if !self.known.contains_key(&row) {
            tracing::error!(%row, %error, "a row of the database is damaged; everything else goes on without it");
            self.fresh += 1;
            self.known.insert(row, user_id.map(Into::into));
        }
    }

    /// Records a damaged mailbox. Timers skip it until it is read again.
    pub(crate) fn mark_mailbox(&mut self, key: MailboxKey, now: Time, error: &StoreError) {
        self.note(key.owner(), mailbox_row(&key), error);
        let retry = Retry::after(self.mailboxes.get(&key), now);
        self.mailboxes.insert(key, retry);
    }

    /// Records a person whose rows are damaged. Reminders and deliveries skip them until the rows are read again.
    pub(crate) fn mark_person(&mut self, user_id: &str, now: Time, error: &StoreError) {
        self.note(user_id, person_row(user_id), error);
        let retry = Retry::after(self.people.get(user_id), now);
        self.people.insert(user_id.to_owned(), retry);
    }

    /// Removes a mailbox that can be read again or no longer exists.
    pub(crate) fn clear_mailbox(&mut self, key: &MailboxKey) {
        if self.mailboxes.remove(key).is_some() {
            self.clear_row(&mailbox_row(key));
        }
    }

    /// Removes a person whose rows can be read again.
    pub(crate) fn clear_person(&mut self, user_id: &str) {
        if self.people.remove(user_id).is_some() {
            self.clear_row(&person_row(user_id));
        }
    }

    fn clear_row(&mut self, row: &str) {
        self.known.remove(row);
        tracing::info!(%row, "a row that was damaged can be read again");
    }

    pub(crate) fn has_mailbox(&self, key: &MailboxKey) -> bool {
        self.mailboxes.contains_key(key)
    }

    /// The people that reminders and deliveries skip.
    pub(crate) fn people(&self) -> impl Iterator<Item = &String> {
        self.people.keys()
    }

    /// The damaged mailboxes whose retry is due, at most [`RETRIED_MAX`].
    pub(crate) fn mailboxes_to_retry(&self, now: Time) -> Vec<MailboxKey> {
        let due = self.mailboxes.iter().filter(|(_, retry)| retry.at <= now);
        due.map(|(key, _)| key.clone()).take(RETRIED_MAX).collect()
    }

    /// The people whose retry is due, at most [`RETRIED_MAX`].
    pub(crate) fn people_to_retry(&self, now: Time) -> Vec<String> {
        let due = self.people.iter().filter(|(_, retry)| retry.at <= now);
        due.map(|(user_id, _)| user_id.clone()).take(RETRIED_MAX).collect()
    }

    /// When the next retry is due.
    pub(crate) fn next_retry(&self) -> Time {
        self.mailboxes.values().chain(self.people.values()).map(|retry| retry.at).min().unwrap_or(Time::NEVER)
    }

    /// Removes the rows of an erased person. Rows without a known person stay.
    pub(crate) fn forget(&mut self, user_id: &str) {
        self.known.retain(|_, owner| owner.as_deref() != Some(user_id));
        self.mailboxes.retain(|key, _| &**key.owner() != user_id);
        self.people.remove(user_id);
    }

    /// Records the damaged rows and returns the readable ones.
    pub(crate) fn readable<T>(&mut self, found: Found<T>) -> Vec<T> {
        found.damaged.into_iter().for_each(|(row, error)| self.note_row(row, None, &error));
        found.rows
    }

    /// How many rows were found damaged since the last call.
    pub(crate) fn take_fresh(&mut self) -> usize {
        std::mem::take(&mut self.fresh)
    }
}

fn mailbox_row(key: &MailboxKey) -> String {
    let (owner, conversation, agent) = key.columns();
    format!("mailboxes ({owner}, {conversation}, {agent})")
}

fn person_row(user_id: &str) -> String {
    format!("what is stored of the person {user_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn what_stays_damaged_is_tried_again_after_longer_and_longer_waits() {
        let error = StoreError::new(ErrorKind::Damaged, "nonsense");
        let (mut damage, mut now, mut waits) = (Damage::default(), Time::from_millis(1_000), Vec::new());
        for _ in 0..6 {
            damage.mark_person("ada", now, &error);
            waits.push(damage.next_retry().millis_since(now) / 1_000);
            assert!(damage.people_to_retry(now).is_empty());
            now = damage.next_retry();
            assert_eq!(damage.people_to_retry(now), ["ada"]);
        }
        assert_eq!((waits, damage.take_fresh()), (vec![60, 120, 240, 480, 600, 600], 1));
        damage.clear_person("ada");
        assert_eq!((damage.next_retry(), damage.people().count()), (Time::NEVER, 0));
        damage.mark_person("ada", now, &error);
        assert_eq!(damage.take_fresh(), 1, "it was repaired and is damaged anew");
    }
}
