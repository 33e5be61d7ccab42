use std::ops::{Deref, DerefMut};

use crate::rows::Changes;

/// The changes that a group of commands has staged for its commit.
///
/// It remembers whether they were written to since a command began: a command that fails after it has staged something
/// must be rolled back, and nearly all that are refused have staged nothing. Every mutable access counts, so no command
/// can forget to say that it changed something.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    changes: Changes,
    touched: bool,
}

impl Staged {
    /// The next command begins.
    pub(crate) fn begin(&mut self) {
        self.touched = false;
    }

    /// Whether the command that began last has staged anything.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Takes all changes out.
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
