//! The channel: sends what the outbox and `notify` ask for.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::person::ChannelName;
use bellwire_store::{AttemptOutcome, Grouping};
use futures_util::future::BoxFuture;

use super::bot::Bot;
use super::{NAME, deliver, edits, notify, parts, poller, target, webhook};
use crate::channels::{
    Answers, Channel, ChannelError, ChannelHub, ChannelStatus, ChannelTask, NoSlot, NotifyDelivery, NotifyMessage,
    NotifyOutcome, NotifyTarget, Obstacle, OutboundMessage, Sending, SettingsShape, TargetField, TargetKind,
    Verification, VerifiedField, WebhookAnswer, WebhookCall,
};
use crate::config::{TelegramConfig, TelegramMode};

/// How many messages are sent at once. Most wait for their slot.
const CONCURRENCY: usize = 16;

static SHAPE: SettingsShape = SettingsShape {
    display_name: "Telegram",
    description: "Telegram.",
    target: TargetField {
        name: "chat_id",
        description: "The id of the private chat with the bot.",
        kind: TargetKind::Integer,
        is_writable: false,
        example: "77",
        parse: |text| match target::chat_id(text) {
            Some(id) => Ok(id.to_string()),
            None => Err("is no id of a chat; write an integer".to_owned()),
        },
    },
    verified: VerifiedField {
        name: "paired",
        description: "Whether the person has sent a pairing code from this chat.",
    },
    verification: Verification::Pairing,
};

/// A Telegram bot.
pub struct TelegramChannel {
    /// None = Telegram is off.
    bot: Option<Arc<Bot>>,
}

impl TelegramChannel {
    /// Reads the files that the settings name.
    pub fn new(config: &TelegramConfig) -> Result<Self, ChannelError> {
        let bot = Bot::new(config).map_err(|reason| ChannelError { channel: NAME.to_owned(), reason })?;
        Ok(Self { bot: bot.map(Arc::new) })
    }
}

impl Channel for TelegramChannel {
    fn name(&self) -> ChannelName {
        Bot::name()
    }

    fn settings(&self) -> &SettingsShape {
        &SHAPE
    }

    fn sending(&self) -> Sending {
        let attempt_max = self.bot.as_ref().map(|bot| parts::time_max(bot)).unwrap_or_default();
        Sending { grouping: Grouping::ByConversation, concurrency: CONCURRENCY, attempt_max }
    }

    fn status(&self) -> ChannelStatus {
        match self.bot.as_ref().map(|bot| bot.failing()) {
            None => ChannelStatus::Off { fix: "set telegram.token_file".to_owned() },
            Some(Some(reason)) => ChannelStatus::Failing { reason },
            Some(None) => ChannelStatus::Ready,
        }
    }

    fn start(&self, hub: ChannelHub) -> Vec<ChannelTask> {
        let Some(bot) = &self.bot else { return Vec::new() };
        // Only the first call counts.
        let _ = bot.hub.set(hub.clone());
        let receive: Option<BoxFuture<'static, ()>> = match bot.mode {
            TelegramMode::Poll => Some(Box::pin(poller::run(bot.clone(), hub.clone()))),
            TelegramMode::Webhook => Some(Box::pin(webhook::run(bot.clone(), hub.clone()))),
            TelegramMode::Send => None,
        };
        let receive = receive.map(|run| ChannelTask { name: "the receiver of Telegram updates", run });
        let edit = Box::pin(edits::run(bot.clone(), hub));
        let edit = ChannelTask { name: "the editor of Telegram messages", run: edit };
        receive.into_iter().chain([edit]).collect()
    }

    fn slot(&self, target: &str, wait_max: Duration) -> BoxFuture<'_, Result<(), NoSlot>> {
        let chat_id = target::chat_id(target);
        Box::pin(async move {
            match (&self.bot, chat_id) {
                (Some(bot), Some(chat_id)) => bot.slot_unless_stopping(chat_id, wait_max).await,
                // It will be refused.
                _ => Ok(()),
            }
        })
    }

    fn deliver(&self, message: OutboundMessage) -> BoxFuture<'_, AttemptOutcome> {
        Box::pin(async move {
            match &self.bot {
                Some(bot) => deliver::deliver(bot, message).await,
                None => AttemptOutcome::TryAgain { reason: off(), retry_after_ms: None },
            }
        })
    }

    fn answers(&self) -> Answers {
        Answers { has_reactions: true, needs_thread: true }
    }

    fn resolve(&self, request: &NotifyDelivery) -> Result<NotifyTarget, String> {
        match self.bot {
            Some(_) => target::resolve(request),
            None => Err(off()),
        }
    }

    fn notify(&self, message: NotifyMessage) -> BoxFuture<'_, NotifyOutcome> {
        Box::pin(async move {
            match &self.bot {
                Some(bot) => notify::notify(bot, message).await,
                None => NotifyOutcome::TryAgain { obstacle: Obstacle::Unavailable, reason: off(), retry_after: None },
            }
        })
    }

    fn delivered_elsewhere(&self, message: NotifyMessage, ids: Vec<String>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(bot) = &self.bot {
                notify::remember(bot, &message, &ids).await;
            }
        })
    }

    fn pairing_link(&self, code: String) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let username = self.bot.as_ref()?.username().await?;
            Some(format!("https://t.me/{username}?start={code}"))
        })
    }

    fn receive(&self, call: WebhookCall) -> BoxFuture<'_, WebhookAnswer> {
        Box::pin(async move {
            match &self.bot {
                Some(bot) => webhook::receive(bot, call).await,
                None => WebhookAnswer::NotFound,
            }
        })
    }
}

/// Why nothing is sent while Telegram is off.
fn off() -> String {
    "Telegram is not configured on this hub; its operator has to set telegram.token_file first".to_owned()
}
