use crate::notification::{Entry, Kind, Notification};
use crate::subscriber::SubscriberId;
use crate::{NotificationId, Priority};

/// One line of a block in the making: notifications of one subscriber and source, told together.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) notifications: Vec<NotificationId>,
    pub(crate) subscriber: SubscriberId,
    /// The common source, else the subscriber's id.
    pub(crate) label: String,
    pub(crate) kind: Kind,
    pub(crate) priority: Priority,
    pub(crate) events: Vec<Entry>,
    /// How many events it stands for, where repeats were merged.
    pub(crate) times: Option<u64>,
}

/// Makes items of notifications that are already in order. One joins the last item of its subscriber and source if that
/// has room for all of its events, so that none overtakes an older one; a subscriber whose batches hold one event is
/// never coalesced.
pub(crate) fn coalesce<'a>(notifications: impl IntoIterator<Item = &'a Notification>) -> Vec<Item> {
    let mut items: Vec<(Item, &Notification)> = Vec::new();
    for notification in notifications {
        let last = items.iter_mut().rfind(|(_, first)| alike(first, notification));
        let room = |(item, first): &&mut (Item, &Notification)| {
            item.events.len() + notification.events.len() <= first.max_size as usize
        };
        match last.filter(room) {
            Some((item, _)) => {
                item.notifications.push(notification.id);
                item.events.extend(&notification.events);
            }
            None => items.push((Item::of(notification), notification)),
        }
    }
    items.into_iter().map(|(item, _)| item.counted()).collect()
}

fn alike(one: &Notification, other: &Notification) -> bool {
    !matches!(one.kind, Kind::LeftOut(_))
        && one.kind == other.kind
        && one.priority == other.priority
        && one.subscriber == other.subscriber
        && one.source == other.source
}

impl Item {
    fn of(notification: &Notification) -> Self {
        let label = notification.source.as_deref().unwrap_or(notification.subscriber.as_str());
        Self {
            notifications: vec![notification.id],
            subscriber: notification.subscriber.clone(),
            label: label.to_owned(),
            kind: notification.kind.clone(),
            priority: notification.priority,
            events: notification.events.clone(),
            times: None,
        }
    }

    fn counted(mut self) -> Self {
        let merged: u64 = self.events.iter().map(|entry| u64::from(entry.merged)).sum();
        let own = if self.kind == Kind::News { self.events.len() as u64 } else { 0 };
        self.times = (merged > 0 && own + merged > 1).then_some(own + merged);
        self
    }

    /// Whether it may be summed up as `- [source] N more` where it does not fit.
    pub(crate) fn may_fold(&self) -> bool {
        matches!(self.priority, Priority::Normal | Priority::Low) && !matches!(self.kind, Kind::LeftOut(_))
    }
}
