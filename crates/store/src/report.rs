//! What a commit did, for those who watch the store. Plain numbers: how they are shown is another's business.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::NotificationId;
use bellwire_core::verdict::VerdictKind;

use crate::error::ErrorKind;
use crate::people::InboxItem;
use crate::rows::Changes;
use crate::work::Work;

/// Hears of every commit, right after it. It is called by the writer: it must not wait for anything.
pub type Observer = Arc<dyn Fn(&CommitReport) + Send + Sync>;

/// One commit, or one group of reads that needed none; those have no commands.
#[derive(Clone, Debug, Default)]
pub struct CommitReport {
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
    /// The notifications it created for people.
    pub told: Vec<NewNotification>,
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

/// A notification that was created for a person, without what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// Its id.
    pub id: NotificationId,
    /// The person it is for.
    pub user_id: String,
    /// The authenticated name of who tells.
    pub origin: String,
    /// The conversation in which it came up.
    pub conversation_id: Option<String>,
    /// The thread of work it belongs to.
    pub correlation_id: Option<String>,
}

impl CommitReport {
    pub(crate) fn of(changes: &Changes) -> Self {
        let verdicts = changes.events.iter().flat_map(|event| event.verdicts.iter());
        let kinds: Vec<_> = verdicts.filter_map(|decision| VerdictKind::parse(&decision.verdict)).collect();
        let count = |kind: VerdictKind| (kind, kinds.iter().filter(|one| **one == kind).count());
        Self {
            events: changes.events.len(),
            verdicts: VerdictKind::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect(),
            notifications: changes.notifications.len(),
            injections: changes.injections.len(),
            told: changes.people.created.iter().filter_map(|id| changes.people.inbox.get(id)).map(created).collect(),
            ..Self::default()
        }
    }
}

fn created(item: &InboxItem) -> NewNotification {
    NewNotification {
        id: item.id,
        user_id: item.user_id.clone(),
        origin: item.origin.clone(),
        conversation_id: item.conversation_id.clone(),
        correlation_id: item.correlation_id.clone(),
    }
}
