//! Counts of each commit, for metrics and logs.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::NotificationId;
use bellwire_core::inject::estimate_tokens;
use bellwire_core::notification::EndReason;
use bellwire_core::verdict::VerdictKind;

use crate::error::ErrorKind;
use crate::people::{DeliveryState, InboxItem};
use crate::rows::{Changes, InjectionRow};
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
    /// What these injections showed.
    pub injected: Injected,
    /// The verdicts and shown notifications of each subscriber.
    pub subscribers: Vec<SubscriberCounts>,
    /// How many deliveries ended in each state.
    pub ended_deliveries: Vec<(DeliveryState, usize)>,
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

/// What injections showed to agents.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    /// Items, without those folded into counting lines.
    pub items: usize,
    /// The estimated tokens of their texts.
    pub tokens: usize,
    /// The estimated tokens that merging repeats has saved: each would have been as long as the average event that is shown.
    pub saved_tokens: usize,
}

/// The counts of one subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberCounts {
    /// Its id.
    pub subscriber: Arc<str>,
    /// Its verdicts, in the order of [`VerdictKind::ALL`].
    pub verdicts: [usize; 5],
    /// Its notifications that were shown to agents.
    pub injected: usize,
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
        let subscribers = subscriber_counts(changes);
        let all = |at: usize| subscribers.iter().map(|one| one.verdicts[at]).sum::<usize>();
        let verdicts = VerdictKind::ALL.into_iter().enumerate().map(|(at, kind)| (kind, all(at)));
        Self {
            events: changes.events.len(),
            verdicts: verdicts.filter(|(_, count)| *count > 0).collect(),
            injected: changes.injections.iter().fold(Injected::default(), Injected::with),
            ended_deliveries: ended_deliveries(changes),
            subscribers,
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

impl Injected {
    fn with(self, row: &InjectionRow) -> Self {
        let tokens: usize = row.messages.iter().map(|message| estimate_tokens(&message.content)).sum();
        let events = row.taken.iter().flat_map(|notification| &notification.events);
        let (shown, merged) = events.fold((0, 0), |(shown, merged), one| (shown + 1, merged + one.merged as usize));
        Self {
            items: self.items + row.answer.showing,
            tokens: self.tokens + tokens,
            saved_tokens: self.saved_tokens + (tokens * merged).checked_div(shown).unwrap_or(0),
        }
    }
}

/// The counts of each subscriber in a commit. There are few subscribers, so that a list is searched faster than a map.
fn subscriber_counts(changes: &Changes) -> Vec<SubscriberCounts> {
    let mut all: Vec<SubscriberCounts> = Vec::new();
    for decision in changes.events.iter().flat_map(|event| event.verdicts.iter()) {
        let at = VerdictKind::ALL.iter().position(|kind| kind.as_str() == decision.verdict);
        if let Some(at) = at {
            counts_of(&mut all, &decision.subscriber).verdicts[at] += 1;
        }
    }
    for row in changes.notifications.values().filter(|row| row.end_reason == Some(EndReason::Injected)) {
        counts_of(&mut all, &row.notification.subscriber.shared()).injected += 1;
    }
    all
}

fn counts_of<'a>(all: &'a mut Vec<SubscriberCounts>, subscriber: &Arc<str>) -> &'a mut SubscriberCounts {
    let at = all.iter().position(|one| one.subscriber == *subscriber).unwrap_or_else(|| {
        all.push(SubscriberCounts { subscriber: subscriber.clone(), verdicts: [0; 5], injected: 0 });
        all.len() - 1
    });
    &mut all[at]
}

fn ended_deliveries(changes: &Changes) -> Vec<(DeliveryState, usize)> {
    let ended = || changes.people.deliveries.values().filter(|row| row.ended_at.is_some());
    let count = |state: DeliveryState| (state, ended().filter(|row| row.state == state).count());
    match ended().next() {
        Some(_) => DeliveryState::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect(),
        None => Vec::new(),
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
