use std::fmt;

use crate::person::words_of;

/// What a `notify` call does.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// Sends a new message.
    #[default]
    Send,
    /// Answers an inbound message, in its thread.
    Reply,
    /// Puts an emoji on an inbound message.
    React,
}

impl Intent {
    /// All intents.
    pub const ALL: [Self; 3] = [Self::Send, Self::Reply, Self::React];
    const WORDS: [(&'static str, Self); 3] = [("send", Self::Send), ("reply", Self::Reply), ("react", Self::React)];
    /// Every name on the wire.
    pub const NAMES: &[&str] = &words_of(&Self::WORDS);

    /// Parses the name on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, intent)| *intent)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Reply => "reply",
            Self::React => "react",
        }
    }

    /// Whether it answers an inbound message, whose context names the target.
    pub const fn answers(self) -> bool {
        matches!(self, Self::Reply | Self::React)
    }
}

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
