//! How much a person may be told within any 60 minutes: what counts together, and up to how much.

use std::sync::Arc;

use super::{InboxItemKind, InboxItemType, NotificationContent, NotificationDraft, PeopleRules};

/// What counts together. A type with a limit of its own neither uses up nor waits for the room of the others.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Allowance {
    /// Messages of every type that has no limit of its own.
    Messages,
    /// Reminders, where they have one.
    Reminders,
    /// News, where it has one.
    Infos,
    /// Warnings, where they have one.
    Warnings,
    /// Toasts.
    Toasts,
}

/// One person's allowance and how large it is. The size is part of the name: what was found of another size says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quota {
    /// Whose.
    pub user_id: Arc<str>,
    /// Of what.
    pub allowance: Allowance,
    /// How many within any 60 minutes.
    pub per_hour: u64,
}

impl Allowance {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Messages, Self::Reminders, Self::Infos, Self::Warnings, Self::Toasts];

    /// A word for it.
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
    /// What something counts towards; none = what the hub says of itself, which needs no room.
    pub(crate) fn allowance(&self, kind: InboxItemKind, level: InboxItemType) -> Option<Allowance> {
        let own = |allowance: Allowance| self.per_hour(allowance).map_or(Allowance::Messages, |_| allowance);
        match (kind, level) {
            (InboxItemKind::Note, _) => None,
            (InboxItemKind::Toast, _) => Some(Allowance::Toasts),
            (InboxItemKind::Message, InboxItemType::Reminder) => Some(own(Allowance::Reminders)),
            (InboxItemKind::Message, InboxItemType::Info | InboxItemType::Success) => Some(own(Allowance::Infos)),
            (InboxItemKind::Message, InboxItemType::Warning | InboxItemType::Error) => Some(own(Allowance::Warnings)),
        }
    }

    /// The quota that a call asks for a place in.
    pub(crate) fn quota(&self, draft: &NotificationDraft) -> Option<Quota> {
        let allowance = match &draft.content {
            NotificationContent::Message { kind, .. } => self.allowance(InboxItemKind::Message, (*kind).into()),
            NotificationContent::Toast(_) => Some(Allowance::Toasts),
        }?;
        self.quota_of(&draft.user_id.as_str().into(), allowance)
    }

    /// The quota of a person that this allowance is, where it is in force.
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
