use std::collections::BTreeMap;

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use super::InboxItem;
use super::inbox::words;

/// The sending of one notification over one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its id.
    pub id: Uuid,
    /// What is delivered.
    pub content: DeliveryContent,
    /// The recipient.
    pub user_id: String,
    /// The channel.
    #[serde(deserialize_with = "channel_of_any_version")]
    pub channel: ChannelName,
    /// The address in the channel.
    pub target: String,
    /// The current state.
    pub state: DeliveryState,
    /// Why it is held while waiting, if it is. Kept when it is sent later.
    pub held_by: Option<Hold>,
    /// The reason of the state, for people.
    pub reason: Option<String>,
    /// The number of attempts.
    pub attempts: u32,
    /// It is not sent before this time.
    pub not_before: Time,
    /// When the current worker's lease ends.
    pub lease_until: Option<Time>,
    /// Incremented by every claim. An outcome reported with an older fence is ignored.
    pub fence: i64,
    /// The id of the message it is part of; the same on every attempt.
    #[serde(rename = "letter_id")]
    pub message_id: Option<Uuid>,
    /// What was sent of it so far, in the channel's own form; none = nothing.
    #[serde(default)]
    pub progress: Option<String>,
    /// When it was planned.
    pub created_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
}

/// How many deliveries of one notification are listed with it. There is one per channel.
pub const DELIVERIES_PER_ITEM_MAX: usize = 10;

/// The content of a delivery.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeliveryContent {
    /// A notification of the person's inbox.
    Notification(NotificationId),
    /// A message with its own text, which is sent alone. The notification is its item in the person's inbox.
    Direct(NotificationId),
    /// The code that confirms the address.
    ConfirmationCode,
}

/// The text of a message that an agent sends on one channel. It may be longer than its item in the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectMessage {
    /// The authenticated origin.
    pub origin: String,
    /// The subject, where the channel has one.
    pub subject: Option<String>,
    /// The text.
    pub message: String,
    /// Whether the operator's list must allow the target to this origin, because the origin does not work for the recipient.
    pub needs_allowance: bool,
}

/// Why a waiting delivery is held.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Hold {
    /// The person's quiet hours.
    QuietHours,
}

/// The state of a delivery.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeliveryState {
    /// It waits for `not_before`.
    Waiting,
    /// A worker has claimed it.
    Claimed,
    /// A worker has started an attempt.
    Started,
    /// The receiving server accepted it.
    Sent,
    /// It was refused permanently, or all attempts failed.
    Failed,
    /// It was sent without a reply, so that it may have arrived. It is not retried automatically.
    Unknown,
    /// It was no longer wanted when it was due.
    Skipped,
    /// It was cancelled.
    Cancelled,
}

words! {
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

/// A message claimed by a worker: one or more deliveries to one person and target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The id of the message, the same on every attempt.
    pub message_id: Uuid,
    /// The fence of this claim.
    pub fence: i64,
    /// The recipient.
    pub user_id: String,
    /// The channel.
    pub channel: ChannelName,
    /// The address in the channel.
    pub target: String,
    /// The content.
    pub purpose: Purpose,
    /// The titles of the items' conversations, by id; untitled ones are missing.
    pub titles: BTreeMap<String, String>,
    /// The recipient's time zone, by its IANA name.
    pub timezone: Option<String>,
    /// What earlier attempts have sent of it.
    pub progress: Option<String>,
    /// When the message was first claimed: its date on every attempt.
    pub created_at: Time,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// These notifications, oldest first.
    Notifications(Vec<InboxItem>),
    /// A message with its own text, and its item in the person's inbox.
    Direct(Box<InboxItem>, DirectMessage),
    /// The code that confirms the address; it is made when the attempt starts.
    Confirmation,
}

/// The waiting deliveries of one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingDeliveries {
    /// The channel.
    pub channel: ChannelName,
    /// How many wait.
    pub count: usize,
    /// The earliest time at which one may be sent.
    pub oldest: Time,
}

