use std::collections::HashSet;
use std::sync::Arc;

use bellwire_core::mailbox::EventLookup;
use bellwire_core::{Event, EventId, Mailbox};

use crate::keys::KeyedMap;
use crate::packed_event::PackedEvent;

/// With fewer events than this, unreferenced ones are not searched for.
const TIDY_FROM: usize = 64;
/// The overhead of a cached event in bytes: its id, the map slot and the allocation header.
const EACH: usize = 96;

/// The events that a mailbox may still show.
#[derive(Default)]
pub(super) struct EventCache {
    events: KeyedMap<EventId, PackedEvent>,
    /// How many events were left after the last removal of unreferenced ones.
    needed: usize,
    bytes: usize,
    /// Events that an unfinished command has loaded and that the mailbox does not reference.
    pinned: HashSet<EventId>,
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

    /// Keeps these events until the next call, although the mailbox does not reference them.
    pub(super) fn pin(&mut self, events: impl Iterator<Item = EventId>) {
        self.pinned = events.collect();
    }

    /// The approximate memory of the events, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.events.len() * EACH
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Removes unreferenced events, once the cache has twice as many events as after the last removal.
    pub(super) fn drop_unreferenced(&mut self, mailbox: &Mailbox) {
        if self.events.len() <= TIDY_FROM.max(2 * self.needed) {
            return;
        }
        let kept: HashSet<EventId> = mailbox.references().collect();
        let pinned = &self.pinned;
        self.events.retain(|id, _| kept.contains(id) || pinned.contains(id));
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

#[cfg(test)]
mod tests {
    use bellwire_core::{Ids, MailboxKind, Severity, Time};

    use super::*;

    #[test]
    fn what_an_unfinished_command_loaded_stays_until_it_is_done() -> Result<(), Box<dyn std::error::Error>> {
        let mailbox = Mailbox::new(MailboxKind::MainAgent, [1; 16]);
        let (mut cache, mut ids) = (EventCache::default(), Ids::seeded(1));
        let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, serde_json::json!({}))?;
        let loaded: Vec<EventId> = (0..2 * TIDY_FROM).map(|_| ids.event(Time::from_millis(1_000))).collect();
        loaded.iter().for_each(|id| cache.keep(*id, PackedEvent::of(&event)));
        cache.pin(loaded.iter().copied());
        cache.drop_unreferenced(&mailbox);
        assert_eq!(cache.len(), loaded.len());
        cache.pin(std::iter::empty());
        cache.needed = 0;
        cache.drop_unreferenced(&mailbox);
        assert_eq!(cache.len(), 0);
        Ok(())
    }
}
