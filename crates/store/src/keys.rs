//! Keys of conversations and mailboxes, and maps that use their precomputed hashes.
//!
//! The executor and the log look a mailbox up a dozen times per event. The parts of its key come from outside, so they are
//! hashed under a secret of this process, as the maps of the standard library do; but only once, when the key is created.
//! The key stores its hash, and cloning it clones an `Arc`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use bellwire_core::event::AgentName;

/// The key of a conversation. Two owners may use the same id; neither learns of the other.
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

/// The key of a mailbox: its holder and the hash of it.
#[derive(Clone, Debug)]
pub(crate) struct MailboxKey(Arc<Hashed>);

#[derive(Debug, PartialEq, Eq)]
struct Hashed {
    holder: Holder,
    hash: u64,
}

/// The holder of a mailbox.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Holder {
    /// One agent of one conversation.
    Agent { conversation: ConversationKey, agent: Arc<str> },
    /// A person, for the notifications of one origin. Each origin has a mailbox of its own, so that a notification made by a
    /// timer still has a known origin. The `mixed` one holds what was there before; no origin maps to it, not even `unknown`.
    Person { user_id: Arc<str>, origin: Arc<str>, mixed: bool },
}

/// The origin of person mailboxes from database versions without origins.
const UNKNOWN_ORIGIN: &str = "unknown";

impl MailboxKey {
    pub(crate) fn new(conversation: &ConversationKey, agent: impl Into<Arc<str>>) -> Self {
        Self::of(Holder::Agent { conversation: conversation.clone(), agent: agent.into() })
    }

    /// The mailbox of a person for the notifications of this origin.
    pub(crate) fn of_person(user_id: &Arc<str>, origin: &str) -> Self {
        Self::of(Holder::Person { user_id: user_id.clone(), origin: origin.into(), mixed: false })
    }

    /// The mailbox that a person had before each origin had one.
    fn of_person_mixed(user_id: &str) -> Self {
        Self::of(Holder::Person { user_id: user_id.into(), origin: UNKNOWN_ORIGIN.into(), mixed: true })
    }

    fn of(holder: Holder) -> Self {
        static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let hash = SECRET.hash_one(&holder);
        Self(Arc::new(Hashed { holder, hash }))
    }

    /// The mailbox of an agent of the same conversation.
    pub(crate) fn of_agent(self, agent: &AgentName) -> Self {
        match &self.0.holder {
            Holder::Agent { conversation, agent: own } if **own != *agent.as_str() => {
                Self::new(conversation, agent.shared())
            }
            _ => self,
        }
    }

    /// The person it belongs to, directly or as the owner of the conversation.
    pub(crate) fn owner(&self) -> &Arc<str> {
        match &self.0.holder {
            Holder::Agent { conversation, .. } => &conversation.owner,
            Holder::Person { user_id, .. } => user_id,
        }
    }

    /// The conversation of an agent's mailbox.
    pub(crate) fn conversation(&self) -> Option<&ConversationKey> {
        match &self.0.holder {
            Holder::Agent { conversation, .. } => Some(conversation),
            Holder::Person { .. } => None,
        }
    }

    /// The agent of an agent's mailbox.
    pub(crate) fn agent(&self) -> Option<&Arc<str>> {
        match &self.0.holder {
            Holder::Agent { agent, .. } => Some(agent),
            Holder::Person { .. } => None,
        }
    }

    /// The origin of a person's mailbox.
    pub(crate) fn origin(&self) -> Option<&Arc<str>> {
        match &self.0.holder {
            Holder::Agent { .. } => None,
            Holder::Person { origin, .. } => Some(origin),
        }
    }

    /// Whether it belongs to an agent of this conversation.
    pub(crate) fn is_in(&self, conversation: &ConversationKey) -> bool {
        self.conversation() == Some(conversation)
    }

    /// Whether it belongs to a sub-agent.
    pub(crate) fn is_sub_agents(&self) -> bool {
        self.agent().is_some_and(|agent| &**agent != "main")
    }