/// The start of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    /// The id of the message.
    pub message_id: Uuid,
    /// The fence of the claim.
    pub fence: i64,
    /// The hash of the code in it, if it confirms an address.
    pub code: Option<Vec<u8>>,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// The id of the message.
    pub message_id: Uuid,
    /// The fence of the claim.
    pub fence: i64,
    /// The outcome.
    pub outcome: AttemptOutcome,
    /// 64 random bits that spread the retries of deliveries that failed together.
    pub jitter: u64,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The receiving server accepted it.
    Sent,
    /// It was refused permanently.
    Refused {
        /// The server's reason.
        reason: String,
    },
    /// It was refused permanently because the target does not exist or the person has blocked the sender. Nothing more can
    /// be sent there.
    Unreachable {
        /// The server's reason.
        reason: String,
    },
    /// It was not sent; a retry may succeed.
    TryAgain {
        /// Why it was not sent.
        reason: String,
        /// The delay that the server asked for.
        retry_after_ms: Option<u64>,
    },
    /// A part of it was sent.
    Partial {
        /// The notifications that were sent whole.
        sent: Vec<NotificationId>,
        /// Where to continue in one that was sent in part, in the channel's own form.
        progress: Option<String>,
        /// What became of the others.
        rest: Box<Self>,
    },
    /// The attempt was not started, because the channel's pacing had no slot in time or the hub stops.
    NotStarted {
        /// Why not.
        reason: String,
        /// The delay until there may be a slot.
        retry_after_ms: u64,
    },
    /// The hub stopped before it was sent. It does not count as an attempt.
    Interrupted,
    /// It was sent and no reply came.
    Unknown {
        /// What happened.
        reason: String,
    },
}

/// Remembered answers of earlier versions have the channel with a capital letter.
fn channel_of_any_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ChannelName, D::Error> {
    let name = String::deserialize(deserializer)?;
    ChannelName::parse(&name.to_ascii_lowercase()).map_err(D::Error::custom)
}

impl DeliveryContent {
    /// The notification, if it is one.
    pub fn notification_id(self) -> Option<NotificationId> {
        match self {
            Self::Notification(id) | Self::Direct(id) => Some(id),
            Self::ConfirmationCode => None,
        }
    }

    /// Whether it is sent alone, with its own text.
    pub(crate) fn is_direct(self) -> bool {
        matches!(self, Self::Direct(_))
    }

    /// From the columns of a row: no notification id means a confirmation.
    pub(crate) fn of_row(notification_id: Option<NotificationId>, is_direct: bool) -> Self {
        match (notification_id, is_direct) {
            (None, _) => Self::ConfirmationCode,
            (Some(id), false) => Self::Notification(id),
            (Some(id), true) => Self::Direct(id),
        }
    }
}

impl Delivery {
    /// Whether quiet hours hold it back.
    pub(crate) fn is_held(&self) -> bool {
        self.state == DeliveryState::Waiting && self.held_by == Some(Hold::QuietHours)
    }

    /// The next time at which it needs work: it may be sent, or its lease ends.
    pub(crate) fn due_at(&self) -> Option<Time> {
        match self.state {
            DeliveryState::Waiting => Some(self.not_before),
            DeliveryState::Claimed | DeliveryState::Started => self.lease_until,
            _ => None,
        }
    }

    /// Whether a worker has claimed or started it.
    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.state, DeliveryState::Claimed | DeliveryState::Started)
    }

    /// Whether that lease has ended.
    pub(crate) fn has_lapsed(&self, now: Time) -> bool {
        self.is_leased() && self.lease_until.is_none_or(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_answer_of_an_earlier_version_is_read() {
        let older = r#"{"id": "0198c0de-0000-7000-8000-000000000000", "content": "ConfirmationCode", "user_id": "ada",
            "channel": "Email", "target": "ada@example.org", "state": "Waiting", "held_by": null, "reason": null,
            "attempts": 0, "not_before": 5, "lease_until": null, "fence": 0, "letter_id": null, "created_at": 5,
            "ended_at": null}"#;
        let delivery: Delivery = serde_json::from_str(older).expect("an older answer");
        assert_eq!(delivery.channel.as_str(), "email");
        let again = serde_json::to_string(&delivery).expect("it is JSON");
        assert_eq!(serde_json::from_str::<Delivery>(&again).expect("an answer of this version"), delivery);
    }
}
