use bellwire_core::notify::Intent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::context::WireContext;
use super::read::Envelope;

/// notify.v1: what an agent wants to be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotifyRequest {
    pub(crate) schema_version: NotifyVersion,
    /// The agent that asks. It must be the origin that the caller authenticated.
    pub(crate) origin_butler: String,
    /// What to deliver.
    pub(crate) delivery: DeliveryFields,
    /// The inbound request, for a reply or a reaction, or for duplicates to be recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_context: Option<WireContext>,
}

/// The version of a notify request.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum NotifyVersion {
    #[default]
    #[serde(rename = "notify.v1")]
    V1,
}

/// What to deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryFields {
    /// What to do.
    pub(crate) intent: WireIntent,
    /// The channel.
    pub(crate) channel: String,
    /// The text; absent for a reaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// The resolved target of a `send`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recipient: Option<String>,
    /// The subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// The emoji of a reaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) emoji: Option<String>,
}

/// The intent on the wire.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WireIntent {
    /// A new message.
    Send,
    /// An answer in its thread.
    Reply,
    /// An emoji on a message.
    React,
}

/// The arguments of the Switchboard's tool `deliver`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliverArguments {
    /// The agent on whose behalf the caller acts; equal to `origin_butler`.
    pub(crate) source_butler: String,
    /// The request.
    pub(crate) notify_request: NotifyRequest,
    /// The person whose target it is. Checked where the store is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<String>,
}

impl Envelope for DeliverArguments {
    const OBJECTS: &'static [&'static str] =
        &["notify_request", "notify_request.delivery", "notify_request.request_context"];
}

impl From<Intent> for WireIntent {
    fn from(intent: Intent) -> Self {
        match intent {
            Intent::Send => Self::Send,
            Intent::Reply => Self::Reply,
            Intent::React => Self::React,
        }
    }
}

impl From<WireIntent> for Intent {
    fn from(intent: WireIntent) -> Self {
        match intent {
            WireIntent::Send => Self::Send,
            WireIntent::Reply => Self::Reply,
            WireIntent::React => Self::React,
        }
    }
}
