//! What an answer took and the model never saw comes back: in its old place, with its age, within the mailbox's bound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Effect, Mailbox, MailboxContext};
use crate::notification::{EndReason, EventRef, Notification, NotificationKind};
use crate::subscriber::SubscriberKey;
use crate::{EventId, NotificationId};

/// Which notification holds the place of each replace key, and with which event.
type Holders = BTreeMap<(SubscriberKey, u128), (NotificationId, EventId)>;

impl Mailbox {
    /// Lets what comes back wait again. News that a newer event has replaced meanwhile stays replaced; what has expired
    /// meanwhile stays gone; what the bound leaves no room for is folded at once.
    pub(super) fn requeue_unseen(&mut self, mut returned: Vec<Notification>, context: &mut MailboxContext) {
        if returned.is_empty() {
            return;
        }
        // The newest first: of two that hold the same place, the older gives way.
        returned.sort_by_key(|notification| Reverse(notification.sequence));
        let (mut holders, mut overtaken, mut back) = (self.holders(), BTreeSet::new(), Vec::new());
        for mut notification in returned {
            if let NotificationKind::LeftOut(counts) = &notification.kind
                && self.pending.iter().any(|waiting| matches!(waiting.kind, NotificationKind::LeftOut(_)))
            {
                self.left_out(context, |left_out| left_out.add(counts));
                context.emit(Effect::Ended(Box::new(notification), EndReason::Folded));
                continue;
            }
            match drop_superseded(&mut notification, &holders, &mut overtaken, context) {
                Some(by) if notification.events.is_empty() => {
                    context.emit(Effect::Ended(Box::new(notification), EndReason::Replaced { by }));
                }
                _ if notification.expires <= self.now => {
                    context.emit(Effect::Ended(Box::new(notification), EndReason::Expired))
                }
                _ if matches!(notification.kind, NotificationKind::LeftOut(_)) => self.queue(notification, context),
                _ => {
                    hold_places(&notification, &mut holders);
                    back.push(notification);
                }
            }
        }
        self.dedupe.forget_all(&overtaken);
        self.queue_all(back, context);
    }

    fn holders(&self) -> Holders {
        let mut holders = Holders::new();
        let held = self.batches.0.iter().map(|batch| &batch.notification);
        held.chain(&self.pending).for_each(|notification| hold_places(notification, &mut holders));
        holders
    }

    /// Puts all of them into the queue, folds what is beyond the bound, and says of the rest that it waits.
    fn queue_all(&mut self, back: Vec<Notification>, context: &mut MailboxContext) {
        let ids: BTreeSet<NotificationId> = back.iter().map(|notification| notification.id).collect();
        self.pending.extend(back);
        self.pending.sort_by_key(|notification| notification.sequence);
        self.fold_beyond_bound(context);
        for notification in self.pending.iter().rev().filter(|notification| ids.contains(&notification.id)) {
            self.next_timer = self.next_timer.min(notification.expires);
            context.emit(Effect::Waiting(notification.id));
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
fn drop_superseded(
    notification: &mut Notification,
    holders: &Holders,
    overtaken: &mut BTreeSet<(EventId, SubscriberKey)>,
    context: &mut MailboxContext,
) -> Option<NotificationId> {
    let (subscriber, key) = (&notification.subscriber, notification.subscriber.key());
    let mut newer = None;
    notification.events.retain(|entry: &EventRef| {
        let Some((id, by)) = holders.get(&(key, entry.replace)) else { return true };
        newer = Some(*id);
        overtaken.insert((entry.event, key));
        context.emit(Effect::Superseded { event: entry.event, subscriber: subscriber.clone(), by: *by });
        false
    });
    newer
}
