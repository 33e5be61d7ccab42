//! Takes back answers that a model never saw: their notifications become pending again.
//!
//! Twenty answers may contain thousands of notifications, most of which are folded at once, because a mailbox holds 200.
//! They are taken back in parts, each committed before the next. A part takes back whole answers, so a repeat of the call
//! continues after the last committed part.

use std::cmp::Reverse;

use bellwire_core::notification::Notification;
use bellwire_core::{Input, Time};

use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::rows::{InjectionRow, MailboxKey};

/// The number of rows that one part of the answers may write. An answer that is larger is a part of its own.
const PART_ROWS: usize = 1_000;

/// An answer to take back.
struct UnseenAnswer<'a> {
    call_id: &'a str,
    /// Sorts answers by age.
    age: (Time, u64),
    /// The maximum number of rows that taking it back writes.
    rows: usize,
}

impl<'a> UnseenAnswer<'a> {
    fn of(call_id: &'a str, row: &InjectionRow) -> Self {
        let rows = |one: &Notification| 1 + one.events.iter().filter(|entry| entry.replace != 0).count();
        let newest = row.taken.iter().map(|one| one.sequence).max().unwrap_or(0);
        Self { call_id, age: (row.at, newest), rows: 1 + row.taken.iter().map(rows).sum::<usize>() }
    }
}

impl Executor {
    /// Takes back the answers of these calls, within the mailbox's bound. Their call ids cannot be used again. Returns a
    /// warning for each unknown call id, or `None` if there are more answers than fit into one part.
    pub(super) async fn take_unseen(
        &mut self,
        key: &MailboxKey,
        call_ids: &[String],
        source: &mut impl RowSource,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let (mut unseen, mut warnings): (Vec<UnseenAnswer<'_>>, _) = (Vec::new(), Vec::new());
        for (at, call_id) in call_ids.iter().enumerate() {
            match self.loaded_answer(key, call_id, source).await? {
                None => warnings.push(format!("unseen[{at}]: no answer is known under this call_id")),
                Some(row) if row.unseen || unseen.iter().any(|known| known.call_id == call_id) => {}
                Some(row) => unseen.push(UnseenAnswer::of(call_id, row)),
            }
        }
        // Newest first: a mailbox takes its pending notifications for newer than those that come back. A newer event
        // must replace an older one, and the oldest are folded.
        unseen.sort_by_key(|answer| Reverse(answer.age));
        let mut rows = 0;
        let fits = unseen.iter().take_while(|answer| {
            let is_first = rows == 0;
            rows += answer.rows;
            is_first || rows <= PART_ROWS
        });
        let count = fits.count();
        self.take_back(key, &unseen[..count], source).await?;
        if count == unseen.len() {
            return Ok(Some(warnings));
        }
        self.drain(key);
        Ok(None)
    }

    /// The answer of this call. It stays in memory, because the command may need further steps.
    async fn loaded_answer(
        &mut self,
        key: &MailboxKey,
        call_id: &str,
        source: &mut impl RowSource,
    ) -> Result<Option<&InjectionRow>, StoreError> {
        let hot_mailbox = self.hot_mailboxes.get(key).expect("it was loaded before");
        if hot_mailbox.answer(call_id).is_none() && !hot_mailbox.never_answered(call_id) {
            self.check_budget(source)?;
            if let Some(row) = source.injection(key, call_id).await? {
                self.unweighed += row.bytes();
                self.hot_mailboxes.get_mut(key).expect("it was loaded before").keep_answer(row);
            }
        }
        Ok(self.hot_mailboxes.get(key).and_then(|hot_mailbox| hot_mailbox.answer(call_id)))
    }

    async fn take_back(
        &mut self,
        key: &MailboxKey,
        unseen: &[UnseenAnswer<'_>],
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let hot_mailbox = self.hot_mailboxes.get(key).expect("it was loaded before");
        let rows = unseen.iter().filter_map(|answer| hot_mailbox.answer(answer.call_id));
        let returned: Vec<Notification> = rows.flat_map(|row| row.taken.iter().cloned()).collect();
        if !returned.is_empty() {
            self.requeue(key, returned, source).await?;
        }
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded before");
        for UnseenAnswer { call_id, .. } in unseen {
            hot_mailbox.mark_unseen(call_id);
            self.changes.unseen.push((key.clone(), (*call_id).to_owned()));
        }
        Ok(())
    }

    /// Requeues notifications on a copy of the mailbox, then loads their events, which are no longer in memory. Loading
    /// may take several steps; the mailbox changes only when it is complete.
    async fn requeue(
        &mut self,
        key: &MailboxKey,
        returned: Vec<Notification>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded before");
        let mut mailbox = hot_mailbox.mailbox.clone();
        let handled = mailbox.handle(Input::Return(returned), &mut self.context);
        handled.map_err(|refused| StoreError::new(ErrorKind::Full, refused.to_string()))?;
        let mut wanted = hot_mailbox.lacking(mailbox.events_to_show());
        // Events of the current commit are not in the database yet.
        for row in &self.changes.events {
            if let Ok(at) = wanted.binary_search(&row.event.id()) {
                hot_mailbox.event_cache.keep(wanted.remove(at), row.packed.clone());
            }
        }
        let loaded = self.load(key, &wanted, source).await.and_then(|()| self.check_room(source));
        if let Err(stopped) = loaded {
            // Drop the effects of this step, so that the next command does not find them.
            while self.context.poll().is_some() {}
            // Keep the loaded events for the next step, even if the mailbox handles other inputs before it.
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded before");
            hot_mailbox.event_cache.pin(mailbox.events_to_show());
            return Err(stopped);
        }
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded before");
        hot_mailbox.change(&mut self.changes);
        hot_mailbox.mailbox = mailbox;
        hot_mailbox.event_cache.pin(std::iter::empty());
        self.changes.handled += 1;
        Ok(())
    }
}
