use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::notify::{Intent, RequestContext};
use uuid::Uuid;

/// What a notify request asks of a channel. The arguments were checked for their intent; the channel checks what only it
/// knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyDelivery {
    /// What is done.
    pub intent: Intent,
    /// The recipient of a `send`: the given one, or the target in the person's settings. None for reply and react.
    pub recipient: Option<String>,
    /// The text; none for react.
    pub message: Option<String>,
    /// The subject, where the channel has one.
    pub subject: Option<String>,
    /// The reaction; only for react.
    pub emoji: Option<String>,
    /// The inbound message; always present for reply and react.
    pub request_context: Option<RequestContext>,
}

/// Where a notify request goes, in the channel's normal form. The permission check, the dedup key and the send use this same
/// value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyTarget {
    /// The address in the channel, as it stands in people's settings and in allow-lists.
    pub target: String,
    /// The message that a reply or a reaction belongs to.
    pub thread: Option<String>,
    /// The reaction in the form that the channel accepts; only for react.
    pub reaction: Option<String>,
}

/// A message of `notify`, ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyMessage {
    /// The id of this delivery.
    pub id: Uuid,
    /// What is done.
    pub intent: Intent,
    /// The authenticated origin.
    pub origin: String,
    /// Where it goes.
    pub target: NotifyTarget,
    /// The person whose target it is; none for an allow-listed target that belongs to no person.
    pub user_id: Option<String>,
    /// The person's conversation that it comes from: an answer to this message belongs there.
    pub conversation_id: Option<String>,
    /// The text; none for react.
    pub message: Option<String>,
    /// The subject, where the channel has one.
    pub subject: Option<String>,
    /// The person's time zone, by its IANA name.
    pub timezone: Option<String>,
    /// When it was asked for.
    pub at: Time,
}

/// The outcome of one synchronous attempt. Reasons are read by agents, so they contain no target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyOutcome {
    /// The provider has accepted it.
    Delivered {
        /// The id of the message in the channel.
        delivery_id: String,
        /// The ids of the parts after the first, if it was sent in parts.
        further_parts: Vec<String>,
    },
    /// A text was sent in parts and a later part failed. Final.
    Partial {
        /// The id of the first part.
        delivery_id: String,
        /// The ids of the accepted parts after the first.
        further_parts: Vec<String>,
        /// How many parts there are.
        parts: usize,
        /// Why the next part failed.
        reason: String,
    },
    /// The provider refused it, and would refuse it again.
    Refused {
        /// The provider's reason.
        reason: String,
    },
    /// It was refused because the target does not exist or the person has blocked the hub.
    Unreachable {
        /// The provider's reason.
        reason: String,
    },
    /// Nothing was sent; a retry may succeed.
    TryAgain {
        /// What stood in the way.
        obstacle: Obstacle,
        /// Why it was not sent.
        reason: String,
        /// The delay that the provider or the pacing asks for.
        retry_after: Option<Duration>,
    },
    /// The request went out and no answer came: it may have arrived.
    Unknown {
        /// What happened.
        reason: String,
    },
}

impl NotifyOutcome {
    /// A message that the provider has accepted in one piece.
    pub fn delivered(delivery_id: impl Into<String>) -> Self {
        Self::Delivered { delivery_id: delivery_id.into(), further_parts: Vec::new() }
    }
}

/// Why nothing was sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The provider cannot be reached, is busy, or refuses the hub's credentials.
    Unavailable,
    /// The provider did not answer in time, before anything was sent.
    TimedOut,
}
