use std::collections::BTreeMap;
use std::sync::Arc;

use bellwire_core::person::{ChannelName, PersonSettings};
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::{Delivery, DirectMessage, InboxItem, InboxItemKind, InboxItemType, Quota, Reminder};
use crate::chats::ChatChanges;

/// The rows of one commit for people, each row once.
#[derive(Debug, Default)]
pub(crate) struct PeopleChanges {
    pub(crate) inbox: BTreeMap<NotificationId, InboxItem>,
    /// The inbox items that this commit adds.
    pub(crate) created: Vec<NotificationId>,
    /// The position each inbox has reached.
    pub(crate) positions: BTreeMap<Arc<str>, i64>,
    pub(crate) deliveries: BTreeMap<Uuid, Delivery>,
    /// The texts of new direct deliveries.
    pub(crate) direct_messages: BTreeMap<Uuid, DirectMessage>,
    pub(crate) reminders: BTreeMap<Uuid, Reminder>,
    /// By person and channel; none = the code is used up.
    pub(crate) confirmations: BTreeMap<(Arc<str>, ChannelName), Option<ConfirmationRow>>,
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    pub(crate) chats: ChatChanges,
    /// The quotas for which a call was refused, each with the time it is used up until. Not a row: the inbox rows imply it.
    pub(crate) refused: BTreeMap<Quota, Time>,
}

impl PeopleChanges {
    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        let own = [self.inbox.len(), self.positions.len(), self.deliveries.len(), self.reminders.len()];
        let plans = self.direct_messages.len() + self.confirmations.len() + self.secrets.len();
        own.into_iter().sum::<usize>() + plans + self.chats.rows()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inbox.is_empty()
            && self.positions.is_empty()
            && self.deliveries.is_empty()
            && self.reminders.is_empty()
            && self.confirmations.is_empty()
            && self.secrets.is_empty()
            && self.chats.rows() == 0
    }
}

/// The hash of the code that was sent to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmationRow {
    pub(crate) target: String,
    pub(crate) code: Vec<u8>,
    pub(crate) expires_at: Time,
    pub(crate) tries: i64,
}

/// A person's data as it is loaded from the database.
#[derive(Debug, Default)]
pub(crate) struct LoadedPerson {
    pub(crate) settings: PersonSettings,
    pub(crate) position: Option<i64>,
    /// The inbox items of the last hour, oldest first.
    pub(crate) sent: Vec<(InboxItemKind, InboxItemType, Time)>,
}
