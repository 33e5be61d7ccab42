//! Pending notifications: newer events replace older ones, the time to live expires them, the bound folds them.

use std::cmp::Reverse;

use super::batch::wakes;
use super::dedupe::Window;
use super::{Effect, Mailbox, MailboxContext, MailboxKind};
use crate::event::{Event, EventCause};
use crate::notification::{EndReason, EventRef, LeftOut, Notification, NotificationKind};
use crate::subscriber::{Subscriber, SubscriberId, TTL_DEFAULT_MS};
use crate::{InjectionPoint, NotificationId, Priority, Time};

/// The most pending notifications in a mailbox, besides the one that counts those left out.
pub const PENDING_MAX: usize = 200;
/// How long a person's mailbox collects counts of left-out notifications before it delivers them.
const PERSON_LEFT_OUT_MS: u64 = 10_000;

impl Notification {
    /// Adds a window's unreported repeats to its event, if this notification holds the event for the same subscriber.
    /// Several subscribers may hold one event; each counts its own repeats.
    pub(super) fn merge_repeats(&mut self, window: &Window) -> Option<NotificationId> {
        let entry = self.events.iter_mut().find(|entry| entry.event == window.of)?;
        if self.kind != NotificationKind::Events || self.subscriber.key() != window.subscriber {
            return None;
        }
        entry.merged = entry.merged.saturating_add(window.unreported());
        Some(self.id)
    }
}

impl Mailbox {
    /// Makes a notification pending; in a person's mailbox, emits it as ready instead.
    pub(super) fn queue(&mut self, notification: Notification, context: &mut MailboxContext) {
        if self.kind == MailboxKind::Person {
            context.emit(Effect::Ready(Box::new(notification)));
            return;
        }
        self.next_timer = self.next_timer.min(notification.expires);
        context.emit(Effect::Waiting(notification.id));
        // Ordered by `sequence`, as after loading: a batch may close long after a later one.
        let at = self.pending.partition_point(|other| other.sequence < notification.sequence);
        self.pending.insert(at, notification);
    }

    /// Replaces an older pending event with the same replace key, in the newest notification that has one.
    pub(super) fn replace_in_queue(
        &mut self,
        entry: EventRef,
        subscriber: &Subscriber,
        event: &Event,
        context: &mut MailboxContext,
    ) -> Option<NotificationId> {
        if entry.replace == 0 || self.kind == MailboxKind::Person {
            return None;
        }
        let holds = |notification: &Notification| {
            notification.subscriber == subscriber.id
                && notification.events.iter().any(|older| older.replace == entry.replace)
        };
        let at = self.pending.iter().rposition(holds)?;
        let holder = &mut self.pending[at];
        holder.wakes |= wakes(subscriber, event);
        holder.from_person |= event.cause() == EventCause::Person;
        // A reload may have raised the subscriber's priority since.
        if subscriber.output.priority < holder.priority {
            holder.priority = subscriber.output.priority;
            holder.inject_at = subscriber.point_for(event);
        }
        holder.expires = self.now.plus(holder.ttl_ms);
        if holder.source.as_deref().is_some_and(|source| source != event.source().as_str()) {
            holder.source = None;
        }
        let (id, older) = (holder.id, holder.put(entry));
        context.emit(Effect::Waiting(id));
        if let Some(older) = older {
            self.supersede(older, subscriber, event, context);
        }
        Some(id)
    }

    /// Reports a closed window's repeats: adds them to the event if it is still held or pending, otherwise queues an "N
    /// more times" notification, which never wakes.
    pub(super) fn report_repeats(&mut self, window: Window, context: &mut MailboxContext) {
        let mut held = self.batches.0.iter_mut().map(|batch| &mut batch.notification).chain(&mut self.pending);
        if let Some(waiting) = held.find_map(|notification| notification.merge_repeats(&window)) {
            context.emit(Effect::Waiting(waiting));
            return;
        }
        let Some(subscriber) = context.subscribers.find_by_key(window.subscriber).cloned() else {
            self.left_out(context, |left_out| left_out.repeats = left_out.repeats.saturating_add(window.unreported()));
            return;
        };
        self.sequence += 1;
        let notification = Notification {
            id: context.ids.notification(self.now),
            subscriber: subscriber.id.clone(),
            source: None,
            priority: subscriber.output.priority,
            inject_at: subscriber.output.inject_at,
            kind: NotificationKind::Repeats,
            events: vec![EventRef { event: window.of, replace: 0, merged: window.unreported() }],
            max_size: subscriber.batching.max_size as u32,
            sequence: self.sequence,
            since: self.now,
            expires: self.now.plus(subscriber.output.ttl_ms),
            ttl_ms: subscriber.output.ttl_ms,
            wakes: false,
            announced: false,
            from_person: false,
        };
        self.queue(notification, context);
    }

