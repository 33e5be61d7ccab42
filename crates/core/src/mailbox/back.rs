//! What an answer took and the model never saw comes back: in its old place, with its age, within the mailbox's bound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Desk, Effect, Mailbox};
use crate::notification::{Entry, Fate, Kind, Notification};
use crate::subscriber::SubscriberKey;
use crate::{EventId, NotificationId};

/// Which notification holds the place of each replace key, and with which event.
type Holders = BTreeMap<(SubscriberKey, u128), (NotificationId, EventId)>;

impl Mailbox {
    /// Lets what comes back wait again. News that a newer event has replaced meanwhile stays replaced; what has expired
    /// meanwhile stays gone; what the bound leaves no room for is folded at once.
    pub(super) fn take_back(&mut self, mut returned: Vec<Notification>, desk: &mut Desk) {
        if returned.is_empty() {
            return;
        }
        // The newest first: of two that hold the same place, the older gives way.
        returned.sort_by_key(|notification| Reverse(notification.sequence));
        let (mut holders, mut overtaken, mut back) = (self.holders(), BTreeSet::new(), Vec::new());
        for mut notification in returned {
            if let Kind::LeftOut(counts) = &notification.kind
                && self.pending.iter().any(|waiting| matches!(waiting.kind, Kind::LeftOut(_)))
            {
                self.left_out(desk, |left_out| left_out.add(counts));
                desk.emit(Effect::Ended(Box::new(notification), Fate::Folded));
                continue;
            }
            match drop_overtaken(&mut notification, &holders, &mut overtaken, desk) {
                Some(by) if notification.events.is_empty() => {
                    desk.emit(Effect::Ended(Box::new(notification), Fate::Replaced { by }));
                }
                _ if notification.expires <= self.now => {
                    desk.emit(Effect::Ended(Box::new(notification), Fate::Expired))
                }
                _ if matches!(notification.kind, Kind::LeftOut(_)) => self.queue(notification, desk),
                _ => {
                    hold_places(&notification, &mut holders);
                    back.push(notification);
                }
            }
        }
        self.dedupe.forget_all(&overtaken);
        self.queue_all(back, desk);
    }

    fn holders(&self) -> Holders {
        let mut holders = Holders::new();
        let held = self.batches.0.iter().map(|batch| &batch.notification);
        held.chain(&self.pending).for_each(|notification| hold_places(notification, &mut holders));
        holders
    }

    /// Puts all of them into the queue, folds what is beyond the bound, and says of the rest that it waits.
    fn queue_all(&mut self, back: Vec<Notification>, desk: &mut Desk) {
        let ids: BTreeSet<NotificationId> = back.iter().map(|notification| notification.id).collect();
        self.pending.extend(back);
        self.pending.sort_by_key(|notification| notification.sequence);
        self.fold_beyond_bound(desk);
        for notification in self.pending.iter().rev().filter(|notification| ids.contains(&notification.id)) {
            self.alarm = self.alarm.min(notification.expires);
            desk.emit(Effect::Waiting(notification.id));
        }
    }
}

fn hold_places(notification: &Notification, holders: &mut Holders) {
    let subscriber = notification.subscriber.key();
    for entry in notification.events.iter().filter(|entry| entry.replace != 0) {
        holders.entry((subscriber, entry.replace)).or_insert((notification.id, entry.event));
    }
}

/// Drops the entries of a returned notification whose place something newer holds, each as superseded, and says where
/// the last of them was overtaken.
fn drop_overtaken(
    notification: &mut Notification,
    holders: &Holders,
    overtaken: &mut BTreeSet<(EventId, SubscriberKey)>,
    desk: &mut Desk,
) -> Option<NotificationId> {
    let (subscriber, key) = (&notification.subscriber, notification.subscriber.key());
    let mut newer = None;
    notification.events.retain(|entry: &Entry| {
        let Some((id, by)) = holders.get(&(key, entry.replace)) else { return true };
        newer = Some(*id);
        overtaken.insert((entry.event, key));
        desk.emit(Effect::Superseded { event: entry.event, subscriber: subscriber.clone(), by: *by });
        false
    });
    newer
}
