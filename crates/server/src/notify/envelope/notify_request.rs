use bellwire_core::notify::Intent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::context::WireContext;
use super::read::Envelope;

/// notify.v1: what an agent wants to be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyRequest {
    /// The version of the envelope.
    pub schema_version: NotifyVersion,
    /// The agent that asks. It must be the origin that the caller authenticated.
    pub origin_butler: String,
    /// What to deliver.
    pub delivery: DeliveryFields,
    /// The inbound request, for a reply or a reaction, or for duplicates to be recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_context: Option<WireContext>,
}

/// The version of a notify request.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NotifyVersion {
    #[default]
    #[serde(rename = "notify.v1")]
    V1,
}

/// What to deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryFields {
    /// What to do.
    pub intent: WireIntent,
    /// The channel.
    pub channel: String,
    /// The text; absent for a reaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The resolved target of a `send`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// The subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The emoji of a reaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
}

/// The intent on the wire.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WireIntent {
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
pub struct DeliverArguments {
    /// The agent on whose behalf the caller acts; equal to `origin_butler`.
    pub source_butler: String,
    /// The request.
    pub notify_request: NotifyRequest,
    /// The person whose target it is. Checked where the store is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

impl Envelope for DeliverArguments {
    const NAME: &'static str = "the arguments of deliver";
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