    /// Ends the notifications whose time to live is over; in a person's mailbox they are ready instead.
    pub(super) fn expire(&mut self, context: &mut MailboxContext) {
        let now = self.now;
        for gone in self.pending.extract_if(.., |notification| notification.expires <= now) {
            match self.kind {
                MailboxKind::Person => context.emit(Effect::Ready(Box::new(gone))),
                _ => context.emit(Effect::Ended(Box::new(gone), EndReason::Expired)),
            }
        }
    }

    pub(super) fn next_expiry(&self) -> Time {
        self.pending.iter().map(|notification| notification.expires).min().unwrap_or(Time::NEVER)
    }

    /// Whether another message of the person would exceed the bound. Every listening subscriber turns it into a
    /// notification, and messages of the person are never folded. Expired ones do not count.
    pub(super) fn is_full_of_messages(&self, message: &Event, context: &MailboxContext) -> bool {
        let now = self.now.max(context.now);
        let person = self.kind == MailboxKind::Person;
        let held = self.batches.0.iter().map(|batch| &batch.notification);
        let waits = |one: &&Notification| one.from_person && one.expires > now;
        let waiting = held.chain(&self.pending).filter(waits).count();
        let listening = context.subscribers.listening(message.kind());
        let coming = listening.filter(|subscriber| subscriber.output.audience.includes(person)).count();
        waiting > 0 && waiting + coming > PENDING_MAX
    }

    /// Folds the least urgent notifications, oldest first, until the bound is met. Messages of the person are never
    /// folded.
    pub(super) fn fold_beyond_bound(&mut self, context: &mut MailboxContext) {
        if self.pending.len() <= PENDING_MAX {
            return;
        }
        let counts = |one: &Notification| !matches!(one.kind, NotificationKind::LeftOut(_));
        let beyond = self.pending.iter().filter(|one| counts(one)).count().saturating_sub(PENDING_MAX);
        let may_fold = |one: &Notification| counts(one) && !one.from_person;
        let urgency = |one: &Notification| (Reverse(one.priority), one.sequence);
        let mut least: Vec<_> = self.pending.iter().filter(|one| may_fold(one)).map(urgency).collect();
        let Some(last) = beyond.min(least.len()).checked_sub(1) else { return };
        let last = *least.select_nth_unstable(last).1;
        let mut folded: Vec<_> = self.pending.extract_if(.., |one| may_fold(one) && urgency(one) <= last).collect();
        folded.sort_by_key(urgency);
        let count = folded.len() as u32;
        folded.into_iter().for_each(|one| context.emit(Effect::Ended(Box::new(one), EndReason::Folded)));
        self.left_out(context, |left_out| left_out.notifications = left_out.notifications.saturating_add(count));
    }

    pub(super) fn count_storm(&mut self, event: &Event, context: &mut MailboxContext) {
        let source = event.source().shared();
        self.left_out(context, |left_out| left_out.count_storm(&source, 1));
    }

    /// Counts something left out, in the one notification that reports such counts; creates it if there is none.
    pub(super) fn left_out(&mut self, context: &mut MailboxContext, count: impl FnOnce(&mut LeftOut)) {
        let existing =
            self.pending.iter_mut().find(|notification| matches!(notification.kind, NotificationKind::LeftOut(_)));
        if let Some(notification) = existing {
            if let NotificationKind::LeftOut(left_out) = &mut notification.kind {
                count(left_out);
            }
            context.emit(Effect::Waiting(notification.id));
            return;
        }
        let mut left_out = LeftOut::default();
        count(&mut left_out);
        self.sequence += 1;
        let ttl_ms = if self.kind == MailboxKind::Person { PERSON_LEFT_OUT_MS } else { TTL_DEFAULT_MS };
        let notification = Notification {
            id: context.ids.notification(self.now),
            subscriber: SubscriberId::bellwire(),
            source: Some("bellwire".into()),
            priority: Priority::High,
            inject_at: InjectionPoint::AfterTool,
            kind: NotificationKind::LeftOut(left_out),
            events: Vec::new(),
            max_size: 1,
            sequence: self.sequence,
            since: self.now,
            expires: self.now.plus(ttl_ms),
            ttl_ms,
            wakes: false,
            announced: false,
            from_person: false,
        };
        self.next_timer = self.next_timer.min(notification.expires);
        context.emit(Effect::Waiting(notification.id));
        self.pending.push(notification);
    }
}
