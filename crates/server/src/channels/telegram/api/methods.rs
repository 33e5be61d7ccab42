//! The methods that the hub uses, with the parameters that it sets.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{BotApi, CallError};
use crate::channels::telegram::text::{Entity, TextPart};

/// How many updates one poll returns.
pub(crate) const UPDATES_MAX: usize = 50;
/// The kinds of updates that the hub reads.
const KINDS: [&str; 4] = ["message", "edited_message", "callback_query", "my_chat_member"];

/// The bot itself.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Me {
    /// The user name, for links.
    pub(crate) username: String,
}

/// A message that was sent.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SentMessage {
    /// Its id in the chat.
    pub(crate) message_id: i64,
}

/// A message to send.
#[derive(Clone, Debug)]
pub(crate) struct TextMessage<'a> {
    /// The chat.
    pub(crate) chat_id: i64,
    /// The text with its entities.
    pub(crate) part: &'a TextPart,
    /// The message that it answers. If that does not exist, nothing is sent.
    pub(crate) reply_to: Option<i64>,
    /// The inline buttons: rows of label and data.
    pub(crate) buttons: &'a [Vec<KeyboardButton>],
}

/// An inline button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct KeyboardButton {
    /// The label.
    pub(crate) text: String,
    /// What the hub gets when it is pressed: 1 to 64 bytes.
    pub(crate) callback_data: String,
}

#[derive(Serialize)]
struct SendMessage<'a> {
    chat_id: i64,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entities: &'a [Entity],
    link_preview_options: LinkPreview,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_parameters: Option<ReplyParameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<InlineKeyboard<'a>>,
}

/// An agent's text must not make Telegram fetch pages.
#[derive(Serialize)]
struct LinkPreview {
    is_disabled: bool,
}

const NO_PREVIEW: LinkPreview = LinkPreview { is_disabled: true };

#[derive(Serialize)]
struct ReplyParameters {
    message_id: i64,
}

#[derive(Serialize)]
struct InlineKeyboard<'a> {
    inline_keyboard: &'a [Vec<KeyboardButton>],
}

#[derive(Serialize)]
struct EditMessageText<'a> {
    chat_id: i64,
    message_id: i64,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entities: &'a [Entity],
    link_preview_options: LinkPreview,
}

#[derive(Serialize)]
struct SetMessageReaction<'a> {
    chat_id: i64,
    message_id: i64,
    reaction: [Reaction<'a>; 1],
}

#[derive(Serialize)]
struct Reaction<'a> {
    r#type: &'static str,
    emoji: &'a str,
}

#[derive(Serialize)]
struct AnswerCallbackQuery<'a> {
    callback_query_id: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct GetUpdates {
    offset: i64,
    limit: usize,
    timeout: u64,
    allowed_updates: [&'static str; 4],
}

#[derive(Serialize)]
struct SetWebhook<'a> {
    url: &'a str,
    secret_token: &'a str,
    allowed_updates: [&'static str; 4],
}

#[derive(Serialize)]
struct NoParameters {}

impl BotApi {
    pub(crate) async fn get_me(&self) -> Result<Me, CallError> {
        self.call("getMe", &NoParameters {}, Duration::ZERO).await
    }

    pub(crate) async fn send_message(&self, message: &TextMessage<'_>) -> Result<SentMessage, CallError> {
        let parameters = SendMessage {
            chat_id: message.chat_id,
            text: &message.part.text,
            entities: &message.part.entities,
            link_preview_options: NO_PREVIEW,
            reply_parameters: message.reply_to.map(|message_id| ReplyParameters { message_id }),
            reply_markup: Some(InlineKeyboard { inline_keyboard: message.buttons })
                .filter(|keyboard| !keyboard.inline_keyboard.is_empty()),
        };
        self.call("sendMessage", &parameters, Duration::ZERO).await
    }

    /// Replaces the text of a message and removes its buttons.
    pub(crate) async fn edit_message(&self, chat_id: i64, message_id: i64, part: &TextPart) -> Result<(), CallError> {
        let parameters = EditMessageText {
            chat_id,
            message_id,
            text: &part.text,
            entities: &part.entities,
            link_preview_options: NO_PREVIEW,
        };
        let edited = self.call::<serde::de::IgnoredAny>("editMessageText", &parameters, Duration::ZERO).await;
        edited.map(|_| ())
    }

    pub(crate) async fn set_reaction(&self, chat_id: i64, message_id: i64, emoji: &str) -> Result<(), CallError> {
        let reaction = [Reaction { r#type: "emoji", emoji }];
        let parameters = SetMessageReaction { chat_id, message_id, reaction };
        self.call::<bool>("setMessageReaction", &parameters, Duration::ZERO).await.map(|_| ())
    }

    /// Ends the spinner of a pressed button, and shows a short text.
    pub(crate) async fn answer_query(&self, id: &str, text: &str) -> Result<(), CallError> {
        let parameters = AnswerCallbackQuery { callback_query_id: id, text };
        self.call::<bool>("answerCallbackQuery", &parameters, Duration::ZERO).await.map(|_| ())
    }

    /// Confirms the updates before `offset`, and waits up to `wait` for those from there on.
    pub(crate) async fn get_updates(&self, offset: i64, wait: Duration) -> Result<Vec<Box<RawValue>>, CallError> {
        let parameters = GetUpdates { offset, limit: UPDATES_MAX, timeout: wait.as_secs(), allowed_updates: KINDS };
        self.call("getUpdates", &parameters, wait).await
    }

    pub(crate) async fn set_webhook(&self, url: &str, secret: &str) -> Result<(), CallError> {
        let parameters = SetWebhook { url, secret_token: secret, allowed_updates: KINDS };
        self.call::<bool>("setWebhook", &parameters, Duration::ZERO).await.map(|_| ())
    }

    pub(crate) async fn delete_webhook(&self) -> Result<(), CallError> {
        self.call::<bool>("deleteWebhook", &NoParameters {}, Duration::ZERO).await.map(|_| ())
    }
}
