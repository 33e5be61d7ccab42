use bellwire_core::person::{MessageType, SendNotification};
use bellwire_store::{NotificationContent, NotificationDraft, SendResult};
use serde_json::json;

use super::tool::{CompletedCall, ResultForm, Tool, ToolHints, ToolInvocation, ToolRefusal};

const NAME: &str = "send_notification";

/// Sends the agent's user a notification, which stays in the inbox.
pub(super) const TOOL: Tool = Tool {
    name: NAME,
    title: "Send a notification",
    description: "Send a notification to the user. Use this when the user asks to be reminded about something, when \
        you identify information worth flagging for later, or when you want to surface a warning. Notifications \
        persist beyond the current conversation and can be delivered via email if the user has opted in.\n\n\
        Use it once for each fact, and write it so that it can be understood outside this conversation. Do not use it \
        for what you have just said in the chat, for small talk, or twice for the same thing. For a fixed time later use \
        `remind`; for something to be seen right now use `show_notification`.\n\n\
        Returns `success` with the `notification_id`. A refusal says in `message` what to correct; `rate_limited` says \
        in `retry_after_seconds` when there is room again: sum up instead of sending many.\n\n\
        Example: {\"message\": \"Your passport expires on 3 May; renewing takes six weeks\", \"type\": \"warning\"}",
    hints: ToolHints { read_only: false, idempotent: false, open_world: true },
    input: SendNotification::ARGUMENTS,
    takes_channel: false,
    result_form: ResultForm::Success,
    output: || {
        json!({
            "notification_id": { "type": "string", "format": "uuid", "description": "The notification's id." },
            "type": {
                "type": "string", "enum": MessageType::NAMES, "description": "What sort of notification it is.",
            },
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
    let send = SendNotification::parse(&arguments).map_err(ToolRefusal::invalid)?;
    let (preview, kind) = (send.preview(), send.kind.as_str());
    let meaning = json!({
        "user_id": user_id, "conversation_id": context.conversation_id, "message": send.message, "type": kind,
    });
    let draft = NotificationDraft {
        caller: context.caller(),
        user_id,
        origin: context.origin(),
        conversation_id: context.conversation_id.clone(),
        correlation_id: Some(context.correlation_id.clone()),
        content: NotificationContent::Message { kind: send.kind, message: send.message },
        idempotency_key: context.idempotency_key(NAME, &meaning),
    };
    let sent = hub.store.send(draft).await.map_err(|error| ToolRefusal::failed("create notification", error))?;
    match sent {
        SendResult::Stored { id, .. } => {
            Ok(CompletedCall::success("notification_created", format!("Notification created: {preview}"))
                .with("notification_id", id.to_string())
                .with("type", kind))
        }
        SendResult::Limited { retry_after_seconds } => {
            let message = "Notification rate limit exceeded. Try again later.";
            Err(ToolRefusal::limited(message, retry_after_seconds))
        }
    }
}
