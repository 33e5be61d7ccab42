//! The channels: ways to reach a person outside the hub.
//!
//! A channel is a folder that implements [`Channel`], and one line in the registry ([`Channels`]). It composes a message,
//! sends it once and reports what can be proven of the outcome. It knows nothing of batching, quiet hours, limits or
//! retries: the store decides when a message is sent and, from the outcome, whether it is sent again.
//!
//! No other part of the program names a channel. Planning, settings, outbox, readiness and failure notes ask the registry.

mod channel;
pub use bellwire_store::Grouping;
pub use channel::{
    Answers, Channel, ChannelHub, ChannelStatus, ChannelTask, NoSlot, OutboundContent, OutboundMessage, Sending,
};

mod settings_shape;
pub use settings_shape::{SettingsShape, TargetField, TargetKind, Verification, VerifiedField};

mod notify;
pub use notify::{NotifyDelivery, NotifyMessage, NotifyOutcome, NotifyTarget, Obstacle};

mod channel_test;
pub use channel_test::{TestRefusal, TestReport, TestedStep};

mod registry;
pub use registry::{ChannelError, Channels};

mod webhook_call;
pub use webhook_call::{WebhookAnswer, WebhookCall};

mod unsubscribe;
pub use unsubscribe::UnsubscribeLinks;

pub mod email;

pub mod telegram;
