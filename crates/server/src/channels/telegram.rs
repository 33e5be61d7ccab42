//! The Telegram channel. So far only the settings of people exist; nothing is sent.

use std::time::Duration;

use bellwire_core::person::ChannelName;
use bellwire_store::AttemptOutcome;
use futures_util::future::BoxFuture;

use super::{
    Channel, ChannelHub, ChannelStatus, ChannelTask, Grouping, NotifyDelivery, NotifyMessage, NotifyOutcome,
    NotifyTarget, Obstacle, OutboundMessage, Sending, SettingsShape, TargetField, TargetKind, Verification,
    VerifiedField,
};

/// The name of the channel.
const NAME: &str = "telegram";

static SHAPE: SettingsShape = SettingsShape {
    display_name: "Telegram",
    description: "Telegram.",
    target: TargetField {
        name: "chat_id",
        description: "The id of the chat, if it is known.",
        kind: TargetKind::Integer,
        is_writable: false,
        example: "77",
        parse: |text| match text.parse::<i64>() {
            Ok(id) => Ok(id.to_string()),
            Err(_) => Err("is no id of a chat; write an integer".to_owned()),
        },
    },
    verified: VerifiedField { name: "paired", description: "Whether the chat was confirmed to be the person's." },
    verification: Verification::Pairing,
};

/// Telegram, which this version cannot send with yet.
pub struct TelegramChannel;

impl Channel for TelegramChannel {
    fn name(&self) -> ChannelName {
        ChannelName::parse(NAME).expect("the name is valid")
    }

    fn settings(&self) -> &SettingsShape {
        &SHAPE
    }

    fn sending(&self) -> Sending {
        Sending { grouping: Grouping::ByConversation, concurrency: 1, attempt_max: Duration::from_secs(60) }
    }

    fn status(&self) -> ChannelStatus {
        ChannelStatus::Off { fix: "wait for a version that can send with Telegram".to_owned() }
    }

    fn start(&self, _: ChannelHub) -> Vec<ChannelTask> {
        Vec::new()
    }

    fn deliver(&self, _: OutboundMessage) -> BoxFuture<'_, AttemptOutcome> {
        Box::pin(async { AttemptOutcome::TryAgain { reason: off(), retry_after_ms: None } })
    }

    fn resolve(&self, _: &NotifyDelivery) -> Result<NotifyTarget, String> {
        Err(off())
    }

    fn notify(&self, _: NotifyMessage) -> BoxFuture<'_, NotifyOutcome> {
        let (obstacle, reason) = (Obstacle::Unavailable, off());
        Box::pin(async move { NotifyOutcome::TryAgain { obstacle, reason, retry_after: None } })
    }
}

fn off() -> String {
    "Telegram is not configured on this hub".to_owned()
}
