//! What conversations and mailboxes are called, and maps from such names that hash them once.
//!
//! A mailbox is looked up a dozen times on an event's way through the post room and the log. Its names come from outside,
//! so they are hashed under a secret of this process, as the maps of the standard library do; but only when the key is
//! made. From then on it carries its hash, and a copy of it is a shared pointer.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use bellwire_core::event::AgentName;

/// A conversation. Two people may use the same id: neither learns of the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConversationKey {
    pub(crate) owner: Arc<str>,
    pub(crate) id: Arc<str>,
}

impl ConversationKey {
    pub(crate) fn new(owner: &str, id: &str) -> Self {
        Self { owner: owner.into(), id: id.into() }
    }
}

/// The mailbox of one agent of one conversation.
#[derive(Clone, Debug)]
pub(crate) struct MailboxKey(Arc<Names>);

/// What a mailbox is called.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Names {
    pub(crate) conversation: ConversationKey,
    pub(crate) agent: Arc<str>,
    hash: u64,
}

impl MailboxKey {
    pub(crate) fn new(conversation: &ConversationKey, agent: impl Into<Arc<str>>) -> Self {
        static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let (conversation, agent) = (conversation.clone(), agent.into());
        let hash = SECRET.hash_one((&conversation, &agent));
        Self(Arc::new(Names { conversation, agent, hash }))
    }

    /// The mailbox of a person. No conversation is called nothing, so it is no conversation's.
    pub(crate) fn of_person(user_id: &Arc<str>) -> Self {
        let nothing: Arc<str> = "".into();
        Self::new(&ConversationKey { owner: user_id.clone(), id: nothing.clone() }, nothing)
    }

    /// The mailbox of an agent of the same conversation.
    pub(crate) fn of_agent(self, agent: &AgentName) -> Self {
        match *self.agent == *agent.as_str() {
            true => self,
            false => Self::new(&self.conversation, agent.shared()),
        }
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> &Arc<str> {
        &self.conversation.owner
    }

    pub(crate) fn is_a_persons(&self) -> bool {
        self.conversation.id.is_empty()
    }
}

impl Deref for MailboxKey {
    type Target = Names;

    fn deref(&self) -> &Names {
        &self.0
    }
}

impl PartialEq for MailboxKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.hash == other.hash && self.0 == other.0)
    }
}

impl Eq for MailboxKey {}

impl PartialOrd for MailboxKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MailboxKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl Hash for MailboxKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A map from keys that nobody outside can choose the hashes of: those that carry a keyed one, and ids of our own.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, BuildHasherDefault<Carried>>;

/// Takes the hash a key carries for what it is. An id that we minted ends in bits as good as random: they will do.
#[derive(Clone, Default)]
pub(crate) struct Carried(u64);

impl Hasher for Carried {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk() {
            self.0 = u64::from_be_bytes(*last);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::{EventId, Ids, Time};

    use super::*;

    fn hash_of(key: impl Hash) -> u64 {
        BuildHasherDefault::<Carried>::default().hash_one(key)
    }

    #[test]
    fn two_keys_of_one_mailbox_are_one_key() {
        let conversation = ConversationKey::new("ada", "chat");
        let [one, two] = [(); 2].map(|()| MailboxKey::new(&conversation, "main"));
        assert_eq!((&one, hash_of(&one)), (&two, hash_of(&two)));
        assert_eq!(one.cmp(&two), Ordering::Equal);
    }

    #[test]
    fn keys_that_differ_in_any_name_or_only_in_where_one_ends_are_different() {
        let names = [("ada", "chat", "main"), ("eve", "chat", "main"), ("ada", "chat", "sub"), ("ad", "achat", "main")];
        let keys = names.map(|(owner, id, agent)| MailboxKey::new(&ConversationKey::new(owner, id), agent));
        let hashes: std::collections::HashSet<u64> = keys.iter().map(hash_of).collect();
        assert_eq!(hashes.len(), keys.len());
        assert!(keys.iter().enumerate().all(|(at, key)| keys.iter().position(|other| other == key) == Some(at)));
    }

    #[test]
    fn ids_of_one_millisecond_are_spread() {
        let mut ids = Ids::seeded(7);
        let minted: Vec<EventId> = (0..1000).map(|_| ids.event(Time::from_millis(1_000))).collect();
        // What a map looks at: the low bits.
        let buckets: std::collections::HashSet<u64> = minted.iter().map(|id| hash_of(id) % 1024).collect();
        assert!(buckets.len() > 550, "{} of 1024", buckets.len());
    }
}
