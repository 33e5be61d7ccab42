//! The verdict on an event: queued, held, duplicate, filtered or suppressed, and why.
//!
//! Every event gets exactly one verdict per subscriber that listens for its type. Each verdict has a readable reason:
//! "why was the agent (not) notified?" is answered here.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EventId, NotificationId, Severity, Time};

/// The decision of one subscriber on one event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Part of a notification that waits for its injection point.
    Queued {
        /// The notification.
        notification: NotificationId,
    },
    /// Part of an open batch.
    Held {
        /// The notification the batch will become.
        notification: NotificationId,
        /// The latest time at which the batch closes.
        until: Time,
    },
    /// A repeat within the dedupe window; it is counted, and the count is shown.
    Duplicate {
        /// The event it repeats.
        of: EventId,
        /// The number of repeats so far, this one included.
        repeats: u32,
    },
    /// Excluded by the subscriber's rules.
    Filtered(Filter),
    /// Over the storm limit of its source. The next block shows how many were suppressed.
    Suppressed,
}

/// Why a subscriber that listens for an event's type excludes the event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Below the subscriber's `severity_filter`.
    Severity {
        /// The lowest severity that passes.
        wanted: Severity,
        /// The event's severity.
        given: Severity,
    },
    /// The source is not in the subscriber's `sources`.
    Source,
    /// The conversation's user disabled the subscriber.
    Disabled,
    /// A newer measurement of a budget, and no older one waits that it could replace.
    NotWaiting,
    /// The agent has read the tool's result itself.
    AgentSawIt,
}

/// A filter without its details, for records.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterKind {
    /// The event is milder than the subscriber asks for.
    Severity,
    /// The event comes from a source the subscriber does not list.
    Source,
    /// The conversation's user switched the subscriber off.
    Disabled,
    /// A newer measurement of a budget, and no older one waits that it could replace.
    NotWaiting,
    /// The agent has read the tool's result itself.
    AgentSawIt,
}

impl Filter {
    /// The filter without its details.
    pub const fn kind(&self) -> FilterKind {
        match self {
            Self::Severity { .. } => FilterKind::Severity,
            Self::Source => FilterKind::Source,
            Self::Disabled => FilterKind::Disabled,
            Self::NotWaiting => FilterKind::NotWaiting,
            Self::AgentSawIt => FilterKind::AgentSawIt,
        }
    }
}

/// A verdict without its details, for counters and stored rows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictKind {
    /// See [`Verdict::Queued`].
    Queued,
    /// See [`Verdict::Held`].
    Held,
    /// See [`Verdict::Duplicate`].
    Duplicate,
    /// See [`Verdict::Filtered`].
    Filtered,
    /// See [`Verdict::Suppressed`].
    Suppressed,
}

impl VerdictKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Held, Self::Duplicate, Self::Filtered, Self::Suppressed];

    /// The wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Held => "held",
            Self::Duplicate => "duplicate",
            Self::Filtered => "filtered",
            Self::Suppressed => "suppressed",
        }
    }

    /// Parses a wire name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Verdict {
    /// The verdict without its details.
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::Queued { .. } => VerdictKind::Queued,
            Self::Held { .. } => VerdictKind::Held,
            Self::Duplicate { .. } => VerdictKind::Duplicate,
            Self::Filtered(_) => VerdictKind::Filtered,
            Self::Suppressed => VerdictKind::Suppressed,
        }
    }

    /// The wire name: queued, held, duplicate, filtered or suppressed.
    pub const fn name(&self) -> &'static str {
        self.kind().as_str()
    }

    /// The reason as one short sentence.
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

    /// Why the subscriber does not want it, where it does not.
    pub const fn filter(&self) -> Option<FilterKind> {
        match self {
            Self::Filtered(filter) => Some(filter.kind()),
            _ => None,
        }
    }

    /// The notification of a queued or held event.
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
            Self::NotWaiting => f.write_str("a newer measurement, and no older one waits"),
            Self::AgentSawIt => f.write_str("agent_saw_it: the agent has read this result itself"),
        }
    }
}
