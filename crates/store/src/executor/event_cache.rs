use std::collections::HashSet;
use std::sync::Arc;

use bellwire_core::mailbox::EventLookup;
use bellwire_core::{Event, EventId, Mailbox};

use crate::keys::KeyedMap;
use crate::packed_event::PackedEvent;

/// Below so many events nobody looks for those that are no longer needed.
const TIDY_FROM: usize = 64;
/// What an event takes besides its bytes: its name, its place, the head of its piece of memory.
const EACH: usize = 96;

/// The events a mailbox may still have to show.
#[derive(Default)]
pub(super) struct EventCache {
    events: KeyedMap<EventId, PackedEvent>,
    /// How many were needed when it was tidied last.
    needed: usize,
    bytes: usize,
}

impl EventCache {
    pub(super) fn keep(&mut self, id: EventId, packed: PackedEvent) {
        self.bytes += packed.bytes();
        if let Some(known) = self.events.insert(id, packed) {
            self.bytes -= known.bytes();
        }
    }

    pub(super) fn has(&self, id: EventId) -> bool {
        self.events.contains_key(&id)
    }

    /// How much memory the events take, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.events.len() * EACH
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Forgets what the mailbox does not refer to, once there is twice as much as it needed the last time.
    pub(super) fn drop_unreferenced(&mut self, mailbox: &Mailbox) {
        if self.events.len() <= TIDY_FROM.max(2 * self.needed) {
            return;
        }
        let kept: HashSet<EventId> = mailbox.references().collect();
        self.events.retain(|id, _| kept.contains(id));
        self.needed = self.events.len();
        self.events.shrink_to(2 * self.needed);
        self.bytes = self.events.values().map(PackedEvent::bytes).sum();
    }
}

impl EventLookup for EventCache {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        self.events.get(&id)?.unpack(id).map(Arc::new)
    }
}
