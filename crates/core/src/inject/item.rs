use std::collections::BTreeMap;
use std::sync::Arc;

use crate::notification::{EventRef, Notification, NotificationKind};
use crate::subscriber::SubscriberId;
use crate::{NotificationId, Priority};

/// One line of a block in the making: notifications of one subscriber and source, told together.
#[derive(Clone, Debug)]
pub(crate) struct BlockItem {
    pub(crate) notifications: Vec<NotificationId>,
    pub(crate) subscriber: SubscriberId,
    /// The common source, else the subscriber's id.
    pub(crate) label: Arc<str>,
    pub(crate) kind: NotificationKind,
    pub(crate) priority: Priority,
    pub(crate) events: Vec<EventRef>,
    /// How many events it stands for, where repeats were merged.
    pub(crate) times: Option<u64>,
}

/// Makes items of notifications that are already in order. One joins the last item of its subscriber and source if that
/// has room for all of its events, so that none overtakes an older one; a subscriber whose batches hold one event is
/// never coalesced.
pub(crate) fn coalesce<'a>(notifications: impl IntoIterator<Item = &'a Notification>) -> Vec<BlockItem> {
    let mut items: Vec<BlockItem> = Vec::new();
    // The last item of each group, and how many events it may hold.
    let mut last: BTreeMap<Group<'_>, (usize, usize)> = BTreeMap::new();
    for notification in notifications {
        let group = Group::of(notification);
        let open = group.as_ref().and_then(|group| last.get(group).copied());
        let open = open.filter(|(at, max_size)| items[*at].events.len() + notification.events.len() <= *max_size);
        match open {
            Some((at, _)) => {
                items[at].notifications.push(notification.id);
                items[at].events.extend(&notification.events);
            }
            None => {
                last.extend(group.map(|group| (group, (items.len(), notification.max_size as usize))));
                items.push(BlockItem::of(notification));
            }
        }
    }
    items.iter_mut().for_each(BlockItem::count);
    items
}

/// What notifications of one item have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    priority: Priority,
    is_repeats: bool,
    subscriber: &'a SubscriberId,
    source: Option<&'a str>,
}

impl<'a> Group<'a> {
    /// None for what is never told together with anything.
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
    fn of(notification: &Notification) -> Self {
        Self {
            notifications: vec![notification.id],
            subscriber: notification.subscriber.clone(),
            label: notification.source.clone().unwrap_or_else(|| notification.subscriber.shared()),
            kind: notification.kind.clone(),
            priority: notification.priority,
            events: notification.events.clone(),
            times: None,
        }
    }

    fn count(&mut self) {
        let merged: u64 = self.events.iter().map(|entry| u64::from(entry.merged)).sum();
        let own = if self.kind == NotificationKind::Events { self.events.len() as u64 } else { 0 };
        self.times = (merged > 0 && own + merged > 1).then_some(own + merged);
    }

    /// Whether it may be summed up as `- [source] N more` where it does not fit.
    pub(crate) fn may_fold(&self) -> bool {
        matches!(self.priority, Priority::Normal | Priority::Low) && !matches!(self.kind, NotificationKind::LeftOut(_))
    }
}