    /// The columns `owner`, `conversation_id` and `agent` of its row. For a person, `conversation_id` is empty and `agent`
    /// holds the origin, or is empty for [`UNKNOWN_ORIGIN`].
    pub(crate) fn columns(&self) -> (&str, &str, &str) {
        match &self.0.holder {
            Holder::Agent { conversation, agent } => (&conversation.owner, &conversation.id, agent),
            Holder::Person { user_id, mixed: true, .. } => (user_id, "", ""),
            Holder::Person { user_id, origin, .. } => (user_id, "", origin),
        }
    }

    /// The inverse of [`MailboxKey::columns`].
    pub(crate) fn from_columns(owner: &str, conversation_id: &str, agent: &str) -> Self {
        match (conversation_id, agent) {
            ("", "") => Self::of_person_mixed(owner),
            ("", origin) => Self::of_person(&owner.into(), origin),
            (id, agent) => Self::new(&ConversationKey::new(owner, id), agent),
        }
    }
}

impl PartialEq for MailboxKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0 == other.0)
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
        self.0.holder.cmp(&other.0.holder)
    }
}

impl Hash for MailboxKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// A map for keys whose hashes an attacker cannot choose: keys with a precomputed keyed hash, and ids made by the hub.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, BuildHasherDefault<PrecomputedHasher>>;

/// Uses the precomputed hash of a key. For an id made by the hub it uses the last 8 bytes, which are random enough.
#[derive(Clone, Default)]
pub(crate) struct PrecomputedHasher(u64);

impl Hasher for PrecomputedHasher {
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
        BuildHasherDefault::<PrecomputedHasher>::default().hash_one(key)
    }

    #[test]
    fn two_keys_of_one_mailbox_are_equal() {
        let conversation = ConversationKey::new("ada", "chat");
        let [one, two] = [(); 2].map(|()| MailboxKey::new(&conversation, "main"));
        assert_eq!((&one, hash_of(&one)), (&two, hash_of(&two)));
        assert_eq!(one.cmp(&two), Ordering::Equal);
    }

    #[test]
    fn keys_that_differ_in_any_part_or_in_its_length_are_different() {
        let names = [("ada", "chat", "main"), ("eve", "chat", "main"), ("ada", "chat", "sub"), ("ad", "achat", "main")];
        let keys = names.map(|(owner, id, agent)| MailboxKey::new(&ConversationKey::new(owner, id), agent));
        let hashes: std::collections::HashSet<u64> = keys.iter().map(hash_of).collect();
        assert_eq!(hashes.len(), keys.len());
        assert!(keys.iter().enumerate().all(|(at, key)| keys.iter().position(|other| other == key) == Some(at)));
    }

    #[test]
    fn a_mailbox_comes_back_from_the_columns_of_its_row() {
        let columns = [("ada", "chat", "main"), ("ada", "chat", "sub"), ("ada", "", "butler"), ("ada", "", "unknown")];
        for (owner, conversation, agent) in columns.into_iter().chain([("ada", "", "")]) {
            let key = MailboxKey::from_columns(owner, conversation, agent);
            assert_eq!(key.columns(), (owner, conversation, agent));
            assert_eq!(
                (key.agent().is_some(), key.origin().is_some()),
                (!conversation.is_empty(), conversation.is_empty())
            );
        }
        assert!(!MailboxKey::from_columns("ada", "", "butler").is_sub_agents());
        let (mixed, unknown) =
            (MailboxKey::from_columns("ada", "", ""), MailboxKey::of_person(&"ada".into(), UNKNOWN_ORIGIN));
        assert_eq!((mixed.origin(), mixed == unknown), (unknown.origin(), false), "an agent may be called so");
    }

    #[test]
    fn ids_of_one_millisecond_are_spread() {
        let mut ids = Ids::seeded(7);
        let minted: Vec<EventId> = (0..1000).map(|_| ids.event(Time::from_millis(1_000))).collect();
        // A map uses the low bits.
        let buckets: std::collections::HashSet<u64> = minted.iter().map(|id| hash_of(id) % 1024).collect();
        assert!(buckets.len() > 550, "{} of 1024", buckets.len());
    }
}
