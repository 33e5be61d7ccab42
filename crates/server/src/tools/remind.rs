use bellwire_core::person::Remind;
use bellwire_store::NewReminder;
use serde_json::json;

use super::tool::{CompletedCall, ResultForm, Tool, ToolHints, ToolInvocation, ToolRefusal};

const NAME: &str = "remind";

/// Schedules a notification for the agent's user.
pub(super) const TOOL: Tool = Tool {
    name: NAME,
    title: "Remind the user later",
    description: "Remind the user of something at a later time. Use it when the user names a time or a delay (\"remind me \
        tomorrow at nine\", \"in half an hour\"). It becomes a notification of type reminder then, also when this \
        conversation is long over; the user can see and cancel it until then.\n\n\
        Give exactly one of `at` (RFC 3339 with the user's offset) and `in_minutes`. Do not use it for notes to \
        yourself (`notify_self`), nor for what the user should know now (`send_notification`).\n\n\
        Returns `success`, the `reminder_id` and `at`, the time in UTC. A refusal says in `message` what to correct.\n\n\
        Example: {\"message\": \"Call the dentist\", \"at\": \"2027-01-04T09:00:00+01:00\"}",
    hints: ToolHints { read_only: false, idempotent: false, open_world: true },
    input: Remind::ARGUMENTS,
    takes_channel: false,
    result_form: ResultForm::Success,
    output: || {
        json!({
            "reminder_id": { "type": "string", "format": "uuid", "description": "The reminder's id." },
            "at": { "type": "string", "format": "date-time", "description": "When the user is reminded." },
        })
    },
    run: |call| Box::pin(run(call)),
    returns_notifications: false,
    needs_user: true,
    refuse: ToolRefusal::into_json,
};

async fn run(call: ToolInvocation) -> Result<CompletedCall, ToolRefusal> {
    let ToolInvocation { hub, context, arguments } = call;
    let user_id = context.user_id.clone().ok_or_else(|| ToolRefusal::missing("user_id"))?;
    // Idempotency compares the arguments, not the computed time: a repeated "in 30 minutes" is the same call.
    let message = arguments.text("message").ok().flatten().unwrap_or_default();
    let meaning = json!({
        "user_id": user_id, "conversation_id": context.conversation_id, "message": message.trim(),
        "at": arguments.text("at").ok().flatten(), "in_minutes": arguments.integer("in_minutes").ok().flatten(),
    });
    let idempotency_key = context.idempotency_key(NAME, &meaning);
    let remind = match (Remind::parse(&arguments, hub.store.now()), &idempotency_key) {
        // In a repeated call `at` may have passed by now; it was valid when the call was first made.
        (Err(invalid), Some(idempotency_key)) => match hub.store.recall(idempotency_key.clone()).await {
            Ok(Some(_)) => Remind { message: message.trim().to_owned(), at: hub.store.now() },
            _ => return Err(ToolRefusal::invalid(invalid)),
        },
        (parsed, _) => parsed.map_err(ToolRefusal::invalid)?,
    };
    let preview = remind.preview();
    let reminder = NewReminder {
        caller: context.caller(),
        user_id,
        origin: context.origin(),
        conversation_id: context.conversation_id.clone(),
        correlation_id: Some(context.correlation_id.clone()),
        message: remind.message,
        at: remind.at,
        idempotency_key,
    };
    let reminder = hub.store.remind(reminder).await.map_err(|error| ToolRefusal::failed("keep the reminder", error))?;
    let at = reminder.at.to_string();
    Ok(CompletedCall::success("reminder_created", format!("Reminder set for {at}: {preview}"))
        .with("reminder_id", reminder.id.to_string())
        .with("at", at))
}
