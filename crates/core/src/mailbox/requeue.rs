//! Requeues notifications that an injection took and the model never saw: at their old position, with their age, within
//! the mailbox's bound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Effect, Mailbox, MailboxContext};
use crate::notification::{EndReason, EventRef, Notification, NotificationKind};
use crate::subscriber::SubscriberKey;
use crate::{EventId, NotificationId};

/// For each replace key, the newest notification that holds it and the event it holds.
type Holders = BTreeMap<(SubscriberKey, u128), (NotificationId, EventId)>;

impl Mailbox {
    /// Makes returned notifications pending again. Events replaced by a newer one meanwhile stay replaced; expired
    /// notifications end; those beyond the bound are folded at once.
    pub(super) fn requeue_unseen(&mut self, mut returned: Vec<Notification>, context: &mut MailboxContext) {
        if returned.is_empty() {
            return;
        }
        // Newest first: of two notifications with the same replace key, the older loses its event.
        returned.sort_by_key(|notification| Reverse(notification.sequence));
        let (mut holders, mut superseded, mut back) = (self.holders(), BTreeSet::new(), Vec::new());
        for mut notification in returned {
            if let NotificationKind::LeftOut(counts) = &notification.kind
                && self.pending.iter().any(|waiting| matches!(waiting.kind, NotificationKind::LeftOut(_)))
            {
                self.left_out(context, |left_out| left_out.add(counts));
                context.emit(Effect::Ended(Box::new(notification), EndReason::Folded));
                continue;
            }
            match drop_superseded(&mut notification, &holders, &mut superseded, context) {
                Some(by) if notification.events.is_empty() => {
                    context.emit(Effect::Ended(Box::new(notification), EndReason::Replaced { by }));
                }
                _ if notification.expires <= self.now => {
                    context.emit(Effect::Ended(Box::new(notification), EndReason::Expired))
                }
                _ if matches!(notification.kind, NotificationKind::LeftOut(_)) => self.queue(notification, context),
                _ => {
                    record_replace_keys(&notification, &mut holders);
                    back.push(notification);
                }
            }
        }
        self.dedupe.forget_all(&superseded);
        self.queue_all(back, context);
    }

    fn holders(&self) -> Holders {
        let mut holders = Holders::new();
        let held = self.batches.0.iter().map(|batch| &batch.notification);
        held.chain(&self.pending).for_each(|notification| record_replace_keys(notification, &mut holders));
        holders
    }

    /// Adds all of them to the queue, folds those beyond the bound, and emits [`Effect::Waiting`] for the rest.
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

fn record_replace_keys(notification: &Notification, holders: &mut Holders) {
    let subscriber = notification.subscriber.key();
    for entry in notification.events.iter().filter(|entry| entry.replace != 0) {
        holders.entry((subscriber, entry.replace)).or_insert((notification.id, entry.event));
    }
}

/// Drops the events that a newer one replaced and emits [`Effect::Superseded`] for each. Returns the notification that
/// holds the newer event of the last one dropped.
fn drop_superseded(
    notification: &mut Notification,
    holders: &Holders,
    superseded: &mut BTreeSet<(EventId, SubscriberKey)>,
    context: &mut MailboxContext,
) -> Option<NotificationId> {
    let (subscriber, key) = (&notification.subscriber, notification.subscriber.key());
    let mut newer = None;
    notification.events.retain(|entry: &EventRef| {
        let Some((id, by)) = holders.get(&(key, entry.replace)) else { return true };
        newer = Some(*id);
        superseded.insert((entry.event, key));
        context.emit(Effect::Superseded { event: entry.event, subscriber: subscriber.clone(), by: *by });
        false
    });
    newer
}
