use super::argument::words_of;
use super::arguments::word;
use super::{Argument, MESSAGE_MAX, ToolArguments, clean};

/// In characters: how much of a message the tool's result repeats.
const PREVIEW_MAX: usize = 80;

/// The arguments of `send_notification`: a message that stays unread in the inbox until the person reads it.
///
/// ```
/// use bellwire_core::person::{ToolArguments, MessageType, SendNotification};
/// use serde_json::json;
///
/// let arguments = ToolArguments::parse(json!({"message": " Buy milk ", "type": "reminder"}))?;
/// let send = SendNotification::parse(&arguments)?;
/// assert_eq!((send.message.as_str(), send.kind), ("Buy milk", MessageType::Reminder));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendNotification {
    /// At most 500 characters, cleaned and trimmed.
    pub message: String,
    /// The kind of message, for display.
    pub kind: MessageType,
}

/// The kind of a message, for display.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageType {
    /// Something to remember.
    Reminder,
    /// Something to know.
    #[default]
    Info,
    /// Something to check.
    Warning,
}

impl SendNotification {
    /// The tool's arguments.
    pub const ARGUMENTS: &[Argument] = &[
        message_argument("The notification message, 1 to 500 characters."),
        Argument::word("type", MessageType::NAMES, "What sort of notification it is.")
            .or_word(MessageType::Info.as_str()),
    ];

    /// Checks the arguments: unknown ones, message, then type.
    pub fn parse(arguments: &ToolArguments) -> Result<Self, String> {
        arguments.refuse_others(Self::ARGUMENTS)?;
        let message = message(arguments)?;
        let kind = arguments.text("type")?.map_or(Ok(MessageType::default()), MessageType::parse)?;
        Ok(Self { message, kind })
    }

    /// The start of the message, for the tool's result.
    pub fn preview(&self) -> String {
        preview(&self.message)
    }
}

impl MessageType {
    const WORDS: [(&'static str, Self); 3] =
        [("reminder", Self::Reminder), ("info", Self::Info), ("warning", Self::Warning)];
    /// Every name on the wire.
    pub const NAMES: &[&str] = &words_of(&Self::WORDS);

    /// Parses the name on the wire.
    pub fn parse(text: &str) -> Result<Self, String> {
        word("type", text, &Self::WORDS)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reminder => "reminder",
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}

/// The `message` argument that most tools have.
pub(super) const fn message_argument(meaning: &'static str) -> Argument {
    Argument::text("message", 1, MESSAGE_MAX, meaning).required()
}

/// A message of 1 to 500 characters, cleaned and trimmed.
pub(super) fn message(arguments: &ToolArguments) -> Result<String, String> {
    let text = clean(arguments.text("message")?.unwrap_or_default());
    match text.chars().count() {
        1..=MESSAGE_MAX => Ok(text),
        _ => Err(format!("Message must be between 1 and {MESSAGE_MAX} characters")),
    }
}

pub(super) fn preview(message: &str) -> String {
    match message.char_indices().nth(PREVIEW_MAX) {
        Some((end, _)) => format!("{}...", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parse(arguments: Value) -> Result<SendNotification, String> {
        SendNotification::parse(&ToolArguments::parse(arguments)?)
    }

    #[test]
    fn refusals_are_worded_as_the_contract_says() {
        let length = Err("Message must be between 1 and 500 characters".to_owned());
        assert_eq!(parse(json!({})), length);
        assert_eq!(parse(json!({"message": " \n\0 "})), length);
        assert_eq!(parse(json!({"message": "x".repeat(501)})), length);
        assert_eq!(parse(json!({"message": "", "type": "nonsense"})), length, "the message is checked first");
        let kind = Err("Invalid type 'urgent'. Must be one of: reminder, info, warning".to_owned());
        assert_eq!(parse(json!({"message": "x", "type": "urgent"})), kind);
    }

    #[test]
    fn the_length_counts_characters_of_the_trimmed_text() {
        let emoji = format!("  {}  ", "\u{1f600}".repeat(500));
        assert_eq!(parse(json!({ "message": emoji })).map(|send| send.message.chars().count()), Ok(500));
    }

    #[test]
    fn a_preview_is_eighty_characters() {
        let send = |length: usize| SendNotification { message: "é".repeat(length), kind: MessageType::Info };
        assert_eq!(send(80).preview(), "é".repeat(80));
        assert_eq!(send(81).preview(), format!("{}...", "é".repeat(80)));
    }
}
