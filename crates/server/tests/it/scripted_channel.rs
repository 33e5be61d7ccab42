use std::sync::Arc;
use std::time::Duration;

use bellwire_core::person::ChannelName;
use bellwire_server::channels::{
    Channel, ChannelHub, ChannelStatus, ChannelTask, Channels, Grouping, NoSlot, NotifyDelivery, NotifyMessage,
    NotifyOutcome, NotifyTarget, OutboundMessage, Sending, SettingsShape, TargetField, TargetKind, Verification,
    VerifiedField,
};
use bellwire_store::AttemptOutcome;
use futures_util::future::BoxFuture;

static SHAPE: SettingsShape = SettingsShape {
    display_name: "email",
    description: "Email.",
    target: TargetField {
        name: "address",
        description: "The address.",
        kind: TargetKind::Text { max: 254 },
        is_writable: true,
        example: "ada@example.org",
        parse: |text| Ok(text.to_owned()),
    },
    verified: VerifiedField { name: "confirmed", description: "Whether it was confirmed." },
    verification: Verification::Code,
};

/// A channel that hands each message to a function of the test, which returns the outcome.
pub(crate) struct ScriptedChannel<F> {
    name: ChannelName,
    deliver: F,
    slot: fn() -> Slot,
}

/// A slot to send in, or why there is none.
pub(crate) type Slot = BoxFuture<'static, Result<(), NoSlot>>;

/// Its name.
pub(crate) fn email() -> ChannelName {
    ChannelName::parse("email").unwrap()
}

/// A registry with only a channel called `email`.
pub(crate) fn scripted<F>(deliver: F) -> Channels
where
    F: Fn(OutboundMessage) -> BoxFuture<'static, AttemptOutcome> + Send + Sync + 'static,
{
    Channels::new(vec![scripted_as(email(), deliver)]).unwrap()
}

/// A channel of this name.
pub(crate) fn scripted_as<F>(name: ChannelName, deliver: F) -> Arc<dyn Channel>
where
    F: Fn(OutboundMessage) -> BoxFuture<'static, AttemptOutcome> + Send + Sync + 'static,
{
    Arc::new(ScriptedChannel { name, deliver, slot: || Box::pin(async { Ok(()) }) })
}

/// A registry with only a channel called `email`, which accepts every message that has this slot.
pub(crate) fn paced(slot: fn() -> Slot) -> Channels {
    let deliver =
        |_: OutboundMessage| -> BoxFuture<'static, AttemptOutcome> { Box::pin(async { AttemptOutcome::Sent }) };
    Channels::new(vec![Arc::new(ScriptedChannel { name: email(), deliver, slot })]).unwrap()
}

impl<F> Channel for ScriptedChannel<F>
where
    F: Fn(OutboundMessage) -> BoxFuture<'static, AttemptOutcome> + Send + Sync + 'static,
{
    fn name(&self) -> ChannelName {
        self.name.clone()
    }

    fn settings(&self) -> &SettingsShape {
        &SHAPE
    }

    fn sending(&self) -> Sending {
        Sending { grouping: Grouping::Digest, concurrency: 4, attempt_max: Duration::from_secs(60) }
    }

    fn status(&self) -> ChannelStatus {
        ChannelStatus::Ready
    }

    fn start(&self, _: ChannelHub) -> Vec<ChannelTask> {
        Vec::new()
    }

    fn slot(&self, _: &str, _: Duration) -> BoxFuture<'_, Result<(), NoSlot>> {
        (self.slot)()
    }

    fn deliver(&self, message: OutboundMessage) -> BoxFuture<'_, AttemptOutcome> {
        (self.deliver)(message)
    }

    fn resolve(&self, _: &NotifyDelivery) -> Result<NotifyTarget, String> {
        Err("the tests of the outbox do not notify".to_owned())
    }

    fn notify(&self, _: NotifyMessage) -> BoxFuture<'_, NotifyOutcome> {
        Box::pin(async { NotifyOutcome::Refused { reason: "the tests of the outbox do not notify".to_owned() } })
    }
}
