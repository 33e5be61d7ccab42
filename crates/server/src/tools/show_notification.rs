use bellwire_core::Time;
use bellwire_core::person::{ShowNotification, ToastAction};
use bellwire_store::{NotificationContent, NotificationDraft, SendResult};
use serde_json::{Map, Value, json};

use super::context::Context;
use super::schema;
use super::tool::{CompletedCall, ResultForm, Tool, ToolHints, ToolInvocation, ToolRefusal, ToolResult};
use crate::clock;
use crate::http::Hub;

const NAME: &str = "show_notification";

/// Shows the agent's user a toast.
pub(super) const TOOL: Tool = Tool {
    name: NAME,
    title: "Show a notification",
    description: "Show a toast to the user right now. It appears at once and is kept in the user's inbox with the same \
        buttons.\n\n\
        Use it for what should be seen now: a confirmation, an error, a warning, a question with buttons. Keep \
        messages under 100 characters when possible; a title draws attention, the message gives details. Match severity \
        to importance: `info` for news, `success` for good outcomes, `warning` for what needs a look, `error` \
        for failures. Offer a button where there is an obvious next step (an error: View Logs); a `prompt` button says \
        its prompt to you when the user presses it. Choose the duration by what there is to read: 3000 for a plain \
        confirmation, 5000 as a rule, 10000 for a warning with details, 15000 and more rarely, 0 only for what must not \
        be missed. Choose the position by its weight: `top-right` as a rule, `top-center` for important announcements, \
        `bottom-right` for background updates. Say in the chat that you show something. Do not show several in quick \
        succession, and do not use it for what should wait in the inbox (`send_notification`).\n\n\
        Returns `success` and the `notification` as it is shown; a refusal says in `error` what to correct.\n\n\
        Example: {\"message\": \"Build failed - 3 tests failing\", \"severity\": \"error\", \"duration\": 0, \"actions\": \
        [{\"label\": \"View Logs\", \"action\": \"prompt\", \"prompt\": \"show me the build logs\"}, {\"label\": \
        \"Dismiss\", \"action\": \"dismiss\"}]}",
    hints: ToolHints { read_only: false, idempotent: false, open_world: true },
    input: ShowNotification::ARGUMENTS,
    takes_channel: false,
    result_form: ResultForm::Success,
    output: || {
        json!({
            "notification": {
                "type": "object", "additionalProperties": false, "description": "The notification as it is shown.",
                "required": ["id", "message", "severity", "duration", "position", "timestamp"],
                "properties": notification_schema(),
            },
            "error": { "type": "string", "description": "In a refusal: what to correct." },
        })
    },
    run: |call| Box::pin(run(call)),
    returns_notifications: false,
    needs_user: false,
    refuse: |refused| json!({ "success": false, "error": refused.message() }),
};

/// The schema of `notification` in the result: the arguments with their defaults, `id` and `timestamp`.
fn notification_schema() -> Map<String, Value> {
    let mut properties = schema::properties(ShowNotification::ARGUMENTS);
    properties.insert(
        "id".to_owned(),
        json!({ "type": "string", "format": "uuid", "description": "Its id, also in the inbox." }),
    );
    properties.insert(
        "timestamp".to_owned(),
        json!({ "type": "string", "format": "date-time", "description": "When it was shown." }),
    );
    properties
}

async fn run(call: ToolInvocation) -> Result<CompletedCall, ToolRefusal> {
    let ToolInvocation { hub, context, arguments } = call;
    Ok(match show(&hub, &context, ShowNotification::parse(&arguments)).await {
        Ok(notification) => completed(json!({ "success": true, "notification": notification }), false),
        Err(refusal) => completed(refusal, true),
    })
}

/// Stores the toast and returns it. Without a user it is only returned, for a chat that renders the tool's result.
async fn show(hub: &Hub, context: &Context, show: Result<ShowNotification, String>) -> Result<Value, Value> {
    let refused = |error: String| json!({ "success": false, "error": error });
    let show = show.map_err(refused)?;
    let Some(user_id) = context.user_id.clone() else {
        let now = clock::now();
        return Ok(echo(&show, clock::new_id(), now));
    };
    let meaning = json!({ "user_id": user_id, "conversation_id": context.conversation_id, "toast": fields(&show) });
    let draft = NotificationDraft {
        caller: context.caller(),
        user_id,
        origin: context.origin(),
        conversation_id: context.conversation_id.clone(),
        correlation_id: Some(context.correlation_id.clone()),
        content: NotificationContent::Toast(show.clone()),
        idempotency_key: context.idempotency_key(NAME, &meaning),
    };
    match hub.store.send(draft).await {
        Ok(SendResult::Stored { id, at }) => Ok(echo(&show, id.0, at)),
        Ok(SendResult::Limited { retry_after_seconds }) => Err(json!({
            "success": false, "error": "Too many toasts were shown to this user within an hour. Try again later.",
            "retry_after_seconds": retry_after_seconds,
        })),
        Err(error) => Err(refused(format!("Failed to show notification: {error}"))),
    }
}

fn echo(show: &ShowNotification, id: uuid::Uuid, at: Time) -> Value {
    let mut echo = Map::from_iter([("id".to_owned(), json!(id))]);
    echo.extend(fields(show));
    echo.insert("timestamp".to_owned(), json!(at.to_string()));
    Value::Object(echo)
}

fn fields(show: &ShowNotification) -> Map<String, Value> {
    let mut fields = schema::object(json!({ "message": show.message, "severity": show.severity.as_str() }));
    if let Some(title) = &show.title {
        fields.insert("title".to_owned(), json!(title));
    }
    fields.insert("duration".to_owned(), json!(show.duration));
    if !show.actions.is_empty() {
        fields.insert("actions".to_owned(), show.actions.iter().map(button).collect());
    }
    fields.insert("position".to_owned(), json!(show.position.as_str()));
    fields
}

fn button(action: &ToastAction) -> Value {
    match action.prompt() {
        Some(prompt) => json!({ "label": action.label, "action": action.kind(), "prompt": prompt }),
        None => json!({ "label": action.label, "action": action.kind() }),
    }
}

/// A result of this tool. It has no `action` and no `message` beside the notification.
fn completed(value: Value, is_error: bool) -> CompletedCall {
    let result = ToolResult { value: schema::object(value), is_error, call_id: None };
    CompletedCall { result }
}
