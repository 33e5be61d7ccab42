//! Hold until the window elapses, the batch is full, its point is reached, or it is critical: whichever comes first.

use serde::{Deserialize, Serialize};

use super::MailboxContext;
use crate::event::{Event, EventCause};
use crate::notification::{EventRef, Notification, NotificationKind};
use crate::subscriber::{Activation, Subscriber};
use crate::{InjectionPoint, NotificationId, Time};

/// The most batches a mailbox holds open; the one due first closes early for the next.
pub(crate) const BATCHES_MAX: usize = 32;
/// The most events all open batches hold together; beyond it the fullest closes early. So many fit into the blob even
/// where every counter of every window is as wide as a counter can be.
pub(crate) const HELD_MAX: usize = 128;

/// The open batches, in the order they were opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batches(pub(crate) Vec<Batch>);

/// A notification in the making: it holds events, but nobody can take it yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) notification: Notification,
    pub(crate) due: Time,
}

impl Batch {
    /// Opens a batch with its first event. All that closing needs is written down now, so that a batch closes the same
    /// way after its subscriber was reloaded or removed.
    pub(crate) fn open(
        subscriber: &Subscriber,
        event: &Event,
        sequence: u64,
        context: &mut MailboxContext,
        now: Time,
    ) -> Self {
        let notification = Notification {
            id: context.ids.notification(now),
            subscriber: subscriber.id.clone(),
            source: Some(event.source().shared()),
            priority: subscriber.output.priority,
            inject_at: subscriber.point_for(event),
            kind: NotificationKind::Events,
            events: Vec::with_capacity(1),
            max_size: subscriber.batching.max_size as u32,
            sequence,
            since: now,
            expires: Time::NEVER,
            ttl_ms: subscriber.output.ttl_ms,
            wakes: false,
            announced: false,
            from_person: false,
        };
        Self { notification, due: now.plus(subscriber.batching.window_ms) }
    }

    /// Adds an event, or puts it in the place of the one it replaces; gives back the replaced one.
    pub(crate) fn take(&mut self, entry: EventRef, subscriber: &Subscriber, event: &Event) -> Option<EventRef> {
        let notification = &mut self.notification;
        notification.wakes |= wakes(subscriber, event);
        notification.from_person |= event.cause() == EventCause::Person;
        if notification.source.as_deref().is_some_and(|source| source != event.source().as_str()) {
            notification.source = None;
        }
        notification.put(entry)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.notification.events.len() >= self.notification.max_size as usize
    }

    /// The notification, from now on waiting for its point.
    pub(crate) fn close(mut self, now: Time) -> Notification {
        self.notification.since = now;
        self.notification.expires = now.plus(self.notification.ttl_ms);
        self.notification
    }
}

impl Notification {
    /// Adds an event, or puts it in the place of the one with the same replace key.
    pub(crate) fn put(&mut self, entry: EventRef) -> Option<EventRef> {
        let older = self.events.iter_mut().find(|older| entry.replace != 0 && older.replace == entry.replace);
        match older {
            Some(older) => Some(std::mem::replace(older, entry)),
            None => {
                self.events.push(entry);
                None
            }
        }
    }
}

/// Only what the world or the person did may wake a conversation, never the agent's own loop.
pub(crate) fn wakes(subscriber: &Subscriber, event: &Event) -> bool {
    subscriber.output.activation == Activation::Wake && event.cause() != EventCause::Agent
}

impl Batches {
    /// The batch an event joins. One that was opened at another priority is not it: a reload counts for later events.
    pub(crate) fn find(&mut self, subscriber: &Subscriber, point: InjectionPoint) -> Option<usize> {
        let joins = |one: &Notification| {
            one.inject_at == point && one.priority == subscriber.output.priority && one.subscriber == subscriber.id
        };
        self.0.iter().position(|batch| joins(&batch.notification))
    }

    pub(crate) fn next_due(&self) -> Time {
        self.0.iter().map(|batch| batch.due).min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn held(&self) -> usize {
        self.0.iter().map(|batch| batch.notification.events.len()).sum()
    }

    /// Takes out every batch that satisfies `ends`, in the order they were opened.
    pub(crate) fn close(&mut self, now: Time, mut ends: impl FnMut(&Batch) -> bool) -> Vec<Notification> {
        if !self.0.iter().any(&mut ends) {
            return Vec::new();
        }
        self.0.extract_if(.., |batch| ends(batch)).map(|batch| batch.close(now)).collect()
    }

    /// The batch that closes early when a bound is reached: too many batches, or too many events in them.
    pub(crate) fn beyond_bounds(&self) -> Option<NotificationId> {
        let batch = if self.0.len() > BATCHES_MAX {
            self.0.iter().min_by_key(|batch| batch.due)
        } else if self.held() > HELD_MAX {
            self.0.iter().max_by_key(|batch| batch.notification.events.len())
        } else {
            None
        };
        batch.map(|batch| batch.notification.id)
    }
}
