use std::time::Instant;

use axum::http::StatusCode;
use bellwire_core::person::NotifySelf;
use bellwire_core::verdict::VerdictKind;
use bellwire_store::{Decision, IncomingEvent, Publish, Receipt};
use serde_json::json;

use super::context::Context;
use super::tool::{CompletedCall, ResultForm, Tool, ToolHints, ToolInvocation, ToolRefusal};
use crate::clock;
use crate::http::{ApiError, Hub};
use crate::usage::PublishRefused;

const NAME: &str = "notify_self";

/// Leaves a note that the agent gets as a notification later.
pub(super) const TOOL: Tool = Tool {
    name: NAME,
    title: "Leave yourself a note",
    description: "Leave yourself a note that comes back to you in this conversation at a later moment.\n\n\
        Use it to keep something in mind across turns that you would otherwise lose: a check to make once the current \
        step is done, a loose end, a promise to the user. Do not use it to tell the user something (they never see \
        it), nor for what you are about to do right now.\n\n\
        `deliver_at` says when you read it: `next_turn` (default) at the start of your next turn, `after_tool` with \
        the result of your next tool call (never with the result of this one), `turn_end` before you finish this turn.\n\n\
        Returns `success` and the `notification_id` of the note. The note arrives once, among your other \
        notifications.\n\n\
        Example: {\"message\": \"Re-run the integration tests before summing up\", \"deliver_at\": \"turn_end\"}",
    hints: ToolHints { read_only: false, idempotent: false, open_world: false },
    input: NotifySelf::ARGUMENTS,
    takes_channel: false,
    result_form: ResultForm::Success,
    output: || {
        json!({
            "notification_id": { "type": "string", "format": "uuid", "description": "The note's id." },
            "deliver_at": {
                "type": "string", "enum": NotifySelf::POINTS, "description": "When you will read it.",
            },
        })
    },
    run: |call| Box::pin(run(call)),
    returns_notifications: false,
    needs_user: false,
    refuse: ToolRefusal::into_json,
};

async fn run(call: ToolInvocation) -> Result<CompletedCall, ToolRefusal> {
    let ToolInvocation { hub, context, arguments } = call;
    let note = NotifySelf::parse(&arguments).map_err(ToolRefusal::invalid)?;
    let conversation_id = context.conversation_id.clone().ok_or_else(|| ToolRefusal::missing("conversation_id"))?;
    let deliver_at = note.deliver_at;
    let preview = note.preview();
    let receipt = publish_note(&hub, &context, &conversation_id, note).await?;
    let id = queued_notification(&receipt)?;
    Ok(CompletedCall::success("note_left", format!("Note left: {preview}"))
        .with("notification_id", id)
        .with("deliver_at", deliver_at))
}

async fn publish_note(
    hub: &Hub,
    context: &Context,
    conversation_id: &str,
    note: NotifySelf,
) -> Result<Receipt, ToolRefusal> {
    let now = clock::now();
    if let Err(PublishRefused::TooFast(exceeded)) = context.identity.usage.publish(1, Instant::now()) {
        let message = "This agent publishes too fast. Try again later.";
        return Err(ToolRefusal::limited(message, exceeded.retry_after_seconds));
    }
    let meaning = json!([conversation_id, context.agent().as_str(), note.message, note.deliver_at]);
    let failed = |error: ApiError| ToolRefusal::failed("leave the note", error);
    let event = note.into_event(&context.call_id).map_err(|invalid| failed(invalid.into()))?;
    let event = event.in_conversation(conversation_id).for_agent(context.agent()).at(now);
    let event = event.correlated(&context.correlation_id).by_agent();
    let events = vec![IncomingEvent::new(event, None)];
    let idempotency_key = context.idempotency_key(NAME, &meaning);
    let receipts = hub.store.publish(Publish { caller: context.caller(), events, idempotency_key }).await;
    let receipt = receipts.map_err(|error| failed(error.into()))?.into_iter().next();
    receipt.ok_or_else(|| failed(ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR)))
}

/// The id of the note's notification. If no subscriber queued one, the agent gets a refusal with the reason.
fn queued_notification(receipt: &Receipt) -> Result<String, ToolRefusal> {
    let waits = |decision: &&Decision| {
        use VerdictKind::{Duplicate, Held, Queued};
        matches!(VerdictKind::parse(&decision.verdict), Some(Queued | Held | Duplicate))
    };
    let id = receipt.verdicts.iter().find(waits).and_then(|decision| decision.notification_id);
    id.map(|id| id.to_string()).ok_or_else(|| {
        let reason = receipt.verdicts.first().map_or("no subscriber listens for notes", |one| &*one.reason);
        ToolRefusal::invalid(format!("The note was not kept, and repeating the call will not help: {reason}"))
    })
}
