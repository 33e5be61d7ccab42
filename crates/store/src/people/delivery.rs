use std::collections::BTreeMap;

use bellwire_core::{NotificationId, Time};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::InboxItem;
use super::inbox::words;

/// One way of a notification out of the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its name.
    pub id: Uuid,
    /// What is delivered.
    pub content: DeliveryContent,
    /// To whom.
    pub user_id: String,
    /// By which way.
    pub channel: Channel,
    /// Where to.
    pub target: String,
    /// Where it stands.
    pub state: DeliveryState,
    /// What holds it back while it waits; none where nothing does.
    pub held_by: Option<Hold>,
    /// Why it stands there, in words.
    pub reason: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
    /// It goes out no earlier.
    pub not_before: Time,
    /// Until when it is somebody's.
    pub lease_until: Option<Time>,
    /// Counts the claims: whoever brings an older number is too late.
    pub fence: i64,
    /// The letter it went into; the same on every attempt.
    pub letter_id: Option<Uuid>,
    /// When it was planned.
    pub created_at: Time,
    /// When it came to its end.
    pub ended_at: Option<Time>,
}

/// What a delivery carries.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeliveryContent {
    /// A notification of the person's inbox.
    Notification(NotificationId),
    /// The code that confirms the address.
    ConfirmationCode,
}

/// By which way something leaves the hub.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Channel {
    /// Mail.
    Email,
    /// Telegram.
    Telegram,
}

/// What holds a waiting delivery back.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Hold {
    /// The person's quiet hours.
    QuietHours,
}

/// Where a delivery stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeliveryState {
    /// For its time.
    Waiting,
    /// Somebody will try it.
    Claimed,
    /// Somebody tries it.
    Started,
    /// It was taken by the other side.
    Sent,
    /// It was refused for good, or too often.
    Failed,
    /// It went out and no answer came: sent or not, nobody knows, and nobody sends it again by itself.
    Unknown,
    /// It was no longer wanted when its time came.
    Skipped,
    /// Somebody gave it up.
    Cancelled,
}

words! {
    Channel { Email = "email", Telegram = "telegram", }
    Hold { QuietHours = "quiet_hours", }
    DeliveryState {
        Waiting = "waiting",
        Claimed = "claimed",
        Started = "started",
        Sent = "sent",
        Failed = "failed",
        Unknown = "unknown",
        Skipped = "skipped",
        Cancelled = "cancelled",
    }
}

/// A letter that somebody has promised to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The letter's name, the same on every attempt.
    pub letter_id: Uuid,
    /// The number of this claim.
    pub fence: i64,
    /// To whom.
    pub user_id: String,
    /// By which way.
    pub channel: Channel,
    /// Where to.
    pub target: String,
    /// What it says.
    pub purpose: Purpose,
    /// What the conversations it is from are called, by their ids; one that has no name is not among them.
    pub titles: BTreeMap<String, String>,
    /// The zone in which the person reads times.
    pub timezone: Option<String>,
    /// When the letter was made: its date on every attempt.
    pub created_at: Time,
}

/// What a letter is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// These notifications, oldest first.
    News(Vec<InboxItem>),
    /// The code that confirms the address; it is made when the attempt starts.
    Confirmation,
}

/// An attempt that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    /// The letter.
    pub letter_id: Uuid,
    /// The number of the claim.
    pub fence: i64,
    /// The hash of the code in it, if it confirms an address.
    pub code: Option<Vec<u8>>,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// The letter.
    pub letter_id: Uuid,
    /// The number of the claim.
    pub fence: i64,
    /// What is known.
    pub outcome: AttemptOutcome,
    /// 64 random bits, so that what failed together does not come back together.
    pub jitter: u64,
}

/// What is known of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The other side has it.
    Sent,
    /// The other side will not have it, and asking again would change nothing.
    Refused {
        /// What it said.
        reason: String,
    },
    /// It was not sent, and may be later.
    TryAgain {
        /// Why not now.
        reason: String,
        /// How long the other side wants to be left alone.
        retry_after_ms: Option<u64>,
    },
    /// It went out and no answer came.
    Unknown {
        /// What happened.
        reason: String,
    },
}

impl DeliveryContent {
    /// The notification, if it is one.
    pub fn notification_id(self) -> Option<NotificationId> {
        match self {
            Self::Notification(id) => Some(id),
            Self::ConfirmationCode => None,
        }
    }

    /// As it is kept: a row without a notification is a code.
    pub(crate) fn of_row(notification_id: Option<NotificationId>) -> Self {
        notification_id.map_or(Self::ConfirmationCode, Self::Notification)
    }
}

impl Delivery {
    /// Whether quiet hours hold it back.
    pub(crate) fn is_held(&self) -> bool {
        self.state == DeliveryState::Waiting && self.held_by == Some(Hold::QuietHours)
    }

    /// When something has to be done about it: it may be sent, or its lease ends.
    pub(crate) fn due_at(&self) -> Option<Time> {
        match self.state {
            DeliveryState::Waiting => Some(self.not_before),
            DeliveryState::Claimed | DeliveryState::Started => self.lease_until,
            _ => None,
        }
    }

    /// Whether somebody has promised to try it, or tries it.
    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.state, DeliveryState::Claimed | DeliveryState::Started)
    }
}
