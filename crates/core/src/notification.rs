//! A message ready for its audience, and what can become of it.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::subscriber::SubscriberId;
use crate::{EventId, InjectionPoint, NotificationId, Priority, Time};

/// A notification that waits. It names its events and does not carry them: payloads are rows of their own, and the
/// words are found only when it is shown, with the counts of that moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// Its name, minted when its first event came.
    pub id: NotificationId,
    /// The subscriber that speaks.
    #[serde(with = "subscriber_id")]
    pub subscriber: SubscriberId,
    /// The one source all its events have; none where they differ.
    pub source: Option<Arc<str>>,
    /// Its place in the queue.
    pub priority: Priority,
    /// Where it enters the context.
    pub inject_at: InjectionPoint,
    /// What it stands for.
    pub kind: Kind,
    /// The events, in order of arrival.
    pub events: Vec<Entry>,
    /// The most events one item of a block may stand for.
    pub max_size: u32,
    /// The order in which mailboxes opened it; ties of priority go by it.
    pub sequence: u64,
    /// When it became pending.
    pub since: Time,
    /// When it expires.
    pub expires: Time,
    /// How long it may wait, for when its clock restarts.
    pub ttl_ms: u64,
    /// Whether it wakes an idle conversation.
    pub wakes: bool,
    /// Whether the conversation's stream was told of it already.
    pub announced: bool,
    /// Whether it is the person's own word, which is never dropped.
    pub from_person: bool,
}

/// What a notification stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Its events, as the subscriber's template words them.
    News,
    /// Repeats of an event that was told before; each entry's `merged` says how many.
    Repeats,
    /// What did not fit into the mailbox.
    LeftOut(LeftOut),
}

/// One event of a notification.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The event.
    pub event: EventId,
    /// The key under which a newer event takes its place; 0 = none does.
    #[serde(with = "hash_bytes")]
    pub replace: u128,
    /// How many repeats of it were counted.
    pub merged: u32,
}

/// How much a mailbox could not keep. Counts only ever grow until they are told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Notifications that made room for others.
    pub notifications: u32,
    /// Events refused in a storm, by source; at most [`LeftOut::SOURCES_MAX`] of them.
    pub storms: Vec<(Arc<str>, u32)>,
    /// Events refused in a storm from any other source.
    pub other_storms: u32,
    /// Repeats of news whose subscriber is gone.
    pub repeats: u32,
}

impl LeftOut {
    /// The most sources named; more are summed up.
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

    /// The one line that tells it.
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

/// `1 event`, `2 events`.
pub(crate) fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

impl Notification {
    /// How many events it stands for, repeats included.
    pub fn stands_for(&self) -> u64 {
        let own = u64::from(self.kind == Kind::News);
        self.events.iter().map(|entry| own + u64::from(entry.merged)).sum()
    }
}

/// What became of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It went into the agent's context.
    Injected,
    /// It was counted in a line of a block, `- [source] N more`, or in the line that says what did not fit.
    Folded,
    /// Newer events took the place of all of its events.
    Replaced {
        /// The notification the last of them went to.
        by: NotificationId,
    },
    /// It waited longer than its time to live.
    Expired,
}

impl Fate {
    /// The word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Folded => "folded",
            Self::Replaced { .. } => "replaced",
            Self::Expired => "expired",
        }
    }

    /// The reason, as one short sentence.
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

/// A hash is 16 bytes wherever it is saved: as a number it would take up to 19.
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
