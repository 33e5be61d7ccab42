//! The ledger: every decision on a `notify` request, written in the commit that decides it.

use super::{Executor, RowSource};
use crate::error::StoreError;
use crate::notify::{LedgerDraft, LedgerEntry, LedgerRow, day_of};

/// How many decisions per origin and day are rows of their own. Further ones are only counted, so that one origin cannot
/// fill the database.
const ROWS_PER_DAY: u64 = 10_000;
/// The cache of counts is cleared when it has this many origins.
const ORIGINS_MAX: usize = 10_000;

impl Executor {
    /// Records a decision that has no other effect.
    pub(crate) async fn record_decision(
        &mut self,
        draft: Box<LedgerDraft>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        if let Some(user_id) = &draft.user_id {
            self.erasing.check(user_id)?;
        }
        self.record(*draft, source).await
    }

    /// Adds a decision to the ledger and to the sums of its day.
    pub(super) async fn record(&mut self, decided: LedgerDraft, source: &mut impl RowSource) -> Result<(), StoreError> {
        let at = self.context.now;
        let day = day_of(at);
        let known = self.ledger_today.get(&decided.origin).filter(|(known, _)| *known == day).map(|(_, count)| *count);
        let count = match known {
            Some(count) => count,
            None => {
                let staged = self.changes.notify.ledger.iter().filter(|row| row.entry.decided.origin == decided.origin);
                let staged = staged.count() as u64;
                source.ledger_count(&decided.origin, day).await? + staged
            }
        };
        if self.ledger_today.len() >= ORIGINS_MAX {
            self.ledger_today.clear();
        }
        self.ledger_today.insert(decided.origin.clone(), (day, count + 1));
        let entry = LedgerEntry { id: self.context.ids.next(at), at, decided };
        self.changes.notify.ledger.push(LedgerRow { entry, is_listed: count < ROWS_PER_DAY });
        Ok(())
    }
}
