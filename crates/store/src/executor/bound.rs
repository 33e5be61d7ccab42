//! How much stays in memory. Whatever goes is in the store, and comes back when somebody asks for it.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::Executor;
use crate::rows::{ConversationKey, MailboxKey};

/// The most mailboxes kept in memory.
const HOT_MAX: usize = 20_000;

impl Executor {
    /// Sets how many bytes mailboxes take in memory.
    pub(crate) fn keeping(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Lets the mailboxes that were not used for longest go, half of what there may be, once there is too much.
    pub(super) fn evict_over_bound(&mut self) {
        if self.keeps_all {
            return;
        }
        // Looking at a conversation or a person's settings makes no mailbox hot, but is remembered too.
        if self.conversations.len() > 2 * HOT_MAX {
            self.conversations.clear();
            self.names.clear();
        }
        if self.preferences.len() > HOT_MAX {
            self.preferences.clear();
        }
        if self.people.len() > HOT_MAX {
            self.people.clear();
        }
        if self.hot_mailboxes.len() > HOT_MAX || self.is_heavy() {
            self.evict_least_recent();
        }
    }

    /// Whether the mailboxes take too much. They are weighed when enough has come in to make a difference.
    fn is_heavy(&mut self) -> bool {
        if self.unweighed <= self.cache_bytes / 8 {
            return false;
        }
        self.unweighed = 0;
        self.hot_mailboxes.values().map(|hot_mailbox| hot_mailbox.bytes()).sum::<usize>() > self.cache_bytes
    }

    fn evict_least_recent(&mut self) {
        let mut hot_mailboxes: Vec<_> =
            self.hot_mailboxes.values().map(|hot_mailbox| (Reverse(hot_mailbox.used), hot_mailbox.bytes())).collect();
        hot_mailboxes.sort_unstable();
        let mut bytes = 0;
        // One that is too large goes by itself, and not with all that are older.
        hot_mailboxes.retain(|(_, more)| {
            let fits = bytes + more <= self.cache_bytes / 2;
            bytes += if fits { *more } else { 0 };
            fits
        });
        let latest: HashSet<u64> = hot_mailboxes.iter().take(HOT_MAX / 2).map(|(Reverse(used), _)| *used).collect();
        self.hot_mailboxes.retain(|_, hot_mailbox| latest.contains(&hot_mailbox.used));
        let kept: HashSet<&ConversationKey> = self.hot_mailboxes.keys().filter_map(MailboxKey::conversation).collect();
        self.conversations.retain(|key, _| kept.contains(key));
        self.names.retain(|_, key| key.conversation().is_some_and(|conversation| kept.contains(conversation)));
        self.preferences.clear();
        self.people.clear();
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::{Event, Randomness, Severity, Subscribers, Time};
    use serde_json::json;

    use super::*;
    use crate::command::{Caller, Incoming, Publish};
    use crate::executor::Publishing;
    use crate::memory::Memory;
    use crate::people::PeopleRules;

    const CACHE_BYTES: usize = 256 * 1024;

    #[tokio::test]
    async fn few_mailboxes_of_many_events_go_too_the_oldest_first() -> Result<(), Box<dyn std::error::Error>> {
        let post = Executor::new(Subscribers::bundled().into(), Randomness::repeatable(1), PeopleRules::default());
        let mut post = post.keeping(CACHE_BYTES);
        let mut rows = Memory::default();
        post.set_now(Time::from_millis(1_000));
        for number in 0..20 {
            let told = json!({ "tool_name": number, "error_message": "x".repeat(CACHE_BYTES / 18) });
            let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, told)?;
            let event = event.in_conversation(&format!("chat-{number}"));
            let events = vec![Incoming::new(event, None)];
            let publish = Publish { caller: Caller::user("ada"), events, once: None };
            post.publish(&mut Publishing::new(publish), &mut rows).await?;
            post.build_rows();
            post.committed();
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
}
