//! Rows that cannot be read: the work that came across one goes on without it, and an operator hears of it.

use std::collections::HashMap;

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
    /// Each with the person it is about, where that is known.
    known: HashMap<String, Option<Box<str>>>,
    /// How many were found since that was last asked.
    fresh: usize,
}

impl Damage {
    /// Notes that a row of this person is left out, by its table and key.
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

    /// Forgets the rows of a person who is erased. Rows that are known by their id alone stay.
    pub(crate) fn forget(&mut self, user_id: &str) {
        self.known.retain(|_, owner| owner.as_deref() != Some(user_id));
    }

    /// Notes which rows are left out, and gives the others.
    pub(crate) fn readable<T>(&mut self, found: Found<T>) -> Vec<T> {
        found.damaged.into_iter().for_each(|(row, error)| self.note_row(row, None, &error));
        found.rows
    }

    /// How many rows were found damaged since this was last asked.
    pub(crate) fn take_fresh(&mut self) -> usize {
        std::mem::take(&mut self.fresh)
    }
}
