//! The states of events and notifications as traces show them.
//!
//! The states are not stored. A mailbox passes through several of them in one step, so they are derived from the verdict
//! and the notification's end.

use std::fmt;

use crate::verdict::VerdictKind;

/// The states of an event for one subscriber, in order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventState {
    /// Validated and accepted.
    Created,
    /// Given to its mailbox.
    Queued,
    /// Offered to the mailbox's subscribers.
    Dispatched,
    /// Passed this subscriber's filters.
    Filtered,
    /// Added to a batch.
    Batched,
    /// Its batch closed and became a notification.
    Formatted,
    /// Shown to an agent, or counted in a line of a block.
    Injected,
}

/// The state of a notification for an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NotificationState {
    /// Waits for its injection point.
    Pending,
    /// Shown to the agent.
    Injected,
    /// Kept in the conversation as a system message.
    Persisted,
    /// All its events were superseded by newer ones.
    Replaced,
    /// Waited longer than its time to live.
    Expired,
    /// Counted in one line of a block instead of being shown.
    Folded,
}

impl EventState {
    /// The states an event has passed through for one subscriber. `notification` is the state of its notification; `None`
    /// while its batch is open.
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
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Injected, Self::Persisted, Self::Replaced, Self::Expired, Self::Folded];

    /// The states a notification has passed through, this one included.
    pub fn reached(self) -> &'static [Self] {
        use NotificationState::*;
        match self {
            Pending => &[Pending],
            // Injecting and storing the system message are one commit.
            Injected | Persisted => &[Pending, Injected, Persisted],
            Folded => &[Pending, Folded],
            Replaced => &[Pending, Replaced],
            Expired => &[Pending, Expired],
        }
    }

    /// The wire name.
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

    /// Parses a wire name.
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
