//! The path of a `notify` call: tool → Switchboard (`deliver`) → Messenger (`route.execute`) → channel, and back.
//!
//! The tool checks the call, resolves its target and builds a notify.v1 envelope. The Switchboard wraps it into route.v1
//! and passes it to the Messenger, which makes one attempt on the channel. By default all three run in one process and call
//! each other as functions; the configuration can put the Switchboard and the Messenger on other machines, where the same
//! functions are MCP tools.
//!
//! The process that receives a request claims it in its store first, so that equal requests are attempted once. It makes
//! the attempt in a task of its own, which records the outcome even if the caller has stopped waiting.

mod asking;
mod attempt;
mod call;
mod daemon_tool;
pub(crate) mod envelope;
mod messenger;
mod prepared;
mod recipient;
mod refusal;
mod remote;
mod switchboard;

pub(crate) use asking::LAST_CALL_MAX;
pub(crate) use call::{notify, refused};
pub(crate) use daemon_tool::DaemonTool;

use std::time::Duration;

use bellwire_core::notify::ChannelFacts;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use self::remote::Remote;
use crate::channels::Channels;
use crate::config::{Config, NotifyConfig};

/// How long a caller waits for the outcome of an attempt.
const WAIT_MAX: Duration = Duration::from_secs(25);

/// The settings of the path.
pub(crate) struct NotifyPath {
    /// The targets that origins may use beyond their users'.
    allow: NotifyConfig,
    /// How long a caller waits for the outcome of an attempt; less than a request may take.
    wait: Duration,
    /// The Switchboard, if it runs elsewhere.
    switchboard: Option<Remote>,
    /// The Messenger, if it runs elsewhere.
    messenger: Option<Remote>,
    /// The origins of the daemon tokens that may call `route.execute` here.
    trusted_route_callers: Vec<String>,
}

impl NotifyPath {
    /// Reads the tokens of processes that run elsewhere. An error names the setting and the fix.
    pub(crate) fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            allow: config.notify.clone(),
            wait: WAIT_MAX.min(config.limits.request_timeout() * 5 / 6),
            switchboard: Remote::switchboard(&config.switchboard)?,
            messenger: Remote::messenger(&config.messenger.remote)?,
            trusted_route_callers: config.messenger.trusted_route_callers.clone(),
        })
    }

    /// Whether the Messenger of this hub's requests runs elsewhere.
    fn sends_elsewhere(&self) -> bool {
        self.switchboard.is_some() || self.messenger.is_some()
    }
}

/// What the checks of a call need to know about the channels.
pub(crate) fn channel_facts(channels: &Channels) -> Vec<ChannelFacts> {
    let facts = |channel: &std::sync::Arc<dyn crate::channels::Channel>| ChannelFacts {
        name: channel.name(),
        configured: channel.status().is_configured(),
        reacts: channel.answers().has_reactions,
        needs_thread: channel.answers().needs_thread,
    };
    channels.iter().map(facts).collect()
}

/// A hash of several texts. Each is preceded by its length, so that text cannot move from one to the next.
fn hash_of(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// A UUID (version 8) that is the same for equal hashes.
fn uuid_of(hash: &[u8; 32]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
