//! Bounds the executor's memory. Evicted state is in the database and is loaded again when a command needs it.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::Executor;
use crate::keys::KeyedMap;
use crate::rows::{ConversationKey, MailboxKey};

/// The maximum number of mailboxes in memory, not counting pinned ones.
const HOT_MAX: usize = 20_000;

impl Executor {
    /// Sets the maximum memory of the mailboxes.
    pub(crate) fn keeping(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Pins the mailboxes that the last command has loaded: it needs another step and would otherwise load them again.
    pub(crate) fn pin_loaded(&mut self) -> Vec<MailboxKey> {
        let mut keys = std::mem::take(&mut self.loaded);
        let mut seen = KeyedMap::default();
        keys.retain(|key| seen.insert(key.clone(), ()).is_none());
        for key in &keys {
            *self.pinned.entry(key.clone()).or_default() += 1;
        }
        keys
    }

    /// Unpins the mailboxes of a command that is decided again or has ended.
    pub(crate) fn unpin(&mut self, keys: Vec<MailboxKey>) {
        for key in keys {
            if let Some(commands) = self.pinned.get_mut(&key) {
                *commands -= 1;
                if *commands == 0 {
                    self.pinned.remove(&key);
                }
            }
        }
    }

    /// If the bound is exceeded, evicts the least recently used mailboxes until half of the bound is left.
    pub(super) fn evict_over_bound(&mut self) {
        // Reading a conversation or a person's settings fills these caches without loading a mailbox.
        if self.conversations.len() > 2 * HOT_MAX {
            let pinned: HashSet<&ConversationKey> = self.pinned.keys().filter_map(MailboxKey::conversation).collect();
            self.conversations.retain(|key, _| pinned.contains(key));
            self.names.clear();
        }
        if self.preferences.len() > HOT_MAX || self.people.len() > HOT_MAX {
            self.evict_people();
        }
        if self.hot_mailboxes.len().saturating_sub(self.pinned.len()) > HOT_MAX || self.is_heavy() {
            self.evict_least_recent();
        }
    }

    /// Whether the mailboxes exceed the memory bound. They are summed up only after enough bytes were added.
    fn is_heavy(&mut self) -> bool {
        if self.unweighed <= self.cache_bytes / 8 {
            return false;
        }
        self.unweighed = 0;
        self.hot_mailboxes.values().map(|hot_mailbox| hot_mailbox.bytes()).sum::<usize>() > self.cache_bytes
    }

    fn evict_least_recent(&mut self) {
        let free = self.hot_mailboxes.iter().filter(|(key, _)| !self.pinned.contains_key(key));
        let mut free: Vec<_> = free.map(|(_, hot_mailbox)| (Reverse(hot_mailbox.used), hot_mailbox.bytes())).collect();
        free.sort_unstable();
        let mut bytes = 0;
        // A mailbox that does not fit is evicted alone; older ones that fit stay.
        free.retain(|(_, more)| {
            let fits = bytes + more <= self.cache_bytes / 2;
            bytes += if fits { *more } else { 0 };
            fits
        });
        let latest: HashSet<u64> = free.iter().take(HOT_MAX / 2).map(|(Reverse(used), _)| *used).collect();
        let pinned = &self.pinned;
        self.hot_mailboxes.retain(|key, hot_mailbox| latest.contains(&hot_mailbox.used) || pinned.contains_key(key));
        let kept: HashSet<&ConversationKey> = self.hot_mailboxes.keys().filter_map(MailboxKey::conversation).collect();
        self.conversations.retain(|key, _| kept.contains(key));
        self.names.retain(|_, key| key.conversation().is_some_and(|conversation| kept.contains(conversation)));
        self.evict_people();
    }

    /// Evicts the settings and limits of people, except owners of pinned mailboxes.
    fn evict_people(&mut self) {
        let pinned: HashSet<&Arc<str>> = self.pinned.keys().map(MailboxKey::owner).collect();
        self.preferences.retain(|user_id, _| pinned.contains(user_id));
        self.people.retain(|user_id, _| pinned.contains(user_id));
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::{Event, Randomness, Severity, Subscribers, Time};
    use serde_json::json;

    use super::*;
    use crate::command::{Caller, IncomingEvent, Publish};
    use crate::executor::Publishing;
    use crate::memory::Memory;
    use crate::people::PeopleRules;

    const CACHE_BYTES: usize = 256 * 1024;

    /// Publishes a large event in a conversation of its own.
    async fn publish(
        executor: &mut Executor,
        rows: &mut Memory,
        number: u32,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let payload = json!({ "tool_name": number, "error_message": "x".repeat(CACHE_BYTES / 18) });
        let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, payload)?;
        let event = event.in_conversation(&format!("chat-{number}"));
        let events = vec![IncomingEvent::new(event, None)];
        let publish = Publish { caller: Caller::user("ada"), events, idempotency_key: None };
        executor.begin_command();
        executor.publish(&mut Publishing::new(publish), rows).await?;
        executor.build_rows();
        executor.committed();
        Ok(())
    }

    #[tokio::test]
    async fn few_mailboxes_of_many_events_go_too_the_oldest_first() -> Result<(), Box<dyn std::error::Error>> {
        let post =
            Executor::new(Subscribers::bundled().into(), Randomness::repeatable(1), PeopleRules::default().into());
        let mut post = post.keeping(CACHE_BYTES);
        let mut rows = Memory::default();
        post.set_now(Time::from_millis(1_000));
        for number in 0..20 {
            publish(&mut post, &mut rows, number).await?;
            let bytes: usize = post.hot_mailboxes.values().map(|hot_mailbox| hot_mailbox.bytes()).sum();
            assert!(bytes <= CACHE_BYTES * 9 / 8 + CACHE_BYTES / 18, "{bytes} after {number}");
        }
        let hot = |number: u32| {
            let conversation = ConversationKey::new("ada", &format!("chat-{number}"));
            post.hot_mailboxes.contains_key(&MailboxKey::new(&conversation, "main"))
        };
        assert!(hot(19) && !hot(0));
        Ok(())
    }

    #[tokio::test]
    async fn a_command_that_needs_another_step_keeps_its_own_mailboxes_and_no_others()
    -> Result<(), Box<dyn std::error::Error>> {
        let mut executor =
            Executor::new(Subscribers::bundled().into(), Randomness::repeatable(1), PeopleRules::default().into())
                .keeping(CACHE_BYTES);
        let mut rows = Memory::default();
        executor.set_now(Time::from_millis(1_000));
        let mailbox = |number: u32| MailboxKey::new(&ConversationKey::new("ada", &format!("chat-{number}")), "main");
        publish(&mut executor, &mut rows, 0).await?;
        executor.begin_command();
        executor.load_mailbox(&mailbox(0), &mut rows).await?;
        let pins = executor.pin_loaded();
        assert_eq!(pins, [mailbox(0)]);
        for number in 1..40 {
            publish(&mut executor, &mut rows, number).await?;
        }
        let bytes: usize = executor.hot_mailboxes.values().map(|hot_mailbox| hot_mailbox.bytes()).sum();
        assert!(bytes <= CACHE_BYTES * 9 / 8 + CACHE_BYTES / 18, "{bytes}");
        assert!(executor.hot_mailboxes.contains_key(&mailbox(0)), "it is needed");
        executor.unpin(pins);
        for number in 40..80 {
            publish(&mut executor, &mut rows, number).await?;
        }
        assert!(!executor.hot_mailboxes.contains_key(&mailbox(0)) && executor.pinned.is_empty());
        Ok(())
    }
}
