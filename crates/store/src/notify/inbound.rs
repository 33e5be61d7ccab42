use bellwire_core::notify::RequestContext;
use bellwire_core::{Event, Time};
use serde_json::Value;

/// A message that a person sent by a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundMessage {
    /// Its sender.
    pub user_id: String,
    /// The conversation it went to.
    pub conversation_id: String,
    /// Where it came from.
    pub context: RequestContext,
}

/// An inbound message as it is stored, by channel and thread.
#[derive(Clone, Debug)]
pub(crate) struct InboundRow {
    pub(crate) user_id: String,
    pub(crate) conversation_id: String,
    /// The request_context, as JSON.
    pub(crate) context: String,
    pub(crate) at: Time,
}

impl InboundRow {
    /// The message; none if the stored context cannot be read.
    pub(crate) fn message(&self) -> Option<InboundMessage> {
        let context = RequestContext::parse(&Value::String(self.context.clone())).ok()?;
        let (user_id, conversation_id) = (self.user_id.clone(), self.conversation_id.clone());
        Some(InboundMessage { user_id, conversation_id, context })
    }
}

/// The newest inbound message that an agent has read.
#[derive(Clone, Debug)]
pub(crate) struct ReplyContextRow {
    /// The request_context, as JSON.
    pub(crate) context: String,
    pub(crate) at: Time,
}

impl ReplyContextRow {
    pub(crate) fn context(&self) -> Option<RequestContext> {
        RequestContext::parse(&Value::String(self.context.clone())).ok()
    }
}

/// The request_context of an inbound message. Only the hub makes events of type `user.message`, so it is authentic.
pub(crate) fn inbound_context(event: &Event) -> Option<(RequestContext, String)> {
    if event.kind().as_str() != "user.message" {
        return None;
    }
    let value = event.payload().get("request_context")?;
    let context = RequestContext::parse(value).ok()?;
    Some((context, value.to_string()))
}
