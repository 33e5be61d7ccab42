use std::fmt;

/// A message in a Telegram chat, written `<chat_id>:<message_id>`: the thread identity of an inbound message.
///
/// ```
/// use bellwire_core::notify::ChatThread;
///
/// assert_eq!(ChatThread::parse("-100123:7"), Some(ChatThread { chat_id: -100_123, message_id: 7 }));
/// assert_eq!(ChatThread::parse("123"), None);
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ChatThread {
    /// The chat; negative for groups, never 0.
    pub chat_id: i64,
    /// The message in the chat, from 1.
    pub message_id: i64,
}

impl ChatThread {
    /// Parses the one way to write it, so that two texts never name the same message. Anything else is no target: it
    /// must never become a message to somewhere else.
    pub fn parse(text: &str) -> Option<Self> {
        let (chat_id, message_id) = text.split_once(':')?;
        let thread = Self { chat_id: chat_id.parse().ok()?, message_id: message_id.parse().ok()? };
        (thread.chat_id != 0 && thread.message_id > 0 && thread.to_string() == text).then_some(thread)
    }
}

impl fmt::Display for ChatThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chat_id, self.message_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_integers_in_canonical_form_are_a_thread() {
        for text in ["1:1", "-1001234567890:2147483647", "9223372036854775807:1"] {
            assert_eq!(ChatThread::parse(text).map(|thread| thread.to_string()).as_deref(), Some(text));
        }
        let wrong = [
            "",
            ":",
            "1:",
            ":1",
            "1",
            "0:1",
            "1:0",
            "1:-1",
            "+1:1",
            "1:+1",
            "01:1",
            "1:01",
            " 1:1",
            "1:1 ",
            "1:1:1",
            "a:1",
            "1:a",
            "1.0:1",
            "9223372036854775808:1",
            "\u{661}:1",
            "-0:1",
            "1:1\n",
        ];
        for text in wrong {
            assert_eq!(ChatThread::parse(text), None, "{text:?}");
        }
    }
}
