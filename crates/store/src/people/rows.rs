use std::collections::BTreeMap;
use std::sync::Arc;

use bellwire_core::person::PersonSettings;
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::{Delivery, InboxItem, InboxItemKind, InboxItemType, Quota, Reminder};

/// What one commit writes for people, each row once.
#[derive(Debug, Default)]
pub(crate) struct PeopleChanges {
    pub(crate) inbox: BTreeMap<NotificationId, InboxItem>,
    /// Those of the inbox that this commit adds.
    pub(crate) created: Vec<NotificationId>,
    /// The position each inbox has reached.
    pub(crate) positions: BTreeMap<Arc<str>, i64>,
    pub(crate) deliveries: BTreeMap<Uuid, Delivery>,
    pub(crate) reminders: BTreeMap<Uuid, Reminder>,
    /// None = it is used up.
    pub(crate) confirmations: BTreeMap<Arc<str>, Option<ConfirmationRow>>,
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    /// Until when each quota is used up that something was refused for. No row: it is known from those of the inbox.
    pub(crate) refused: BTreeMap<Quota, Time>,
}

impl PeopleChanges {
    /// How many rows these are.
    pub(crate) fn rows(&self) -> usize {
        let own = [self.inbox.len(), self.positions.len(), self.deliveries.len(), self.reminders.len()];
        own.into_iter().sum::<usize>() + self.confirmations.len() + self.secrets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inbox.is_empty()
            && self.positions.is_empty()
            && self.deliveries.is_empty()
            && self.reminders.is_empty()
            && self.confirmations.is_empty()
            && self.secrets.is_empty()
    }
}

/// The code that was mailed to an address, hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmationRow {
    pub(crate) address: String,
    pub(crate) code: Vec<u8>,
    pub(crate) expires_at: Time,
    pub(crate) tries: i64,
}

/// What is known of a person at first.
#[derive(Debug, Default)]
pub(crate) struct LoadedPerson {
    pub(crate) settings: PersonSettings,
    pub(crate) position: Option<i64>,
    /// What they were told within the last hour, oldest first.
    pub(crate) told: Vec<(InboxItemKind, InboxItemType, Time)>,
}
