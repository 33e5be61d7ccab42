use bellwire_core::person::{MessageType, SettingsChange, ShowNotification};
use bellwire_core::{NotificationId, Time};
use serde::{Deserialize, Serialize};

use crate::command::{Caller, IdempotencyKey};

/// Something an agent tells a person.
#[derive(Clone, Debug)]
pub struct NotificationDraft {
    /// On whose behalf it is asked.
    pub caller: Caller,
    /// Who is told.
    pub user_id: String,
    /// The authenticated name of who tells.
    pub origin: String,
    /// In which conversation it came up.
    pub conversation_id: Option<String>,
    /// The thread of work it belongs to.
    pub correlation_id: Option<String>,
    /// What is said.
    pub content: NotificationContent,
    /// The caller's name for this very call.
    pub once: Option<IdempotencyKey>,
}

/// What is said, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationContent {
    /// A message that stays until it is read.
    Message {
        /// What sort it is.
        kind: MessageType,
        /// What it says.
        message: String,
    },
    /// Something that appears now, and is in the inbox as well.
    Toast(ShowNotification),
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SendResult {
    /// It is in the inbox.
    #[serde(rename = "Told")]
    Stored {
        /// Its name.
        id: NotificationId,
        /// When.
        at: Time,
    },
    /// The person was told as much as may be within an hour.
    Limited {
        /// When there is room for another.
        retry_after_seconds: u64,
    },
}

/// Something to be told later.
#[derive(Clone, Debug)]
pub struct NewReminder {
    /// On whose behalf it is asked.
    pub caller: Caller,
    /// Who is told.
    pub user_id: String,
    /// The authenticated name of who asks.
    pub origin: String,
    /// In which conversation it came up.
    pub conversation_id: Option<String>,
    /// The thread of work it belongs to.
    pub correlation_id: Option<String>,
    /// What it says.
    pub message: String,
    /// When.
    pub at: Time,
    /// The caller's name for this very call.
    pub once: Option<IdempotencyKey>,
}

/// What a person wants to be otherwise.
#[derive(Clone, Debug)]
pub struct SettingsRequest {
    /// Whose settings.
    pub user_id: String,
    /// What to change.
    pub change: SettingsChange,
}
