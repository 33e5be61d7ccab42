//! Rows that cannot be read: the work that came across one goes on without it, and an operator hears of it.

use std::collections::HashSet;

use crate::error::StoreError;

/// What a query found: the rows that can be read, and which cannot.
pub(crate) struct Found<T> {
    pub(crate) rows: Vec<T>,
    /// The table and the key of each, with what is wrong.
    pub(crate) damaged: Vec<(String, StoreError)>,
}

impl<T> From<Vec<T>> for Found<T> {
    fn from(rows: Vec<T>) -> Self {
        Self { rows, damaged: Vec::new() }
    }
}

/// The rows that were found damaged since the store was opened. Timers come across the same row again and again; it is
/// logged and counted the first time.
#[derive(Default)]
pub(crate) struct Damage {
    known: HashSet<String>,
    /// How many were found since that was last asked.
    fresh: usize,
}

impl Damage {
    /// Notes that a row is left out, by its table and key.
    pub(crate) fn note(&mut self, row: String, error: &StoreError) {
        if !self.known.contains(&row) {
            tracing::error!(%row, %error, "a row of the database is damaged; everything else goes on without it");
            self.fresh += 1;
            self.known.insert(row);
        }
    }

    /// Notes which rows are left out, and gives the others.
    pub(crate) fn readable<T>(&mut self, found: Found<T>) -> Vec<T> {
        found.damaged.into_iter().for_each(|(row, error)| self.note(row, &error));
        found.rows
    }

    /// How many rows were found damaged since this was last asked.
    pub(crate) fn take_fresh(&mut self) -> usize {
        std::mem::take(&mut self.fresh)
    }
}
