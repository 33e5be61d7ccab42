//! The hourly limits of notifications to a person: which notifications count together, and up to how many.

use std::sync::Arc;

use super::{InboxItemKind, InboxItemType, NotificationContent, NotificationDraft, PeopleRules};

/// Notifications that count together. A type with its own limit does not count towards the others.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Allowance {
    /// Messages of every type that has no limit of its own.
    Messages,
    /// Reminders, if they have their own limit.
    Reminders,
    /// Notifications of type info, if they have their own limit.
    Infos,
    /// Warnings, if they have their own limit.
    Warnings,
    /// Toasts.
    Toasts,
}

/// One person's allowance and its size. The size is part of the key, so that a cached refusal is not used after the limit
/// was changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quota {
    /// The person.
    pub user_id: Arc<str>,
    /// The allowance.
    pub allowance: Allowance,
    /// The limit within any 60 minutes.
    pub per_hour: u64,
}

impl Allowance {
    /// All values.
    pub const ALL: [Self; 5] = [Self::Messages, Self::Reminders, Self::Infos, Self::Warnings, Self::Toasts];

    /// Its name in keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Reminders => "reminders",
            Self::Infos => "infos",
            Self::Warnings => "warnings",
            Self::Toasts => "toasts",
        }
    }
}

impl PeopleRules {
    /// The allowance that an item counts towards; none for the hub's own notes, which are not limited.
    pub(crate) fn allowance(&self, kind: InboxItemKind, item_type: InboxItemType) -> Option<Allowance> {
        let own = |allowance: Allowance| self.per_hour(allowance).map_or(Allowance::Messages, |_| allowance);
        match (kind, item_type) {
            (InboxItemKind::Note, _) => None,
            (InboxItemKind::Toast, _) => Some(Allowance::Toasts),
            (InboxItemKind::Message, InboxItemType::Reminder) => Some(own(Allowance::Reminders)),
            (InboxItemKind::Message, InboxItemType::Info | InboxItemType::Success) => Some(own(Allowance::Infos)),
            (InboxItemKind::Message, InboxItemType::Warning | InboxItemType::Error) => Some(own(Allowance::Warnings)),
        }
    }

    /// The quota of a call.
    pub(crate) fn quota(&self, draft: &NotificationDraft) -> Option<Quota> {
        let allowance = match &draft.content {
            NotificationContent::Message { kind, .. } => self.allowance(InboxItemKind::Message, (*kind).into()),
            NotificationContent::Toast(_) => Some(Allowance::Toasts),
        }?;
        self.quota_of(&draft.user_id.as_str().into(), allowance)
    }

    /// The person's quota for this allowance, if the allowance has a limit.
    pub(crate) fn quota_of(&self, user_id: &Arc<str>, allowance: Allowance) -> Option<Quota> {
        self.per_hour(allowance).map(|per_hour| Quota { user_id: user_id.clone(), allowance, per_hour })
    }

    /// Every quota of a person.
    pub(crate) fn quotas(&self, user_id: &str) -> Vec<Quota> {
        let user_id: Arc<str> = user_id.into();
        Allowance::ALL.into_iter().filter_map(|allowance| self.quota_of(&user_id, allowance)).collect()
    }

    fn per_hour(&self, allowance: Allowance) -> Option<u64> {
        match allowance {
            Allowance::Messages => Some(self.notifications_per_hour),
            Allowance::Reminders => self.reminders_per_hour,
            Allowance::Infos => self.infos_per_hour,
            Allowance::Warnings => self.warnings_per_hour,
            Allowance::Toasts => Some(self.toasts_per_hour),
        }
    }
}
