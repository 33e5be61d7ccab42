use bellwire_core::person::{MessageType, SettingsChange, ShowNotification};
use bellwire_core::{NotificationId, Time};
use serde::{Deserialize, Serialize};

use crate::command::{Caller, IdempotencyKey};

/// A notification to send to a person.
#[derive(Clone, Debug)]
pub struct NotificationDraft {
    /// The caller.
    pub caller: Caller,
    /// The recipient.
    pub user_id: String,
    /// The authenticated origin.
    pub origin: String,
    /// The conversation it comes from.
    pub conversation_id: Option<String>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// The content.
    pub content: NotificationContent,
    /// The idempotency key of this call.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// The content of a notification to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationContent {
    /// A message that stays until it is read.
    Message {
        /// Its type.
        kind: MessageType,
        /// The text.
        message: String,
    },
    /// A toast, which is also in the inbox.
    Toast(ShowNotification),
}

/// The result of sending a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SendResult {
    /// It is in the inbox.
    #[serde(rename = "Told")]
    Stored {
        /// Its id.
        id: NotificationId,
        /// When it is due.
        at: Time,
    },
    /// The hourly limit is reached.
    Limited {
        /// After how long the next one is allowed.
        retry_after_seconds: u64,
    },
}

/// A person of whom the hub has something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPerson {
    /// The id.
    pub id: String,
    /// When a conversation of the person was last seen.
    pub last_seen_at: Option<Time>,
    /// How many notifications are unread; counted up to [`UNREAD_COUNTED_MAX`].
    pub unread: usize,
}

/// A list of people counts unread notifications up to this number.
pub const UNREAD_COUNTED_MAX: usize = 100;

/// A reminder to store.
#[derive(Clone, Debug)]
pub struct NewReminder {
    /// The caller.
    pub caller: Caller,
    /// The recipient.
    pub user_id: String,
    /// The authenticated origin.
    pub origin: String,
    /// The conversation it comes from.
    pub conversation_id: Option<String>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// The text.
    pub message: String,
    /// When it is due.
    pub at: Time,
    /// The idempotency key of this call.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A change of a person's settings.
#[derive(Clone, Debug)]
pub struct SettingsRequest {
    /// The person.
    pub user_id: String,
    /// What to change.
    pub change: SettingsChange,
}
