use std::collections::{BTreeMap, BTreeSet};

use bellwire_core::notify::normalized_target;
use bellwire_core::person::ChannelName;
use bellwire_core::retry::RetryPolicy;

/// The lease of a started attempt, unless the channel says otherwise: a server may take ten minutes to reply.
const ATTEMPT_MS: u64 = 15 * 60_000;

/// The limits and channels of notifications to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeopleRules {
    /// How many notifications one person may get within any 60 minutes.
    pub notifications_per_hour: u64,
    /// A separate limit for reminders; none = they count as notifications.
    pub reminders_per_hour: Option<u64>,
    /// The same for notifications of type info.
    pub infos_per_hour: Option<u64>,
    /// The same for warnings.
    pub warnings_per_hour: Option<u64>,
    /// How many toasts one person may get within any 60 minutes.
    pub toasts_per_hour: u64,
    /// The configured channels. Nothing is planned on any other.
    pub channels: BTreeMap<ChannelName, ChannelRules>,
    /// The targets that the operator allows to an origin besides those of the person it works for, in their normal form
    /// ([`normalized_target`]).
    pub allowed_targets: BTreeMap<String, BTreeSet<(ChannelName, String)>>,
    /// The retry schedule of failed deliveries.
    pub retry: RetryPolicy,
    /// The lease of a claim until the attempt starts.
    pub claim_ms: u64,
}

/// How deliveries of one channel are planned and claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRules {
    /// The name that people read in notes.
    pub display_name: String,
    /// Whether a new target is verified by a code that is sent to it.
    pub sends_codes: bool,
    /// Which notifications may share a message.
    pub grouping: Grouping,
    /// The lease of a started attempt; longer than the longest attempt.
    pub attempt_ms: u64,
    /// The lease of an attempt that is made elsewhere; longer than the hub asks for its outcome.
    pub passed_on_ms: u64,
}

/// Which due notifications of one person may share a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// All of them, as a digest.
    Digest,
    /// Those of one conversation. A toast with buttons is a message of its own, so that an answer belongs to one thing.
    ByConversation,
}

impl PeopleRules {
    /// Adds a channel.
    pub fn with_channel(mut self, name: ChannelName, rules: ChannelRules) -> Self {
        self.channels.insert(name, rules);
        self
    }

    /// Whether the operator allows this target to this origin.
    pub(crate) fn allows(&self, origin: &str, channel: &ChannelName, target: &str) -> bool {
        let targets = self.allowed_targets.get(origin);
        targets.is_some_and(|targets| targets.contains(&(channel.clone(), normalized_target(target))))
    }

    /// The lease of a started attempt on a channel.
    pub(crate) fn attempt_ms(&self, channel: &ChannelName) -> u64 {
        self.channels.get(channel).map_or(ATTEMPT_MS, |rules| rules.attempt_ms)
    }

    /// The lease of an attempt on a channel that is made elsewhere.
    pub(crate) fn passed_on_ms(&self, channel: &ChannelName) -> u64 {
        self.channels.get(channel).map_or(2 * ATTEMPT_MS, |rules| rules.passed_on_ms)
    }

    /// The name of a channel that people read.
    pub(crate) fn display_name<'a>(&'a self, channel: &'a ChannelName) -> &'a str {
        self.channels.get(channel).map_or(channel.as_str(), |rules| &rules.display_name)
    }
}

impl ChannelRules {
    /// A channel that sends digests and verifies targets by codes.
    pub fn new(display_name: &str) -> Self {
        Self {
            display_name: display_name.to_owned(),
            sends_codes: true,
            grouping: Grouping::Digest,
            attempt_ms: ATTEMPT_MS,
            passed_on_ms: 2 * ATTEMPT_MS,
        }
    }
}

impl Default for PeopleRules {
    fn default() -> Self {
        Self {
            notifications_per_hour: 30,
            reminders_per_hour: None,
            infos_per_hour: None,
            warnings_per_hour: None,
            toasts_per_hour: 60,
            channels: BTreeMap::new(),
            allowed_targets: BTreeMap::new(),
            retry: RetryPolicy::default(),
            claim_ms: 60_000,
        }
    }
}
