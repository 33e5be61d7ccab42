use std::ops::{Deref, DerefMut};

use crate::rows::Changes;

/// The changes that a group of commands has staged for its commit.
///
/// It records whether a command has accessed them mutably. A command that fails after it has staged something must be
/// rolled back; most refused commands have staged nothing. Because every mutable access counts, no command can forget
/// to report a change.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    changes: Changes,
    touched: bool,
}

impl Staged {
    /// Starts the next command.
    pub(crate) fn begin(&mut self) {
        self.touched = false;
    }

    /// Whether the current command has staged anything.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Removes and returns all changes.
    pub(crate) fn take(&mut self) -> Changes {
        std::mem::take(self).changes
    }
}

impl Deref for Staged {
    type Target = Changes;

    fn deref(&self) -> &Changes {
        &self.changes
    }
}

impl DerefMut for Staged {
    fn deref_mut(&mut self) -> &mut Changes {
        self.touched = true;
        &mut self.changes
    }
}
