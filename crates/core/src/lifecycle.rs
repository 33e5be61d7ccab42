//! The states an event, a subscriber and a notification pass through, by the names traces show.
//!
//! A mailbox decides in one step what other systems do in several, so the states are not stored: they are read off the
//! verdict and what became of the notification.

use std::fmt;

use crate::verdict::VerdictKind;

/// How far an event got for one subscriber.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventState {
    /// It was admitted.
    Created,
    /// It was handed to the mailbox it is for.
    Queued,
    /// The mailbox offered it to its subscribers.
    Dispatched,
    /// It matched this subscriber.
    Filtered,
    /// It joined a batch, its own or a shared one.
    Batched,
    /// Its batch closed and became a notification.
    Formatted,
    /// An agent saw it.
    Injected,
}

/// How far a notification got.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NotificationState {
    /// It waits for its injection point.
    Pending,
    /// It went into the agent's context.
    Injected,
    /// It stays in the conversation as a system message.
    Persisted,
    /// Newer news took its place.
    Replaced,
    /// It waited too long.
    Expired,
    /// It was summed up in a line.
    Folded,
}

impl EventState {
    /// The states an event has passed through for one subscriber. `notification` is how far the notification it is part
    /// of got, once its batch has become one.
    pub fn reached(verdict: VerdictKind, notification: Option<NotificationState>) -> &'static [Self] {
        use EventState::*;
        const ALL: [EventState; 7] = [Created, Queued, Dispatched, Filtered, Batched, Formatted, Injected];
        let last = match (verdict, notification) {
            (VerdictKind::Filtered, _) => Dispatched,
            (VerdictKind::Suppressed | VerdictKind::Duplicate, _) => Filtered,
            (_, Some(NotificationState::Injected | NotificationState::Persisted | NotificationState::Folded)) => {
                Injected
            }
            (VerdictKind::Held, None) => Batched,
            (VerdictKind::Held | VerdictKind::Queued, _) => Formatted,
        };
        &ALL[..=last as usize]
    }
}

impl NotificationState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Injected, Self::Persisted, Self::Replaced, Self::Expired, Self::Folded];

    /// The states a notification has passed through to be in this one.
    pub fn reached(self) -> &'static [Self] {
        use NotificationState::*;
        match self {
            Pending => &[Pending],
            // What an agent was shown stays in its conversation: both are one commit.
            Injected | Persisted => &[Pending, Injected, Persisted],
            Folded => &[Pending, Folded],
            Replaced => &[Pending, Replaced],
            Expired => &[Pending, Expired],
        }
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Injected => "injected",
            Self::Persisted => "persisted",
            Self::Replaced => "replaced",
            Self::Expired => "expired",
            Self::Folded => "folded",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for EventState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Queued => "queued",
            Self::Dispatched => "dispatched",
            Self::Filtered => "filtered",
            Self::Batched => "batched",
            Self::Formatted => "formatted",
            Self::Injected => "injected",
        })
    }
}

impl fmt::Display for NotificationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(verdict: VerdictKind, notification: Option<NotificationState>) -> String {
        EventState::reached(verdict, notification).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_event_passes_through_the_states_in_order() {
        use VerdictKind::{Filtered, Held, Queued, Suppressed};
        let all = "created queued dispatched filtered batched formatted injected";
        assert_eq!(names(Filtered, None), "created queued dispatched");
        assert_eq!(names(Suppressed, None), "created queued dispatched filtered");
        assert_eq!(names(Held, None), "created queued dispatched filtered batched");
        assert_eq!(names(Queued, None), "created queued dispatched filtered batched formatted");
        let expired = Some(NotificationState::Expired);
        assert_eq!(names(Queued, expired), "created queued dispatched filtered batched formatted");
        assert_eq!(names(Held, Some(NotificationState::Injected)), all);
        assert_eq!(names(Queued, Some(NotificationState::Folded)), all);
    }
}
