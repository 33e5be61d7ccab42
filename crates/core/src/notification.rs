//! Notifications, and how they end.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::subscriber::SubscriberId;
use crate::{EventId, InjectionPoint, NotificationId, Priority, Time};

/// A notification that is held in a batch or pending. It refers to its events by id; it is rendered only when it is shown,
/// with the repeat counts of that time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// The id, assigned with its first event.
    pub id: NotificationId,
    /// The subscriber whose template renders it.
    #[serde(with = "subscriber_id")]
    pub subscriber: SubscriberId,
    /// The common source of its events; `None` if they differ.
    pub source: Option<Arc<str>>,
    /// The first sort key of the queue.
    pub priority: Priority,
    /// The injection point at which it is taken.
    pub inject_at: InjectionPoint,
    /// What `events` means.
    pub kind: NotificationKind,
    /// The events in order of arrival.
    pub events: Vec<EventRef>,
    /// The maximum number of events in one item of a block.
    pub max_size: u32,
    /// A counter of the mailbox; the second sort key of the queue, so older notifications come first.
    pub sequence: u64,
    /// When it became pending.
    pub since: Time,
    /// When it expires.
    pub expires: Time,
    /// The time to live; a replaced event restarts it.
    pub ttl_ms: u64,
    /// Whether it wakes an idle conversation.
    pub wakes: bool,
    /// Whether a wake hint for it was sent.
    pub announced: bool,
    /// Whether it is a message of the person. Such a notification is never folded.
    pub from_person: bool,
}

/// What a notification shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotificationKind {
    /// Its events, rendered by the subscriber's template.
    Events,
    /// Repeats of an event that was shown before; each entry's `merged` is their number.
    Repeats,
    /// Counts of what the mailbox dropped.
    LeftOut(LeftOut),
}

/// A reference to one event of a notification.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRef {
    /// The event.
    pub event: EventId,
    /// The hash of the replace key. A newer event with the same hash supersedes this one; 0 = no replace key.
    #[serde(with = "hash_bytes")]
    pub replace: u128,
    /// The number of repeats merged into it.
    pub merged: u32,
}

/// Counts of what a mailbox dropped since they were last shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Notifications folded because the mailbox was full.
    pub notifications: u32,
    /// Suppressed events by source, for at most [`LeftOut::SOURCES_MAX`] sources.
    pub storms: Vec<(Arc<str>, u32)>,
    /// Suppressed events of all other sources.
    pub other_storms: u32,
    /// Repeats whose subscriber no longer exists.
    pub repeats: u32,
}

impl LeftOut {
    /// The maximum number of sources counted separately.
    pub const SOURCES_MAX: usize = 5;

    pub(crate) fn count_storm(&mut self, source: &Arc<str>, events: u32) {
        if let Some((_, count)) = self.storms.iter_mut().find(|(known, _)| known == source) {
            *count = count.saturating_add(events);
        } else if self.storms.len() < Self::SOURCES_MAX {
            self.storms.push((source.clone(), events));
        } else {
            self.other_storms = self.other_storms.saturating_add(events);
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.notifications = self.notifications.saturating_add(other.notifications);
        other.storms.iter().for_each(|(source, events)| self.count_storm(source, *events));
        self.other_storms = self.other_storms.saturating_add(other.other_storms);
        self.repeats = self.repeats.saturating_add(other.repeats);
    }

    /// The counts as one line of text.
    pub fn message(&self) -> String {
        let mut parts = Vec::new();
        if self.notifications > 0 {
            parts.push(format!("{} (too many waited)", counted(self.notifications, "notification")));
        }
        let storm = |events: u32, source: &str| format!("{} from {source} (a storm)", counted(events, "event"));
        parts.extend(self.storms.iter().map(|(source, events)| storm(*events, source)));
        if self.other_storms > 0 {
            parts.push(storm(self.other_storms, "other sources"));
        }
        if self.repeats > 0 {
            parts.push(format!("{} of earlier news", counted(self.repeats, "repeat")));
        }
        parts.join(" and ")
    }
}

/// A count with its noun: `1 event`, `2 events`.
pub(crate) fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

impl Notification {
    /// The number of events it represents, repeats included.
    pub fn event_count(&self) -> u64 {
        let own = u64::from(self.kind == NotificationKind::Events);
        self.events.iter().map(|entry| own + u64::from(entry.merged)).sum()
    }
}

/// How a notification ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Shown to the agent.
    Injected,
    /// Counted in a line of a block (`- [source] N more`) or in the overflow line.
    Folded,
    /// All its events were superseded by newer ones.
    Replaced {
        /// The notification that contains the last newer event.
        by: NotificationId,
    },
    /// Waited longer than its time to live.
    Expired,
}

impl EndReason {
    /// The wire name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Folded => "folded",
            Self::Replaced { .. } => "replaced",
            Self::Expired => "expired",
        }
    }

    /// The reason as one short sentence.
    pub fn reason(&self) -> String {
        match self {
            Self::Injected => "shown to the agent".into(),
            Self::Folded => "counted in one line, because more waited than fits".into(),
            Self::Replaced { by } => format!("newer events took its place in {by}"),
            Self::Expired => "it waited longer than its time to live".into(),
        }
    }
}

mod subscriber_id {
    use super::*;

    pub(super) fn serialize<S: Serializer>(id: &SubscriberId, serializer: S) -> Result<S::Ok, S::Error> {
        id.as_str().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SubscriberId, D::Error> {
        Ok(SubscriberId::saved(&String::deserialize(deserializer)?))
    }
}

/// Serializes a hash as 16 bytes; postcard's variable-length integer would take up to 19. 0 becomes `None`.
pub(crate) mod hash_bytes {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(hash: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        match hash {
            0 => None,
            _ => Some(hash.to_le_bytes()),
        }
        .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        Ok(Option::<[u8; 16]>::deserialize(deserializer)?.map_or(0, u128::from_le_bytes))
    }
}
