//! Open batches. A batch closes when its window ends, it is full, its injection point is reached, or it is critical:
//! whichever comes first.

use serde::{Deserialize, Serialize};

use super::MailboxContext;
use crate::event::{Event, EventCause};
use crate::notification::{EventRef, Notification, NotificationKind};
use crate::subscriber::{Activation, Subscriber};
use crate::{InjectionPoint, NotificationId, Time};

/// The most open batches in a mailbox; one more closes the batch that is due first.
pub(crate) const BATCHES_MAX: usize = 32;
/// The most events in all open batches; beyond it the fullest batch closes early. With this bound the saved blob stays
/// below its limit even if every counter has its widest encoding.
pub(crate) const HELD_MAX: usize = 128;

/// The open batches, in the order they were opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batches(pub(crate) Vec<Batch>);

/// A notification that still collects events and cannot be injected yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) notification: Notification,
    pub(crate) due: Time,
}

impl Batch {
    /// Opens an empty batch for the event. It copies all settings that closing needs, so that a batch closes the same
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

    /// Adds an event. Returns the event it replaced, if any.
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

    /// Turns the batch into a pending notification: its age and time to live start now.
    pub(crate) fn close(mut self, now: Time) -> Notification {
        self.notification.since = now;
        self.notification.expires = now.plus(self.notification.ttl_ms);
        self.notification
    }
}

impl Notification {
    /// Adds an event or replaces the one with the same replace key, which is returned.
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

/// Events caused by the agent's own loop never wake a conversation.
pub(crate) fn wakes(subscriber: &Subscriber, event: &Event) -> bool {
    subscriber.output.activation == Activation::Wake && event.cause() != EventCause::Agent
}

impl Batches {
    /// The batch that the event joins. A batch opened at another priority does not match: a reload applies to later
    /// events.
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

    /// Removes and closes every batch that satisfies `ends`, in the order they were opened.
    pub(crate) fn close(&mut self, now: Time, mut ends: impl FnMut(&Batch) -> bool) -> Vec<Notification> {
        if !self.0.iter().any(&mut ends) {
            return Vec::new();
        }
        self.0.extract_if(.., |batch| ends(batch)).map(|batch| batch.close(now)).collect()
    }

    /// The batch to close early, if there are too many batches or too many events in them.
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
