//! The states an event, a subscriber and a notification pass through, by the names traces show.
//!
//! A mailbox decides in one step what other systems do in several, so the states are not stored: they are read off the
//! verdict and what became of the notification.

use std::fmt;

use crate::Verdict;
use crate::notification::Fate;

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
    /// The states an event has passed through for one subscriber. `fate` is what became of its notification so far.
    pub fn reached(verdict: &Verdict, fate: Option<&Fate>) -> &'static [Self] {
        use EventState::*;
        const ALL: [EventState; 7] = [Created, Queued, Dispatched, Filtered, Batched, Formatted, Injected];
        let last = match (verdict, fate) {
            (Verdict::Filtered(_), _) => Dispatched,
            (Verdict::Suppressed | Verdict::Duplicate { .. }, _) => Filtered,
            (_, Some(Fate::Injected | Fate::Folded)) => Injected,
            (Verdict::Held { .. }, None) => Batched,
            (Verdict::Held { .. } | Verdict::Queued { .. }, _) => Formatted,
        };
        &ALL[..=last as usize]
    }
}

impl NotificationState {
    /// The states a notification has passed through.
    pub fn reached(fate: Option<&Fate>) -> &'static [Self] {
        use NotificationState::*;
        match fate {
            None => &[Pending],
            Some(Fate::Injected) => &[Pending, Injected, Persisted],
            Some(Fate::Folded) => &[Pending, Folded],
            Some(Fate::Replaced { .. }) => &[Pending, Replaced],
            Some(Fate::Expired) => &[Pending, Expired],
        }
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
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Injected => "injected",
            Self::Persisted => "persisted",
            Self::Replaced => "replaced",
            Self::Expired => "expired",
            Self::Folded => "folded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NotificationId, Time};

    fn names(verdict: &Verdict, fate: Option<&Fate>) -> String {
        EventState::reached(verdict, fate).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_event_passes_through_the_states_in_order() {
        let notification = NotificationId(uuid::Uuid::nil());
        let held = Verdict::Held { notification, until: Time::ZERO };
        let queued = Verdict::Queued { notification };
        let all = "created queued dispatched filtered batched formatted injected";
        assert_eq!(names(&Verdict::Filtered(crate::verdict::Filter::Source), None), "created queued dispatched");
        assert_eq!(names(&Verdict::Suppressed, None), "created queued dispatched filtered");
        assert_eq!(names(&held, None), "created queued dispatched filtered batched");
        assert_eq!(names(&queued, None), "created queued dispatched filtered batched formatted");
        assert_eq!(names(&queued, Some(&Fate::Expired)), "created queued dispatched filtered batched formatted");
        assert_eq!(names(&held, Some(&Fate::Injected)), all);
        assert_eq!(names(&queued, Some(&Fate::Folded)), all);
    }
}
