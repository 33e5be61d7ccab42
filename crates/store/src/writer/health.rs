//! Whether the database accepts commits, known from failed commits and from probes.

use std::time::Duration;

use tokio::time::Instant;

use super::{Backend, Writer};
use crate::error::{ErrorKind, StoreError};

/// How long the result of a probe is valid, so that frequent checks cost at most one probe a second.
const PROBED_FOR: Duration = Duration::from_secs(1);
/// After a commit failed because the database needs a repair, the store counts as broken for this long. A probe then
/// decides, because a hub that is not ready gets no commands that could show it works again.
const BROKEN_FOR: Duration = Duration::from_secs(3);

impl<B: Backend> Writer<B> {
    /// Whether the database accepts a commit: the last result, or a new probe if that is too old.
    pub(super) async fn probe(&mut self) -> Result<(), StoreError> {
        if let Some((at, error)) = &self.broken
            && at.elapsed() < BROKEN_FOR
        {
            return Err(error.clone());
        }
        if let Some((at, found)) = &self.probed
            && at.elapsed() < PROBED_FOR
        {
            return found.clone();
        }
        let found = match self.backend.probe().await {
            Ok(()) => self.backend.probe_tables().await,
            failed => failed,
        };
        self.broken = None;
        self.probed = Some((Instant::now(), found.clone()));
        found
    }

    /// Updates the health of the database from the result of a commit.
    pub(super) fn note_broken(&mut self, committed: &Result<(), StoreError>) {
        match committed {
            Ok(()) if self.executor.changes.is_empty() => {}
            Ok(()) => self.broken = None,
            // A commit does not read single rows, so the damage is in a table or an index.
            Err(error) if matches!(error.kind, ErrorKind::Broken | ErrorKind::Damaged) => {
                self.broken = Some((Instant::now(), error.clone()));
            }
            Err(_) => {}
        }
    }

    /// Whether a commit failed because of its rows, so that a smaller one may succeed. The database itself works then.
    pub(super) async fn is_about_rows(&mut self, error: &StoreError) -> bool {
        matches!(error.kind, ErrorKind::Broken | ErrorKind::Damaged) && self.backend.probe().await.is_ok()
    }
}
