//! A call of the `notify` tool: from its arguments to its answer.

use bellwire_core::notify::{ErrorClass, NotifyCall, NotifyError, RequestContext};
use bellwire_core::person::ToolArguments;
use bellwire_store::{ChosenContext, Claimant, InboundMessage, NotifyAnswer, NotifyEnding, NotifyKey, SentFrom};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

use super::attempt::{self, Asker, Attempt, Attempted};
use super::envelope::{DeliverAnswer, DeliverArguments};
use super::prepared::{ClaimContext, Prepared, Resolved};
use super::refusal::{Refusal, RefusedRequest};
use super::{asking, channel_facts, hash_of, switchboard, uuid_of};
use crate::clock;
use crate::http::Hub;
use crate::tools::Context;

/// The answer of the tool.
pub(crate) struct NotifyToolAnswer {
    pub(crate) value: Value,
    pub(crate) is_error: bool,
}

/// Delivers what an agent asks for, or says why not. Every decision is in the ledger.
pub(crate) async fn notify(hub: &Hub, context: &Context, arguments: &ToolArguments) -> NotifyToolAnswer {
    let mut request =
        RefusedRequest { origin: context.origin(), user_id: context.user_id.clone(), ..RefusedRequest::default() };
    match decided(hub, context, arguments, &mut request).await {
        Ok((channel, Some(answer))) => answered(&channel, answer),
        Ok((_, None)) => failed(NotifyError::unknown_outcome("there is no answer yet; it is still being delivered")),
        Err(refusal) => {
            // The store has recorded a refusal without a reason.
            if !refusal.reason.is_empty() {
                request.record(hub, &refusal).await;
            }
            refused(refusal.error)
        }
    }
}

async fn decided(
    hub: &Hub,
    context: &Context,
    arguments: &ToolArguments,
    request: &mut RefusedRequest,
) -> Result<(String, Option<NotifyAnswer>), Refusal> {
    limit(context)?;
    let facts = channel_facts(&hub.channels);
    let mut call = NotifyCall::parse(arguments, &facts)?;
    (request.channel, request.intent) = (call.channel.to_string(), Some(call.intent));
    let (mut user_id, mut conversation_id) = (context.user_id.clone(), context.conversation_id.clone());
    let mut chosen = None;
    if call.intent.answers() {
        user_id = owner(hub, context).await?;
        if call.request_context.is_none() {
            let answered = chosen_context(hub, context, user_id.as_deref()).await?;
            chosen = call_key(context, user_id.as_deref())
                .map(|call_key| ChosenContext { call_key, context: answered.clone() });
            call = call.answering(answered, &facts)?;
        }
        if let Some(answered) = check_thread(hub, context, &call).await? {
            (user_id, conversation_id) = (Some(answered.user_id), Some(answered.conversation_id));
        }
    }
    let request_id = request_id(context, &call);
    request.request_id = Some(request_id);
    let channel = call.channel.to_string();
    let origin = context.origin();
    let resolved = Resolved::new(hub, &origin, call, request_id, user_id.clone()).await?;
    if let Some(known) = resolved.known_answer(hub).await? {
        return Ok((channel, Some(known)));
    }
    let prepared = resolved.permitted(hub).await?;
    let claim = prepared.claim(ClaimContext {
        on_behalf_of: user_id,
        conversation_id,
        correlation_id: Some(context.correlation_id.clone()),
        claimant: Claimant::Tool,
        chosen,
    });
    let (hub_of_attempt, target) = (hub.clone(), prepared.target.target.clone());
    let work =
        move |attempt: Attempt| -> BoxFuture<'static, Attempted> { Box::pin(make(hub_of_attempt, prepared, attempt)) };
    Ok((channel, attempt::run(hub, claim, target, work).await?))
}

/// Makes the attempt of a claimed request. If it is made elsewhere, the channel learns what was delivered.
async fn make(hub: Hub, prepared: Prepared, attempt: Attempt) -> Attempted {
    let arguments = DeliverArguments {
        source_butler: prepared.origin.clone(),
        notify_request: prepared.envelope(),
        user_id: prepared.recipient.user_id().map(str::to_owned),
    };
    let (request_id, channel) = (prepared.request_id, prepared.call.channel.as_str());
    let attempted = match &hub.notify.switchboard {
        Some(remote) => {
            if let Err(error) = attempt.start(SentFrom::Elsewhere).await {
                return Err(error.into()).into();
            }
            let arguments = &arguments;
            let ask = |question| async move {
                match remote.call::<DeliverAnswer>(arguments, question).await {
                    Ok((answer, meta)) => Attempted { outcome: answer.outcome(request_id, channel), meta },
                    Err(failure) => Err(failure).into(),
                }
            };
            asking::until_known(hub.channels.lease_of(channel), ask).await
        }
        None => {
            let (answer, meta) = switchboard::deliver(&hub, arguments, Asker::Here(&attempt)).await;
            Attempted { outcome: answer.outcome(request_id, channel), meta }
        }
    };
    let ids = attempted.delivered_ids();
    if hub.notify.sends_elsewhere()
        && !ids.is_empty()
        && let Some(channel) = hub.channels.get(channel)
    {
        channel.delivered_elsewhere(prepared.message(&attempt), ids).await;
    }
    attempted
}

