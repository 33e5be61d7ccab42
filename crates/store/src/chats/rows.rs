use std::collections::BTreeMap;

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::{ChatKey, ChatMessage, Pairing};

/// The rows of one commit for chats, each row once. Where a row is optional, none deletes it.
#[derive(Debug, Default)]
pub(crate) struct ChatChanges {
    pub(crate) pairings: BTreeMap<ChatKey, Option<Pairing>>,
    pub(crate) codes: BTreeMap<Vec<u8>, Option<CodeRow>>,
    pub(crate) strangers: BTreeMap<ChatKey, StrangerRow>,
    pub(crate) updates: BTreeMap<(ChannelName, i64), UpdateRow>,
    pub(crate) messages: BTreeMap<(ChatKey, i64), ChatMessageRow>,
    pub(crate) buttons: BTreeMap<Vec<u8>, ButtonRow>,
    pub(crate) kept: BTreeMap<Uuid, Option<KeptMessageRow>>,
    pub(crate) leases: BTreeMap<String, LeaseRow>,
}

impl ChatChanges {
    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        let of_chats = [self.pairings.len(), self.codes.len(), self.strangers.len(), self.updates.len()];
        let of_messages = [self.messages.len(), self.buttons.len(), self.kept.len(), self.leases.len()];
        of_chats.into_iter().chain(of_messages).sum()
    }

    /// Whether a message is to be edited.
    pub(crate) fn has_edits(&self) -> bool {
        self.messages.values().any(|row| row.edit_at.is_some())
    }
}

/// The person of a pairing code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeRow {
    pub(crate) channel: ChannelName,
    pub(crate) user_id: String,
    pub(crate) expires_at: Time,
}

/// A chat that belongs to no person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrangerRow {
    pub(crate) seen_at: Time,
    pub(crate) answered_at: Option<Time>,
    pub(crate) wrong_codes: i64,
    pub(crate) wrong_since: Time,
}

/// An update: new, or handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UpdateRow {
    /// Stored unless it is there already.
    New { body: String, received_at: Time },
    /// Its body is deleted.
    Handled { outcome: &'static str, at: Time },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatMessageRow {
    pub(crate) message: ChatMessage,
    pub(crate) edit_at: Option<Time>,
    pub(crate) edit_attempts: u32,
}

/// A button by the hash of its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ButtonRow {
    pub(crate) chat: ChatKey,
    pub(crate) user_id: String,
    pub(crate) does: ButtonAction,
    pub(crate) expires_at: Time,
    pub(crate) used_at: Option<Time>,
}

/// What a button does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ButtonAction {
    /// It presses a button of a notification.
    Press { notification_id: NotificationId, index: usize },
    /// It sends a kept message to a conversation.
    Choose { kept_id: Uuid, conversation_id: String },
}

/// A person's message without a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptMessageRow {
    pub(crate) user_id: String,
    pub(crate) chat: ChatKey,
    pub(crate) sender: String,
    pub(crate) message_id: i64,
    pub(crate) endpoint: String,
    pub(crate) thread: String,
    pub(crate) text: String,
    pub(crate) created_at: Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) holder: String,
    pub(crate) until: Time,
    pub(crate) fence: i64,
}
