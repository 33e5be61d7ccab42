//! The bot: what sending and receiving share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::person::ChannelName;
use bellwire_store::{ChatKey, ChatMessage};
use tokio::sync::{Notify, Semaphore};

use super::NAME;
use super::api::{BotApi, CallError, KeyboardButton, SentMessage, TextMessage};
use super::outcome::can_be_repeated;
use super::pace::Pace;
use super::text::{Text, TextPart};
use crate::channels::{ChannelHub, NoSlot};
use crate::clock;
use crate::config::{Secret, TelegramConfig, TelegramMode};

/// How long an answer to a person waits for its slot.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);
/// The pauses between the attempts to answer a person.
const ANSWER_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];
/// How long a chat is held back at least, if it gets too much.
const HOLD_MIN: Duration = Duration::from_secs(1);
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
    /// Of these, answers to chats that are not connected.
    pub(super) stranger_answers: Arc<Semaphore>,
    username: Mutex<Option<String>>,
    /// Why calls are refused, from the latest one.
    failing: Mutex<Option<String>>,
    /// Why no updates arrive. Other calls may work meanwhile.
    not_receiving: Mutex<Option<String>>,
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
            stranger_answers: Arc::new(Semaphore::new(ANSWERS_MAX / 4)),
            username: Mutex::default(),
            failing: Mutex::default(),
            not_receiving: Mutex::default(),
        }))
    }

    pub(super) fn name() -> ChannelName {
        ChannelName::parse(NAME).expect("the name is valid")
    }

    pub(super) fn chat(chat_id: i64) -> ChatKey {
        ChatKey { channel: Self::name(), target: chat_id.to_string() }
    }

    /// Waits for a slot, at most `wait_max` and only while the hub runs.
    pub(super) async fn slot_unless_stopping(&self, chat_id: i64, wait_max: Duration) -> Result<(), NoSlot> {
        let stopping = async {
            match self.hub.get().map(|hub| hub.stopping.clone()) {
                Some(mut stopping) => drop(stopping.wait_for(|stopping| *stopping).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stopping => Err(NoSlot::Stopping),
            slot = self.pace.slot(chat_id, wait_max) => slot.map_err(NoSlot::Busy),
        }
    }

    /// Sends a part and notes whether the bot works. A chat that got too much is held back.
    pub(super) async fn send(&self, message: &TextMessage<'_>) -> Result<SentMessage, CallError> {
        let sent = self.api.send_message(message).await;
        self.note(&sent);
        if let Err(error) = &sent {
            self.obey(message.chat_id, error);
        }
        sent
    }

    /// Holds the chat or the bot back for as long as Telegram asks.
    pub(super) fn obey(&self, chat_id: i64, error: &CallError) {
        if let Some(refusal) = error.refusal(429) {
            self.pace.hold(chat_id, refusal.retry_after.unwrap_or_default().max(HOLD_MIN));
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
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = failing;
    }

    /// Notes why no updates arrive; none = they do.
    pub(super) fn note_receiving(&self, reason: Option<String>) {
        *self.not_receiving.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// What does not work.
    pub(super) fn failing(&self) -> Option<String> {
        let failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failing.or_else(|| self.not_receiving.lock().unwrap_or_else(PoisonError::into_inner).clone())
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

    /// Answers a person. While it is proven that nothing was sent, it is tried again a few times; otherwise the answer is
    /// lost: it is no notification, and the person can ask again.
    pub(super) async fn say(&self, chat_id: i64, text: &Text, buttons: &[Vec<KeyboardButton>]) -> Option<SentMessage> {
        let parts = text.split();
        let part = parts.first()?;
        let mut pauses = ANSWER_PAUSES.into_iter();
        loop {
            if self.pace.slot(chat_id, ANSWER_WAIT_MAX).await.is_err() {
                tracing::warn!("an answer to a person on Telegram was dropped: the chat gets too many");
                return None;
            }
            let error = match self.send(&TextMessage { chat_id, part, reply_to: None, buttons }).await {
                Ok(sent) => return Some(sent),
                Err(error) => error,
            };
            let Some(pause) = pauses.next().filter(|_| can_be_repeated(&error)) else {
                tracing::warn!(%error, "an answer to a person on Telegram was not sent");
                return None;
            };
            tracing::info!(%error, "an answer to a person on Telegram was not sent; will retry");
            tokio::time::sleep(pause).await;
        }
    }

    /// Replaces the text of a message of the bot, and removes its buttons.
    pub(super) async fn replace(&self, chat_id: i64, message_id: i64, part: &TextPart) -> Result<(), CallError> {
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
