//! Counts of each commit, for metrics and logs.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::NotificationId;
use bellwire_core::verdict::VerdictKind;

use crate::error::ErrorKind;
use crate::people::InboxItem;
use crate::rows::Changes;
use crate::work::Work;

/// Called by the writer right after every commit. It must not block.
pub type Observer = Arc<dyn Fn(&CommitReport) + Send + Sync>;

/// One commit, or one group of reads that needed none; those have no commands.
#[derive(Clone, Debug, Default)]
pub struct CommitReport {
    /// How many commands it contained.
    pub commands: usize,
    /// How many events it stored, including those of detectors and observed calls.
    pub events: usize,
    /// How many verdicts of each kind it wrote.
    pub verdicts: Vec<(VerdictKind, usize)>,
    /// How many notifications it wrote, new or ended.
    pub notifications: usize,
    /// How many injections it answered, without replays.
    pub injections: usize,
    /// The notifications it created for people.
    pub new_notifications: Vec<NewNotification>,
    /// The templates that failed; the notifications they rendered are in the built-in form.
    pub template_failures: Vec<FailedTemplate>,
    /// How long the oldest command waited in the queue.
    pub waited: Duration,
    /// How long deciding and writing took.
    pub took: Duration,
    /// How many damaged rows were found and skipped since the previous report.
    pub damaged: usize,
    /// The work done for it.
    pub work: Work,
    /// Why it failed, if it did. Then it changed nothing.
    pub failed: Option<ErrorKind>,
}

/// A template that failed on the events of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTemplate {
    /// The id of its subscriber.
    pub subscriber: Arc<str>,
    /// Whether the subscriber is loaded. A removed one may still have pending notifications.
    pub is_loaded: bool,
    /// Why it failed; contains no values of events.
    pub error: String,
}

/// A notification created for a person, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// Its id.
    pub id: NotificationId,
    /// The person it is for.
    pub user_id: String,
    /// The authenticated origin.
    pub origin: String,
    /// The conversation it comes from.
    pub conversation_id: Option<String>,
    /// The correlation id.
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
            new_notifications: changes
                .people
                .created
                .iter()
                .filter_map(|id| changes.people.inbox.get(id))
                .map(created)
                .collect(),
            template_failures: changes.template_failures.clone(),
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
