//! A newer measurement of a budget replaces the older one that waits, so that an agent is never shown an old state.

use super::{Effect, Mailbox, MailboxContext};
use crate::event::Event;
use crate::notification::Notification;
use crate::subscriber::Subscriber;
use crate::verdict::{Filter, Verdict};

impl Mailbox {
    /// Whether a newer event could replace one that is held or pending.
    pub(super) fn holds_replaceable(&self) -> bool {
        self.waiting().any(|notification| notification.events.iter().any(|entry| entry.replace != 0))
    }

    /// Publishes the measurement to the subscribers that hold an older one; drops it if there are none. It makes no new
    /// notification, because each threshold is reported once.
    pub(super) fn remeasure(&mut self, measured: Event, observed: &Event, context: &mut MailboxContext) {
        let subscribers = context.subscribers.clone();
        if !subscribers.listening(measured.kind()).any(|subscriber| self.holds_older(subscriber, &measured)) {
            return;
        }
        let measured = self.named(measured, observed, context);
        context.emit(Effect::Remeasured(measured.clone()));
        let mut listening = 0;
        for subscriber in subscribers.listening(measured.kind()) {
            listening += 1;
            if !subscriber.output.audience.includes(false) {
                continue;
            }
            let verdict = match self.holds_older(subscriber, &measured) {
                true => {
                    let key = self.dedupe_key(subscriber, &measured);
                    self.place(key, subscriber, &measured, context)
                }
                false => Verdict::Filtered(Filter::NotWaiting),
            };
            let (event, subscriber) = (measured.id(), subscriber.id.clone());
            context.emit(Effect::Verdict { event, subscriber, verdict, hint: None });
        }
        let unmatched = (subscribers.len() - listening) as u32;
        context.emit(Effect::Decided { event: measured.id(), unmatched });
    }

    /// Whether the subscriber holds an older event that this one replaces. An event with the payload of the one it holds
    /// is not newer.
    fn holds_older(&self, subscriber: &Subscriber, event: &Event) -> bool {
        let replace = self.replace_key(subscriber, event);
        let holds = |notification: &Notification| {
            notification.subscriber == subscriber.id && notification.events.iter().any(|older| older.replace == replace)
        };
        let is_known = || self.dedupe_key(subscriber, event).is_some_and(|key| self.dedupe.is_open(key, self.now));
        replace != 0 && self.waiting().any(holds) && !is_known()
    }

    /// The notifications of open batches and the pending ones.
    fn waiting(&self) -> impl Iterator<Item = &Notification> {
        self.batches.0.iter().map(|batch| &batch.notification).chain(&self.pending)
    }
}
