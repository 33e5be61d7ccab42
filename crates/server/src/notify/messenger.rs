//! The Messenger: the only part that sends. It takes routes and makes one attempt on a channel.

use std::time::{Duration, Instant};

use bellwire_core::notify::{ErrorClass, NotifyCall, NotifyError};
use bellwire_core::person::ToolArguments;
use bellwire_store::{Claimant, NotifyAnswer, NotifyEnding, SentFrom};
use futures_util::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::attempt::{self, Asker, Attempt, Attempted, Question};
use super::channel_facts;
use super::envelope::{
    AnswerMeta, Delivered, Failure, NotifyRequest, NotifyResponse, Outcome, RouteEnvelope, RouteResponse, SWITCHBOARD,
    unproven,
};
use super::prepared::{ClaimContext, Prepared, Resolved};
use super::refusal::{Refusal, RefusedRequest};
use crate::channels::{NoSlot, NotifyOutcome, Obstacle};
use crate::http::Hub;

/// How long a message waits for its slot.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(5);

/// The channel's name for the ledger; blank if there is no such channel, because the ledger has no texts of callers.
fn known_channel(hub: &Hub, name: &str) -> String {
    hub.channels.get(name).map(|channel| channel.name().to_string()).unwrap_or_default()
}

/// Carries a route out. Its caller is trusted; what it says is not. If another process asks, the Messenger claims the
/// request.
pub(crate) async fn execute(hub: &Hub, route: RouteEnvelope, asker: Asker<'_>) -> (RouteResponse, AnswerMeta) {
    let started = Instant::now();
    let (context, request_id) = (route.request_context.clone(), route.request_context.0.request_id);
    let origin = route.input.context.notify_request.origin_butler.clone();
    let request = RefusedRequest {
        origin,
        user_id: route.input.context.user_id.clone(),
        channel: known_channel(hub, &route.input.context.notify_request.delivery.channel),
        intent: Some(route.input.context.notify_request.delivery.intent.into()),
        request_id: Some(request_id),
    };
    let carried_out = match resolve(hub, route).await {
        Ok(resolved) => match asker {
            Asker::Here(attempt) => send_claimed(hub, resolved, attempt).await.map(|attempted| (attempted, None)),
            Asker::Elsewhere(question) => claim_and_send(hub, resolved, question).await,
        },
        Err(refusal) => Err(refusal),
    };
    let millis = |duration_ms: Option<u64>| {
        duration_ms.unwrap_or_else(|| u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX))
    };
    match carried_out {
        Ok((Attempted { outcome, meta }, duration_ms)) => {
            let response = NotifyResponse::of(request_id, outcome);
            (RouteResponse::of(Some(context), Ok(response), millis(duration_ms)), meta)
        }
        Err(refusal) => {
            // The outcome of a claimed request is recorded with its claim, and the store has recorded a refusal without a
            // reason.
            if matches!(asker, Asker::Elsewhere(_)) && !refusal.reason.is_empty() {
                request.record(hub, &refusal).await;
            }
            let is_released = refusal.reason.is_empty() && refusal.error.retryable;
            let response = NotifyResponse::of(request_id, Err(refusal.error.into()));
            let meta = AnswerMeta { is_released, ..AnswerMeta::default() };
            (RouteResponse::of(Some(context), Ok(response), millis(None)), meta)
        }
    }
}