/// Every call may write to the ledger, so calls count against the token's publishing rate.
fn limit(context: &Context) -> Result<(), Refusal> {
    use crate::usage::PublishRefused::TooFast;
    match context.identity.usage.publish(1, std::time::Instant::now()) {
        Err(TooFast(exceeded)) => {
            let error = NotifyError::new(ErrorClass::OverloadRejected, "This agent calls notify too fast");
            let error = error.retry_after(Some(exceeded.retry_after_seconds));
            Err(Refusal { error, reason: "too many calls".to_owned() })
        }
        _ => Ok(()),
    }
}

/// The owner of the conversation in which the tool is called.
async fn owner(hub: &Hub, context: &Context) -> Result<Option<String>, Refusal> {
    match (&context.user_id, &context.conversation_id) {
        (Some(user_id), _) => Ok(Some(user_id.clone())),
        (None, Some(id)) => Ok(Some(hub.store.conversation(context.caller(), id.clone()).await?.user_id)),
        (None, None) => Ok(None),
    }
}

/// What makes two calls without a request_context the same call; none without an idempotency key.
fn call_key(context: &Context, user_id: Option<&str>) -> Option<NotifyKey> {
    let (key, token) = (context.idempotency_key.as_deref()?, context.identity.token_id.as_str());
    let conversation = context.conversation_id.as_deref().unwrap_or_default();
    let user_id = user_id.unwrap_or_default();
    Some(hash_of(&["answer", token, key, user_id, conversation, context.agent().as_str()]))
}

/// The message that an answer without a request_context belongs to: the one that was chosen when the same call was made
/// before, else the newest that this agent has read in this conversation.
async fn chosen_context(hub: &Hub, context: &Context, user_id: Option<&str>) -> Result<RequestContext, Refusal> {
    if let Some(call_key) = call_key(context, user_id)
        && let Some(chosen) = hub.store.chosen_context(call_key).await?
    {
        return Ok(chosen);
    }
    let found = match (user_id, &context.conversation_id) {
        (Some(user_id), Some(conversation_id)) => {
            hub.store.reply_context(user_id.to_owned(), conversation_id.clone(), context.agent()).await?
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let message = "Missing required request_context field 'request_id'. No message that came by a channel has been \
                       shown in this conversation, so there is nothing to answer: give the request_context of the \
                       message, or use intent 'send'";
        Refusal::invalid("request_context", message)
    })
}

/// The answered message, on a channel with threads. It must belong to a conversation that the caller may read.
async fn check_thread(hub: &Hub, context: &Context, call: &NotifyCall) -> Result<Option<InboundMessage>, Refusal> {
    let channel = hub.channels.get(call.channel.as_str());
    if !channel.is_some_and(|channel| channel.answers().needs_thread) {
        return Ok(None);
    }
    let thread = call.request_context.as_ref().and_then(|context| context.source_thread_identity.clone());
    let found = hub.store.inbound_message(call.channel.to_string(), thread.unwrap_or_default()).await?;
    let given = call.request_context.as_ref().map(|context| context.source_sender_identity.as_str());
    let is_readable = |message: &InboundMessage| {
        given == Some(message.context.source_sender_identity.as_str())
            && context.caller().may_see(&message.conversation_id, &message.user_id)
    };
    // The text is the same whether or not the message exists.
    let refused = || {
        let message = "Invalid request_context field 'source_thread_identity': it is no message of a conversation that you \
                       may read";
        Refusal::invalid("request_context", message)
    };
    found.filter(is_readable).map(Some).ok_or_else(refused)
}

/// The id of the request: that of its context, or one per idempotency key, so that a repeat is recognised, or a new one.
fn request_id(context: &Context, call: &NotifyCall) -> Uuid {
    match (&call.request_context, &context.idempotency_key) {
        (Some(given), _) => given.request_id,
        (None, Some(key)) => uuid_of(&hash_of(&["request", &context.identity.token_id, key])),
        (None, None) => clock::new_id(),
    }
}

fn answered(channel: &str, answer: NotifyAnswer) -> NotifyToolAnswer {
    let ok = |value| NotifyToolAnswer { value, is_error: false };
    match answer.ending {
        NotifyEnding::Delivered { delivery_id } => {
            ok(json!({ "status": "ok", "delivery": { "channel": channel, "delivery_id": delivery_id } }))
        }
        NotifyEnding::Deferred { deliver_at, reason } => ok(json!({
            "status": "deferred",
            "notification_id": answer.notification_id.map(|id| id.0),
            "deliver_at": deliver_at.to_string(),
            "reason": reason,
        })),
        NotifyEnding::Failed { class, message, retryable, retry_after_seconds, first_part } => {
            let mut failed = failed(NotifyError { class, message, retryable, retry_after_seconds });
            if let Some(delivery_id) = first_part {
                failed.value["delivery"] = json!({ "channel": channel, "delivery_id": delivery_id });
            }
            failed
        }
    }
}

/// A failed attempt, or one that was not made because of a limit.
fn failed(error: NotifyError) -> NotifyToolAnswer {
    let mut value = json!({
        "status": "error",
        "error": { "class": error.class.as_str(), "message": error.message, "retryable": error.retryable },
    });
    if let Some(seconds) = error.retry_after_seconds {
        value["retry_after_seconds"] = seconds.into();
    }
    NotifyToolAnswer { value, is_error: true }
}

/// A refused call: a text that says what to fix.
pub(crate) fn refused(error: NotifyError) -> NotifyToolAnswer {
    if error.class != ErrorClass::ValidationError {
        return failed(error);
    }
    let value = json!({
        "status": "error", "error": error.message, "error_class": error.class.as_str(), "retryable": false,
    });
    NotifyToolAnswer { value, is_error: true }
}
