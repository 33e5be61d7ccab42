use bellwire_core::{NotificationId, Time};

use super::ChatKey;
use crate::people::InboxItem;

/// A message of a chat, sent by the hub or by the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// The chat.
    pub chat: ChatKey,
    /// Its id in the chat.
    pub message_id: i64,
    /// The person whose chat it was.
    pub user_id: String,
    /// The conversation that an answer to it belongs to.
    pub conversation_id: Option<String>,
    /// The origin; none = the person wrote it, or it has several.
    pub origin: Option<String>,
    /// The notification whose buttons it shows.
    pub notification_id: Option<NotificationId>,
    /// When it was sent or received.
    pub at: Time,
}

/// A button of a notification, to be shown in a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewButton {
    /// The hash of its token.
    pub token: Vec<u8>,
    /// The chat.
    pub chat: ChatKey,
    /// The person.
    pub user_id: String,
    /// The notification.
    pub notification_id: NotificationId,
    /// Which button of the notification it is.
    pub index: usize,
}

/// A message whose notification was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageEdit {
    /// The message.
    pub message: ChatMessage,
    /// The notification with what was done; none = it is gone.
    pub item: Option<InboxItem>,
}

/// The outcome of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditEnd {
    /// The message shows it, or never can.
    Done,
    /// It is tried again.
    TryAgain {
        /// The delay that the provider asks for.
        retry_after_ms: Option<u64>,
        /// Random bits, for the delay.
        jitter: u64,
    },
}