/// Checks the route and the request in it, and resolves the target again.
async fn resolve(hub: &Hub, route: RouteEnvelope) -> Result<Resolved, Refusal> {
    let context = &route.request_context.0;
    let (request, user_id) = (route.input.context.notify_request, route.input.context.user_id);
    if context.source_endpoint_identity != SWITCHBOARD {
        let message = "request_context.source_endpoint_identity: a route comes from the switchboard";
        return Err(Refusal::invalid("route", message));
    }
    if context.source_sender_identity != request.origin_butler {
        let message = "request_context.source_sender_identity: it is not the origin_butler of the notify request";
        return Err(Refusal::invalid("origin", message));
    }
    let is_other = |id: Uuid| id != context.request_id;
    if request.request_context.as_ref().is_some_and(|own| is_other(own.0.request_id)) {
        let message = "request_context.request_id: it is not the request_id of the notify request";
        return Err(Refusal::invalid("route", message));
    }
    let request_id = context.request_id;
    let origin = request.origin_butler.clone();
    let call = checked_call(hub, request)?;
    Resolved::new(hub, &origin, call, request_id, user_id).await
}

/// Applies the rules of the tool's arguments to a request from outside.
pub(super) fn checked_call(hub: &Hub, request: NotifyRequest) -> Result<NotifyCall, Refusal> {
    let delivery = request.delivery;
    let context = request.request_context;
    let arguments = json!({
        "channel": delivery.channel, "intent": delivery.intent, "message": delivery.message,
        "recipient": delivery.recipient, "subject": delivery.subject, "emoji": delivery.emoji,
        "request_context": context,
    });
    let arguments = ToolArguments::parse(arguments).map_err(|message| Refusal::invalid("request", message))?;
    let call = NotifyCall::parse(&arguments, &channel_facts(&hub.channels))?;
    match call.intent.answers() && call.request_context.is_none() {
        true => Err(Refusal::invalid("request_context", "Missing required request_context field 'request_id'")),
        false => Ok(call),
    }
}

/// Sends a request that this process has claimed, if its target is still permitted.
async fn send_claimed(hub: &Hub, resolved: Resolved, attempt: &Attempt) -> Result<Attempted, Refusal> {
    let prepared = resolved.permitted(hub).await?;
    if prepared.key != attempt.key {
        let error = NotifyError::new(ErrorClass::InternalError, "The target has changed since it was checked");
        return Ok(Err(error.into()).into());
    }
    Ok(send(hub.clone(), prepared, attempt.clone()).await)
}

/// Claims a request that another process sent, and sends it. If that process uses this store, its claim is taken over.
async fn claim_and_send(
    hub: &Hub,
    resolved: Resolved,
    question: Question,
) -> Result<(Attempted, Option<u64>), Refusal> {
    let channel = resolved.channel().to_string();
    let known = match question {
        Question::First => resolved.known_answer(hub).await?,
        Question::Again => resolved.last_answer(hub).await?,
    };
    if let Some(known) = known {
        let duration_ms = known.duration_ms;
        return Ok((answered(Some(known), &channel), Some(duration_ms)));
    }
    let prepared = resolved.permitted(hub).await?;
    let claim = prepared.claim(ClaimContext {
        on_behalf_of: None,
        conversation_id: None,
        correlation_id: None,
        claimant: Claimant::Messenger,
        chosen: None,
    });
    let (hub_of_attempt, target) = (hub.clone(), prepared.target.target.clone());
    let work =
        move |attempt: Attempt| -> BoxFuture<'static, Attempted> { Box::pin(send(hub_of_attempt, prepared, attempt)) };
    let answer = attempt::run(hub, claim, target, work).await?;
    let duration_ms = answer.as_ref().map(|answer| answer.duration_ms);
    Ok((answered(answer, &channel), duration_ms))
}

/// What a recorded answer says; without one, the attempt goes on.
fn answered(answer: Option<NotifyAnswer>, channel: &str) -> Attempted {
    let Some(answer) = answer else {
        let outcome = Err(unproven("there is no answer yet; it is still being delivered"));
        return Attempted { outcome, meta: AnswerMeta { is_in_flight: true, ..AnswerMeta::default() } };
    };
    let NotifyAnswer { ending, further_parts, is_unreachable, .. } = answer;
    let meta = AnswerMeta { is_in_flight: false, is_unreachable, is_released: !ending.is_final(), further_parts };
    Attempted { outcome: outcome_of(ending, channel), meta }
}

