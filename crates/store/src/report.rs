//! What a commit did, for those who watch the store. Plain numbers: how they are shown is another's business.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::verdict::VerdictKind;

use crate::error::ErrorKind;
use crate::rows::Changes;
use crate::work::Work;

/// Hears of every commit, right after it. It is called by the writer: it must not wait for anything.
pub type Observer = Arc<dyn Fn(&Report) + Send + Sync>;

/// One commit.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many commands it carried.
    pub commands: usize,
    /// How many events it took in, those that detectors and observed calls brought included.
    pub events: usize,
    /// How many verdicts of each kind it wrote.
    pub verdicts: Vec<(VerdictKind, usize)>,
    /// How many notifications it wrote, new or ended.
    pub notifications: usize,
    /// How many injections it answered anew.
    pub injections: usize,
    /// How long the command that had waited longest waited for its turn.
    pub waited: Duration,
    /// How long deciding and writing took.
    pub took: Duration,
    /// How many rows were found damaged, and left out, since the report before.
    pub damaged: usize,
    /// How much was read, written and rendered for it.
    pub work: Work,
    /// Why it failed, if it did: then nothing of it happened.
    pub failed: Option<ErrorKind>,
}

impl Report {
    pub(crate) fn of(changes: &Changes) -> Self {
        let verdicts = changes.events.iter().flat_map(|event| event.verdicts.iter());
        let kinds: Vec<_> = verdicts.filter_map(|decision| VerdictKind::parse(&decision.verdict)).collect();
        let count = |kind: VerdictKind| (kind, kinds.iter().filter(|one| **one == kind).count());
        Self {
            events: changes.events.len(),
            verdicts: VerdictKind::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect(),
            notifications: changes.notifications.len(),
            injections: changes.injections.len(),
            ..Self::default()
        }
    }
}
