use std::collections::BTreeMap;
use std::sync::Arc;

use crate::notification::{EventRef, Notification, NotificationKind};
use crate::subscriber::SubscriberId;
use crate::{NotificationId, Priority};

/// One entry of a block: notifications of one subscriber and source, shown together.
#[derive(Clone, Debug)]
pub(crate) struct BlockItem {
    pub(crate) notifications: Vec<NotificationId>,
    pub(crate) subscriber: SubscriberId,
    /// The common source, else the subscriber's id.
    pub(crate) label: Arc<str>,
    pub(crate) kind: NotificationKind,
    pub(crate) priority: Priority,
    /// Empty if the item cannot be shown.
    pub(crate) events: Vec<EventRef>,
    /// The number of events including merged repeats; `None` if no repeats were merged.
    pub(crate) times: Option<u64>,
}

/// Groups ordered notifications into items. A notification joins the last item of its group if all its events fit, so
/// that no notification overtakes an older one. A subscriber with a batch size of 1 is never coalesced.
///
/// Only the first `items_max` items get their events: no others can be shown.
pub(crate) fn coalesce(notifications: &[&Notification], items_max: usize) -> Vec<BlockItem> {
    let mut items: Vec<BlockItem> = Vec::with_capacity(notifications.len());
    // The index of each group's last item, and how many more events it may hold.
    let mut last: BTreeMap<Group<'_>, (usize, usize)> = BTreeMap::new();
    for notification in notifications {
        let count = notification.events.len();
        let group = (notification.max_size > 1).then(|| Group::of(notification)).flatten();
        let open = group.as_ref().and_then(|group| last.get_mut(group)).filter(|(_, room)| count <= *room);
        match open {
            Some((at, room)) => {
                *room -= count;
                items[*at].notifications.push(notification.id);
                if *at < items_max {
                    items[*at].events.extend(&notification.events);
                }
            }
            None => {
                let room = (notification.max_size as usize).saturating_sub(count);
                last.extend(group.map(|group| (group, (items.len(), room))));
                items.push(BlockItem::of(notification, items.len() < items_max));
            }
        }
    }
    items.iter_mut().take(items_max).for_each(BlockItem::count);
    items
}

/// Notifications with the same group may share an item.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    priority: Priority,
    is_repeats: bool,
    subscriber: &'a SubscriberId,
    source: Option<&'a str>,
}

impl<'a> Group<'a> {
    /// `None` for a notification that always has an item of its own.
    fn of(notification: &'a Notification) -> Option<Self> {
        let is_repeats = match notification.kind {
            NotificationKind::Events => false,
            NotificationKind::Repeats => true,
            NotificationKind::LeftOut(_) => return None,
        };
        let Notification { priority, subscriber, source, .. } = notification;
        Some(Self { priority: *priority, is_repeats, subscriber, source: source.as_deref() })
    }
}

impl BlockItem {
    fn of(notification: &Notification, may_be_shown: bool) -> Self {
        Self {
            notifications: vec![notification.id],
            subscriber: notification.subscriber.clone(),
            label: notification.source.clone().unwrap_or_else(|| notification.subscriber.shared()),
            kind: notification.kind.clone(),
            priority: notification.priority,
            events: if may_be_shown { notification.events.clone() } else { Vec::new() },
            times: None,
        }
    }

    fn count(&mut self) {
        let merged: u64 = self.events.iter().map(|entry| u64::from(entry.merged)).sum();
        let own = if self.kind == NotificationKind::Events { self.events.len() as u64 } else { 0 };
        self.times = (merged > 0 && own + merged > 1).then_some(own + merged);
    }

    /// Whether it may be counted in a fold line `- [source] N more` if it does not fit.
    pub(crate) fn may_fold(&self) -> bool {
        matches!(self.priority, Priority::Normal | Priority::Low) && !matches!(self.kind, NotificationKind::LeftOut(_))
    }
}
