use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::person::ChannelName;
use bellwire_store::ChannelRules;

use super::email::EmailChannel;
use super::telegram::TelegramChannel;
use super::{Channel, Verification};
use crate::config::Config;
use crate::notify::LAST_CALL_MAX;

/// A lease is longer than the longest attempt by this much, so that the outcome can be recorded.
const ATTEMPT_MARGIN: Duration = Duration::from_secs(60);

/// All channels of a hub, in the order in which they are shown. Clones share the list.
#[derive(Clone)]
pub struct Channels(Arc<[Arc<dyn Channel>]>);

/// Why a channel cannot be used as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelError {
    /// The name of the channel.
    pub channel: String,
    /// What is wrong, and what to change.
    pub reason: String,
}

impl Channels {
    /// The channels of this program, made from the configuration. A new channel adds one line here.
    pub fn of_config(config: &Config) -> Result<Vec<Arc<dyn Channel>>, ChannelError> {
        Ok(vec![Arc::new(EmailChannel::new(&config.email)?), Arc::new(TelegramChannel::new(&config.telegram)?)])
    }

    /// A registry of these channels. Two of the same name are refused.
    pub fn new(channels: Vec<Arc<dyn Channel>>) -> Result<Self, ChannelError> {
        for (at, channel) in channels.iter().enumerate() {
            let name = channel.name();
            if channels[..at].iter().any(|earlier| earlier.name() == name) {
                let reason = "another channel has the same name".to_owned();
                return Err(ChannelError { channel: name.to_string(), reason });
            }
        }
        Ok(Self(channels.into()))
    }

    /// What the store has to know of the configured channels.
    pub(crate) fn rules(&self) -> BTreeMap<ChannelName, ChannelRules> {
        let rules = |channel: &Arc<dyn Channel>| {
            let (shape, sending) = (channel.settings(), channel.sending());
            let lease = sending.attempt_max + ATTEMPT_MARGIN;
            let rules = ChannelRules {
                display_name: shape.display_name.to_owned(),
                sends_codes: shape.verification == Verification::Code,
                grouping: sending.grouping,
                attempt_ms: millis(lease),
                passed_on_ms: millis(lease + LAST_CALL_MAX),
            };
            (channel.name(), rules)
        };
        self.configured().map(rules).collect()
    }

    /// The lease of a started attempt on a channel: longer than the longest attempt.
    pub(crate) fn lease_of(&self, name: &str) -> Duration {
        self.get(name).map_or(ATTEMPT_MARGIN, |channel| channel.sending().attempt_max + ATTEMPT_MARGIN)
    }

    /// The channel of this name, configured or not.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Channel>> {
        self.0.iter().find(|channel| channel.name().as_str() == name)
    }

    /// All channels, configured or not.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Channel>> {
        self.0.iter()
    }

    /// The channels that the operator has configured.
    pub fn configured(&self) -> impl Iterator<Item = &Arc<dyn Channel>> {
        self.0.iter().filter(|channel| channel.status().is_configured())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot set up the channel {}: {}", self.channel, self.reason)
    }
}

impl std::error::Error for ChannelError {}