fn outcome_of(ending: NotifyEnding, channel: &str) -> Outcome {
    let delivered = |delivery_id: String| Delivered { channel: channel.to_owned(), delivery_id };
    match ending {
        NotifyEnding::Delivered { delivery_id } => Ok(delivered(delivery_id)),
        NotifyEnding::Deferred { deliver_at, .. } => {
            let message = format!("The recipient has quiet hours; it is delivered at {deliver_at}");
            Err(NotifyError::invalid(message).into())
        }
        NotifyEnding::Failed { class, message, retryable, retry_after_seconds, first_part } => Err(Failure {
            error: NotifyError { class, message, retryable, retry_after_seconds },
            first_part: first_part.map(delivered),
        }),
    }
}

/// Makes the one attempt. The start is committed when the channel has a slot, and before it is called.
async fn send(hub: Hub, prepared: Prepared, attempt: Attempt) -> Attempted {
    let Some(channel) = hub.channels.get(prepared.call.channel.as_str()) else {
        return Err(NotifyError::invalid("The hub has no such channel").into()).into();
    };
    if let Err(no_slot) = channel.slot(&prepared.target.target, SLOT_WAIT_MAX).await {
        return Err(not_attempted(&no_slot).into()).into();
    }
    if let Err(error) = attempt.start(SentFrom::Here).await {
        return Err(error.into()).into();
    }
    let outcome = channel.notify(prepared.message(&attempt)).await;
    let meta = meta_of(&outcome);
    Attempted { outcome: classified(outcome, prepared.call.channel.as_str()), meta }
}

fn not_attempted(no_slot: &NoSlot) -> NotifyError {
    match no_slot {
        NoSlot::Busy(wait) => {
            // Rounded up: a retry before its end would be refused again.
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            let error = NotifyError::new(ErrorClass::OverloadRejected, no_slot.to_string());
            error.retry_after(u64::try_from(seconds).ok())
        }
        NoSlot::Stopping => NotifyError::new(ErrorClass::TargetUnavailable, no_slot.to_string()),
    }
}

fn meta_of(outcome: &NotifyOutcome) -> AnswerMeta {
    let is_unreachable = matches!(outcome, NotifyOutcome::Unreachable { .. });
    let further_parts = match outcome {
        NotifyOutcome::Delivered { further_parts, .. } | NotifyOutcome::Partial { further_parts, .. } => {
            further_parts.clone()
        }
        _ => Vec::new(),
    };
    AnswerMeta { is_unreachable, further_parts, ..AnswerMeta::default() }
}

/// What an attempt on a channel means for the caller.
fn classified(outcome: NotifyOutcome, channel: &str) -> Outcome {
    let delivered = |delivery_id: String| Delivered { channel: channel.to_owned(), delivery_id };
    match outcome {
        NotifyOutcome::Delivered { delivery_id, .. } => Ok(delivered(delivery_id)),
        NotifyOutcome::Partial { delivery_id, further_parts, parts, reason } => {
            let message = format!("{} of {parts} parts delivered: {reason}", 1 + further_parts.len());
            let error = NotifyError::new(ErrorClass::InternalError, message);
            Err(Failure { error, first_part: Some(delivered(delivery_id)) })
        }
        NotifyOutcome::Refused { reason } | NotifyOutcome::Unreachable { reason } => {
            Err(NotifyError::invalid(reason).into())
        }
        NotifyOutcome::TryAgain { obstacle, reason, retry_after } => {
            let class = match obstacle {
                Obstacle::Unavailable => ErrorClass::TargetUnavailable,
                Obstacle::TimedOut => ErrorClass::Timeout,
            };
            let seconds = retry_after.map(|wait| wait.as_secs().max(1));
            Err(NotifyError::new(class, reason).retry_after(seconds).into())
        }
        NotifyOutcome::Unknown { reason } => Err(unproven(&reason)),
    }
}
