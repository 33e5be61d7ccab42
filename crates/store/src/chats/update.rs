use bellwire_core::person::ChannelName;

use crate::people::{PressResult, Settlement};

/// An update as the provider sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelUpdate {
    /// The provider's id; unique per channel.
    pub id: i64,
    /// The update as it came.
    pub body: String,
}

/// An update as its channel understood it.
#[derive(Clone, Debug)]
pub struct UpdateCommand {
    /// The channel.
    pub channel: ChannelName,
    /// The id of the update.
    pub update_id: i64,
    /// The chat and the sender; none = it is of no chat that could be paired.
    pub from: Option<ChatSender>,
    /// What it asks for.
    pub action: UpdateAction,
}

/// Who sent something, and in which chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatSender {
    /// The chat.
    pub target: String,
    /// The sender, as the provider has authenticated them.
    pub sender: String,
}

/// What an update asks for.
#[derive(Clone, Debug)]
pub enum UpdateAction {
    /// Nothing; or it could not be carried out. The text says why, for the record.
    Ignore(&'static str),
    /// To pair the chat, with the hash of a code.
    Pair(Vec<u8>),
    /// To begin, without a code. Switches the channel on again for a paired person.
    Start,
    /// To end the pairing.
    Stop,
    /// To mute the origin of a message of the chat; without one, to list the muted origins.
    Mute(Option<i64>),
    /// To explain the commands.
    Help,
    /// Something other than a new text.
    NotText,
    /// A text for an agent.
    Text(Box<InboundText>),
    /// A pressed button, by the hash of its token.
    Press(Vec<u8>),
    /// The person has blocked the hub in this chat.
    Blocked,
}

/// A text for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundText {
    /// The id of the message in the chat.
    pub message_id: i64,
    /// The text.
    pub text: String,
    /// The message that it answers.
    pub reply_to: Option<i64>,
    /// Where it was received, for the request context.
    pub endpoint: String,
    /// The message in the form of the channel, for the request context.
    pub thread: String,
    /// Hashes of fresh tokens, for buttons that ask which conversation is meant.
    pub choices: Vec<Vec<u8>>,
}

/// What became of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// It was handled before; nothing has changed.
    Repeated,
    /// Nothing was asked for, or the sender may not act in the chat.
    Ignored,
    /// The chat belongs to no person.
    Stranger {
        /// Whether to answer: once a day.
        is_answered: bool,
    },
    /// The chat now belongs to the person.
    Paired {
        /// The person.
        user_id: String,
        /// The person's earlier chat, which no longer is theirs.
        replaced: Option<String>,
    },
    /// The code is wrong, used up or too old.
    WrongCode {
        /// Whether to answer: a chat that belongs to no person gets one answer a day.
        is_answered: bool,
    },
    /// Too many wrong codes came from this chat within an hour.
    TooManyCodes {
        /// Whether to answer: as above, and only the first time.
        is_answered: bool,
    },
    /// The chat belongs to another person.
    Taken,
    /// The channel is on for the person.
    Started,
    /// The chat belongs to no person any more.
    Stopped,
    /// The origin's notifications go only to the inbox from now on.
    Muted {
        /// The origin.
        origin: String,
    },
    /// The message to mute has no single origin, or is not known.
    NothingToMute,
    /// No message was named.
    MutedOrigins {
        /// The person.
        user_id: String,
        /// The origins that are muted.
        muted: Vec<String>,
    },
    /// The commands are to be explained.
    Help,
    /// Only texts can be read.
    NotText,
    /// The text is a message of this conversation.
    Sent {
        /// The conversation.
        conversation_id: String,
        /// Its title, or its id.
        title: String,
    },
    /// The text is kept until the person says which conversation is meant.
    Choose {
        /// The titles of the conversations, in the order of the tokens.
        titles: Vec<String>,
    },
    /// No conversation is open. The text is not kept.
    NoConversation,
    /// A button of a notification was pressed.
    Pressed(PressResult),
    /// The notification was settled before, by this.
    Settled(Settlement),
    /// The button was used before.
    UsedButton,
    /// There is no such button in this chat.
    UnknownButton,
    /// The channel was switched off for the person, because they blocked the hub.
    Blocked,
}

impl UpdateOutcome {
    /// Its name in the record of the update.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Repeated => "repeated",
            Self::Ignored => "ignored",
            Self::Stranger { .. } => "stranger",
            Self::Paired { .. } => "paired",
            Self::WrongCode { .. } => "wrong_code",
            Self::TooManyCodes { .. } => "too_many_codes",
            Self::Taken => "taken",
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Muted { .. } => "muted",
            Self::NothingToMute => "nothing_to_mute",
            Self::MutedOrigins { .. } => "muted_origins",
            Self::Help => "help",
            Self::NotText => "not_text",
            Self::Sent { .. } => "message",
            Self::Choose { .. } => "choose",
            Self::NoConversation => "no_conversation",
            Self::Pressed(_) => "pressed",
            Self::Settled(_) => "settled",
            Self::UsedButton => "used_button",
            Self::UnknownButton => "unknown_button",
            Self::Blocked => "blocked",
        }
    }
}
