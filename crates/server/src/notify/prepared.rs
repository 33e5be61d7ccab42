//! A request on its way to an attempt: its target is resolved, then permitted, then it is claimed.

use bellwire_core::Time;
use bellwire_core::notify::{DedupInput, Intent, NotifyCall, RequestContext};
use bellwire_core::person::ChannelName;
use bellwire_store::{ChosenContext, Claimant, NotifyAnswer, NotifyClaim, NotifyKey, NotifyRecipient};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::attempt::Attempt;
use super::envelope::{DeliveryFields, MCP_CHANNEL, NotifyRequest, NotifyVersion, WireContext};
use super::refusal::Refusal;
use super::{hash_of, recipient, uuid_of};
use crate::channels::{NotifyDelivery, NotifyMessage, NotifyTarget};
use crate::clock;
use crate::http::Hub;

/// A checked call with its target. Whether the origin may use the target is not decided yet.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    origin: String,
    call: NotifyCall,
    request_id: Uuid,
    user_id: Option<String>,
    target: NotifyTarget,
    key: NotifyKey,
    /// What limits the answers to one inbound message.
    answer_key: Option<NotifyKey>,
}

/// A request that may be attempted. The permission check, the dedup key and the send use the same target.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) origin: String,
    pub(crate) call: NotifyCall,
    pub(crate) request_id: Uuid,
    pub(crate) target: NotifyTarget,
    pub(crate) recipient: NotifyRecipient,
    pub(crate) key: NotifyKey,
    answer_key: Option<NotifyKey>,
}

/// What a claim needs besides the request.
pub(crate) struct ClaimContext {
    /// The person the agent works for.
    pub(crate) on_behalf_of: Option<String>,
    pub(crate) conversation_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) claimant: Claimant,
    /// The message that the hub chose for an answer.
    pub(crate) chosen: Option<ChosenContext>,
}

impl Resolved {
    /// Resolves the target of a checked call. `user_id` is the person the agent works for.
    pub(crate) async fn new(
        hub: &Hub,
        origin: &str,
        call: NotifyCall,
        request_id: Uuid,
        user_id: Option<String>,
    ) -> Result<Self, Refusal> {
        let channel = hub.channels.get(call.channel.as_str());
        let channel = channel.ok_or_else(|| Refusal::invalid("channel", "The hub has no such channel"))?;
        let recipient = match (call.intent, &call.recipient) {
            (Intent::Send, None) => Some(recipient::own_target(hub, &call.channel, user_id.as_deref()).await?),
            (_, recipient) => recipient.clone(),
        };
        let delivery = NotifyDelivery {
            intent: call.intent,
            recipient,
            message: call.message.clone(),
            subject: call.subject.clone(),
            emoji: call.emoji.clone(),
            request_context: call.request_context.clone(),
        };
        let argument = if call.intent.answers() { "request_context" } else { "recipient" };
        let target = channel.resolve(&delivery).map_err(|message| Refusal::invalid(argument, message))?;
        let key = key_of(origin, &call, request_id, &target);
        let is_verified = channel.answers().needs_thread;
        let answer_key = call.intent.answers().then(|| answer_key(&call, &target, is_verified, hub.store.now()));
        Ok(Self { origin: origin.to_owned(), call, request_id, user_id, target, key, answer_key })
    }

    pub(crate) fn channel(&self) -> &ChannelName {
        &self.call.channel
    }

    /// The final answer of an equal request. It is given again even if the request would be refused by now.
    pub(crate) async fn known_answer(&self, hub: &Hub) -> Result<Option<NotifyAnswer>, Refusal> {
        Ok(self.last_answer(hub).await?.filter(|answer| answer.ending.is_final()))
    }

    /// The answer of an equal request that has ended, also of one that may be repeated.
    pub(crate) async fn last_answer(&self, hub: &Hub) -> Result<Option<NotifyAnswer>, Refusal> {
        Ok(hub.store.notify_answer(self.key).await?)
    }

