//! The bot: what sending and receiving share.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::person::ChannelName;
use bellwire_store::{ChatKey, ChatMessage};
use tokio::sync::{Notify, Semaphore};

use super::NAME;
use super::api::{BotApi, Button, CallError, NewMessage, SentMessage};
use super::pace::Pace;
use super::text::{Part, Text};
use crate::channels::ChannelHub;
use crate::clock;
use crate::config::{Secret, TelegramConfig, TelegramMode};

/// How long an answer to a person waits for its slot.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);
/// How many answers to people are on their way at once.
const ANSWERS_MAX: usize = 32;

/// One bot.
pub(super) struct Bot {
    pub(super) api: BotApi,
    pub(super) pace: Pace,
    pub(super) mode: TelegramMode,
    pub(super) webhook_secret: Option<Secret>,
    pub(super) hub: OnceLock<ChannelHub>,
    /// Rung when updates were stored.
    pub(super) received: Notify,
    pub(super) answers: Semaphore,
    username: Mutex<Option<String>>,
    /// What does not work, from the latest calls.
    failing: Mutex<Option<String>>,
}

impl Bot {
    /// None if Telegram is off.
    pub(super) fn new(config: &TelegramConfig) -> Result<Option<Self>, String> {
        let Some(api) = BotApi::new(config)? else { return Ok(None) };
        Ok(Some(Self {
            api,
            pace: Pace::new(config.messages_per_second, Duration::from_millis(config.chat_interval_ms)),
            mode: config.mode,
            webhook_secret: config.webhook_secret()?,
            hub: OnceLock::new(),
            received: Notify::new(),
            answers: Semaphore::new(ANSWERS_MAX),
            username: Mutex::default(),
            failing: Mutex::default(),
        }))
    }

    pub(super) fn name() -> ChannelName {
        ChannelName::parse(NAME).expect("the name is valid")
    }

    pub(super) fn chat(chat_id: i64) -> ChatKey {
        ChatKey { channel: Self::name(), target: chat_id.to_string() }
    }

    /// Sends a part and notes whether the bot works. A chat that got too much is held back.
    pub(super) async fn send(&self, message: &NewMessage<'_>) -> Result<SentMessage, CallError> {
        let sent = self.api.send_message(message).await;
        self.note(&sent);
        if let Err(error) = &sent {
            self.obey(message.chat_id, error);
        }
        sent
    }

    /// Holds a chat back for as long as Telegram asks.
    pub(super) fn obey(&self, chat_id: i64, error: &CallError) {
        if let Some(wait) = error.refusal(429).and_then(|refusal| refusal.retry_after) {
            self.pace.hold(chat_id, wait);
        }
    }

    /// Notes whether the settings work, for readiness.
    pub(super) fn note<T>(&self, outcome: &Result<T, CallError>) {
        let failing = match outcome {
            Err(CallError::Misconfigured { reason }) => Some(reason.clone()),
            Ok(_) | Err(CallError::Refused(_)) => None,
            // Nothing new is known about the settings.
            Err(CallError::NotSent { .. } | CallError::Unknown { .. }) => return,
        };
        self.set_failing(failing);
    }

    pub(super) fn set_failing(&self, reason: Option<String>) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    pub(super) fn failing(&self) -> Option<String> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bot's user name, which Telegram tells.
    pub(super) async fn username(&self) -> Option<String> {
        let known = self.username.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return known;
        }
        let me = self.api.get_me().await;
        self.note(&me);
        match me {
            Ok(me) => {
                *self.username.lock().unwrap_or_else(PoisonError::into_inner) = Some(me.username.clone());
                Some(me.username)
            }
            Err(error) => {
                tracing::warn!(%error, "Telegram does not tell the bot's name");
                None
            }
        }
    }

    /// Answers a person. An answer that fails is lost: it is no notification, and the person can ask again.
    pub(super) async fn say(&self, chat_id: i64, text: &Text, buttons: &[Vec<Button>]) -> Option<SentMessage> {
        let parts = text.split();
        let part = parts.first()?;
        if self.pace.slot(chat_id, ANSWER_WAIT_MAX).await.is_err() {
            tracing::warn!("an answer to a person on Telegram was dropped: the chat gets too many");
            return None;
        }
        let sent = self.send(&NewMessage { chat_id, part, reply_to: None, buttons }).await;
        sent.inspect_err(|error| tracing::warn!(%error, "an answer to a person on Telegram was not sent")).ok()
    }

    /// Replaces the text of a message of the bot, and removes its buttons.
    pub(super) async fn replace(&self, chat_id: i64, message_id: i64, part: &Part) -> Result<(), CallError> {
        let edited = self.api.edit_message(chat_id, message_id, part).await;
        self.note(&edited);
        match edited {
            // It already shows this text.
            Err(error) if is_unchanged(&error) => Ok(()),
            Err(error) => {
                self.obey(chat_id, &error);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Stores a message that was sent, so that an answer to it finds its conversation. The message is out: a failure here
    /// changes nothing about that.
    pub(super) async fn remember(&self, message: ChatMessage) {
        let Some(hub) = self.hub.get() else { return };
        if let Err(error) = hub.store.put_chat_message(message).await {
            tracing::error!(%error, "could not store a message that was sent; an answer to it finds no conversation");
        }
    }

    /// The hub's time.
    pub(super) fn now(&self) -> Time {
        self.hub.get().map_or_else(clock::now, |hub| hub.store.now())
    }
}

fn is_unchanged(error: &CallError) -> bool {
    error.refusal(400).is_some_and(|refusal| refusal.description.contains("message is not modified"))
}
