//! What an agent asks for when it notifies a person directly on one channel.

use std::fmt;

use uuid::Uuid;

/// What is done on the channel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// A new message.
    Send,
    /// An answer in the thread of an inbound message.
    Reply,
    /// A reaction to an inbound message.
    React,
}

impl Intent {
    /// All intents.
    pub const ALL: [Self; 3] = [Self::Send, Self::Reply, Self::React];

    /// Its name in envelopes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Reply => "reply",
            Self::React => "react",
        }
    }
}

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The inbound message that a reply or a reaction belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestContext {
    /// The id of the inbound request.
    pub request_id: Uuid,
    /// The channel it came in on.
    pub source_channel: String,
    /// Where it was received, such as the bot or the mailbox.
    pub source_endpoint_identity: String,
    /// Who sent it.
    pub source_sender_identity: String,
    /// The message in its channel, in the form of that channel.
    pub source_thread_identity: Option<String>,
    /// When it was received, as the sender of the context wrote it.
    pub received_at: Option<String>,
}
