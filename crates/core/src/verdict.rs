//! Why an event was told, held, counted or left out.
//!
//! Every event ends in exactly one verdict per subscriber that listens for its type, and every verdict carries a
//! reason a person can read: "why was I (not) told?" is answered here.

use std::borrow::Cow;
use std::fmt;

use crate::{EventId, NotificationId, Severity, Time};

/// What one event came to for one subscriber.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits for its injection point.
    Queued {
        /// The notification it is part of.
        notification: NotificationId,
    },
    /// It is in a batch that is still open.
    Held {
        /// The notification the batch will become.
        notification: NotificationId,
        /// When the batch closes at the latest.
        until: Time,
    },
    /// It repeats an earlier event, is counted, and the count is told.
    Duplicate {
        /// The event it repeats.
        of: EventId,
        /// How many repeats there have been, this one included.
        repeats: u32,
    },
    /// The subscriber does not want it.
    Filtered(Filter),
    /// It came in a storm; the next block says how many did.
    Suppressed,
}

/// Why a subscriber that listens for an event's type does not want the event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// It is milder than the subscriber asks for.
    Severity {
        /// The mildest severity that passes.
        wanted: Severity,
        /// The event's.
        given: Severity,
    },
    /// It comes from a source the subscriber does not list.
    Source,
    /// The conversation's user switched the subscriber off.
    Disabled,
}

/// A verdict without its details, for counting and for records.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictKind {
    /// It waits for its injection point.
    Queued,
    /// It is in a batch that is still open.
    Held,
    /// It repeats an earlier event.
    Duplicate,
    /// The subscriber does not want it.
    Filtered,
    /// It came in a storm.
    Suppressed,
}

impl VerdictKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Held, Self::Duplicate, Self::Filtered, Self::Suppressed];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Held => "held",
            Self::Duplicate => "duplicate",
            Self::Filtered => "filtered",
            Self::Suppressed => "suppressed",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Verdict {
    /// Which of the five it is.
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::Queued { .. } => VerdictKind::Queued,
            Self::Held { .. } => VerdictKind::Held,
            Self::Duplicate { .. } => VerdictKind::Duplicate,
            Self::Filtered(_) => VerdictKind::Filtered,
            Self::Suppressed => VerdictKind::Suppressed,
        }
    }

    /// The word for it: queued, held, duplicate, filtered or suppressed.
    pub const fn name(&self) -> &'static str {
        self.kind().as_str()
    }

    /// The reason, as one short sentence.
    pub fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::Queued { .. } => "waits for its injection point".into(),
            Self::Held { until, .. } => format!("held in a batch until {until} at the latest").into(),
            Self::Duplicate { of, repeats } => {
                format!("repeat {repeats} of event {of} within the dedupe window").into()
            }
            Self::Filtered(filter) => filter.to_string().into(),
            Self::Suppressed => "its source sends too many events; the next block says how many".into(),
        }
    }

    /// The notification it is part of, where there is one.
    pub const fn notification(&self) -> Option<NotificationId> {
        match self {
            Self::Queued { notification } | Self::Held { notification, .. } => Some(*notification),
            _ => None,
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Severity { wanted, given } => write!(f, "severity {given} is below the subscriber's {wanted}"),
            Self::Source => f.write_str("the subscriber does not listen to this source"),
            Self::Disabled => f.write_str("the conversation's user disabled this subscriber"),
        }
    }
}