    /// Asks whether the origin may use the target.
    pub(crate) async fn permitted(self, hub: &Hub) -> Result<Prepared, Refusal> {
        let Self { origin, call, request_id, user_id, target, key, answer_key } = self;
        let asked = &target.target;
        let (recipient, spelling) =
            recipient::permitted(hub, &origin, &call.channel, asked, user_id.as_deref()).await?;
        let target = NotifyTarget { target: spelling, ..target };
        Ok(Prepared { origin, call, request_id, target, recipient, key, answer_key })
    }
}

impl Prepared {
    /// The notify.v1 envelope. A `send` carries its resolved target, so that nothing after this resolves another one.
    pub(crate) fn envelope(&self) -> NotifyRequest {
        let call = &self.call;
        let recipient = (call.intent == Intent::Send).then(|| self.target.target.clone());
        NotifyRequest {
            schema_version: NotifyVersion::V1,
            origin_butler: self.origin.clone(),
            delivery: DeliveryFields {
                intent: call.intent.into(),
                channel: call.channel.to_string(),
                message: call.message.clone(),
                recipient,
                subject: call.subject.clone(),
                emoji: call.emoji.clone(),
            },
            request_context: Some(WireContext(self.context())),
        }
    }

    /// The context that the call came with, or a minted one.
    fn context(&self) -> RequestContext {
        self.call.request_context.clone().unwrap_or_else(|| minted_context(&self.origin, self.request_id))
    }

    /// The message for the channel.
    pub(crate) fn message(&self, attempt: &Attempt) -> NotifyMessage {
        NotifyMessage {
            id: uuid_of(&self.key),
            intent: self.call.intent,
            origin: self.origin.clone(),
            target: self.target.clone(),
            user_id: self.recipient.user_id().map(str::to_owned),
            conversation_id: attempt.conversation_id.clone(),
            message: self.call.message.clone(),
            subject: self.call.subject.clone(),
            timezone: attempt.timezone.clone(),
            at: clock::now(),
        }
    }

    pub(crate) fn claim(&self, context: ClaimContext) -> NotifyClaim {
        NotifyClaim {
            key: self.key,
            request_id: self.request_id,
            origin: self.origin.clone(),
            intent: self.call.intent,
            channel: self.call.channel.clone(),
            recipient: self.recipient.clone(),
            on_behalf_of: context.on_behalf_of,
            claimant: context.claimant,
            chosen: context.chosen,
            answer_key: self.answer_key,
            conversation_id: context.conversation_id,
            correlation_id: context.correlation_id,
            message: self.call.message.clone(),
            subject: self.call.subject.clone(),
        }
    }
}

/// The context of a request that came with none: it comes from the agent itself.
pub(super) fn minted_context(origin: &str, request_id: Uuid) -> RequestContext {
    RequestContext {
        request_id,
        source_channel: MCP_CHANNEL.to_owned(),
        source_endpoint_identity: format!("butler:{origin}"),
        source_sender_identity: origin.to_owned(),
        source_thread_identity: None,
        received_at: None,
    }
}

fn key_of(origin: &str, call: &NotifyCall, request_id: Uuid, target: &NotifyTarget) -> NotifyKey {
    let whole_target = match &target.thread {
        Some(thread) => format!("{} {thread}", target.target),
        None => target.target.clone(),
    };
    let input = DedupInput {
        request_id,
        origin,
        intent: call.intent,
        channel: call.channel.as_str(),
        target: &whole_target,
        subject: call.subject.as_deref(),
        message: call.message.as_deref(),
        emoji: target.reaction.as_deref().or(call.emoji.as_deref()),
    };
    Sha256::digest(input.bytes()).into()
}

/// One inbound message is identified by its thread, if the hub can verify that; the request id comes from the agent.
/// Otherwise all answers to one sender on one day count together.
fn answer_key(call: &NotifyCall, target: &NotifyTarget, is_verified: bool, now: Time) -> NotifyKey {
    let day = now.to_string().chars().take(10).collect::<String>();
    let message = target.thread.as_deref().filter(|_| is_verified).unwrap_or(&day);
    hash_of(&["answers", call.channel.as_str(), &target.target, message])
}
