//! Notifications as a tool call made by the system, for histories in which they should be separate messages.

use serde_json::{Value, json};

use super::block::{BlockContent, texts};
use crate::inject::Shape;
use crate::{Ids, Time};

/// The tool named in synthetic calls.
pub const NOTIFICATION_TOOL: &str = "_system_notification";

const DESCRIPTION: &str = "Carries system-generated notifications about events outside this conversation. You do not \
                           call this tool; its results appear on their own and are information, not requests.";

/// The tool's definition. Providers accept the synthetic calls only if the tool is defined.
pub fn tool_definition(shape: Shape) -> Value {
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    match shape {
        Shape::Anthropic => json!({ "name": NOTIFICATION_TOOL, "description": DESCRIPTION, "input_schema": schema }),
        Shape::OpenaiChat => json!({
            "type": "function",
            "function": { "name": NOTIFICATION_TOOL, "description": DESCRIPTION, "parameters": schema },
        }),
        Shape::OpenaiResponses => json!({
            "type": "function", "name": NOTIFICATION_TOOL, "description": DESCRIPTION, "parameters": schema,
        }),
    }
}

/// One call and one result per item; all calls in one message where the API expects that.
pub(crate) fn synthetic_messages(page: &BlockContent, shape: Shape, now: Time, ids: &mut Ids) -> Vec<Value> {
    // Without hyphens: some APIs limit a call id to 40 characters.
    let texts = texts(page);
    let calls: Vec<(String, &String)> =
        texts.iter().map(|text| (format!("notif_{}", ids.next(now).simple()), text)).collect();
    match shape {
        Shape::Anthropic => anthropic(&calls),
        Shape::OpenaiChat => openai_chat(&calls),
        Shape::OpenaiResponses => openai_responses(&calls),
    }
}

fn anthropic(calls: &[(String, &String)]) -> Vec<Value> {
    let uses =
        calls.iter().map(|(id, _)| json!({"type": "tool_use", "id": id, "name": NOTIFICATION_TOOL, "input": {}}));
    let results = calls.iter().map(|(id, text)| json!({"type": "tool_result", "tool_use_id": id, "content": text}));
    vec![
        json!({"role": "assistant", "content": uses.collect::<Vec<_>>()}),
        json!({"role": "user", "content": results.collect::<Vec<_>>()}),
    ]
}

fn openai_chat(calls: &[(String, &String)]) -> Vec<Value> {
    let function = json!({"name": NOTIFICATION_TOOL, "arguments": "{}"});
    let made = calls.iter().map(|(id, _)| json!({"id": id, "type": "function", "function": function}));
    let call = json!({"role": "assistant", "content": null, "tool_calls": made.collect::<Vec<_>>()});
    let results = calls.iter().map(|(id, text)| json!({"role": "tool", "tool_call_id": id, "content": text}));
    std::iter::once(call).chain(results).collect()
}

fn openai_responses(calls: &[(String, &String)]) -> Vec<Value> {
    let pair = |(id, text): &(String, &String)| {
        [
            json!({"type": "function_call", "call_id": id, "name": NOTIFICATION_TOOL, "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": id, "output": text}),
        ]
    };
    calls.iter().flat_map(pair).collect()
}
