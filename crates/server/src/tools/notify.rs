use bellwire_core::notify::{ErrorClass, NotifyCall, NotifyError};
use serde_json::json;

use super::tool::{CompletedCall, ResultForm, Tool, ToolHints, ToolInvocation, ToolRefusal};
use crate::notify;

/// The name of the tool.
pub(super) const NAME: &str = "notify";

/// Sends, replies or reacts on one channel.
pub(super) const TOOL: Tool = Tool {
    name: NAME,
    title: "Notify by a channel",
    description: "Send a message to your user by one channel (such as email or Telegram), reply to a message that came by \
        it, or react to one with an emoji.\n\n\
        Use it when the message must reach the user outside the app now, or when you answer a message that the user sent \
        by that channel: it came with a `request_context`. Intent `send` needs `message`. Intent `reply` needs `message` \
        and goes to the thread of the answered message. Intent `react` needs `emoji`. Leave `request_context` out to \
        answer the newest message of this conversation. Do not name a `recipient` to reach your own user, and do not use \
        it for what can wait in the inbox (`send_notification`) or should appear in the app (`show_notification`).\n\n\
        Returns `status`: `ok` with the `delivery`; `deferred` if the user has quiet hours, then it is sent at \
        `deliver_at`; or `error`, which says what to fix. Call it again only if the error is `retryable`, with the same \
        arguments; an outcome that is unknown is not: the message may have arrived.\n\n\
        Example: {\"channel\": \"email\", \"subject\": \"Backup failed\", \"message\": \"The backup of 3 May failed: the disk \
        is full. I freed 2 GB and started it again.\"}",
    hints: ToolHints { read_only: false, idempotent: false, open_world: true },
    input: NotifyCall::ARGUMENTS,
    takes_channel: true,
    result_form: ResultForm::Status,
    output: || {
        json!({
            "delivery": {
                "type": "object", "additionalProperties": false, "required": ["channel", "delivery_id"],
                "description": "What was delivered; beside an error, the first part of a long text.",
                "properties": {
                    "channel": { "type": "string", "description": "The channel." },
                    "delivery_id": { "type": "string", "description": "The id of the message in the channel." },
                },
            },
            "notification_id": { "type": "string", "format": "uuid", "description": "The inbox item of a deferred message." },
            "deliver_at": { "type": "string", "format": "date-time", "description": "When a deferred message is sent." },
            "reason": { "type": "string", "description": "Why it is deferred." },
            "error": {
                "description": "What to fix, as text; or for a failed attempt an object.",
                "anyOf": [
                    { "type": "string" },
                    {
                        "type": "object", "additionalProperties": false, "required": ["class", "message", "retryable"],
                        "properties": {
                            "class": { "type": "string", "enum": ErrorClass::ALL.map(ErrorClass::as_str) },
                            "message": { "type": "string" },
                            "retryable": { "type": "boolean", "description": "Whether to call again later." },
                        },
                    },
                ],
            },
            "error_class": { "type": "string", "description": "The class of an error that is a text." },
            "retryable": { "type": "boolean", "description": "Whether to call again later." },
        })
    },
    run: |call| Box::pin(run(call)),
    returns_notifications: false,
    needs_user: false,
    refuse: |refused| {
        let class = match refused.is_validation() {
            true => ErrorClass::ValidationError,
            false => ErrorClass::InternalError,
        };
        notify::refused(NotifyError::new(class, refused.message())).value
    },
};

async fn run(call: ToolInvocation) -> Result<CompletedCall, ToolRefusal> {
    let ToolInvocation { hub, context, arguments } = call;
    let answer = notify::notify(&hub, &context, &arguments).await;
    Ok(CompletedCall::of(answer.value, answer.is_error))
}
