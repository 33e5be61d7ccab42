//! Fixtures that send requests to the client during a call, as servers did before revision 2026-07-28.

use rmcp::model::{CallToolRequestParams, CallToolResult, ElicitRequest, ElicitRequestParams, ServerRequest, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::content::{plain, read, text, with_input};

pub(crate) fn tools() -> Vec<Tool> {
    let one = |name: &str| {
        let properties = json!({ name: { "type": "string" } });
        json!({ "type": "object", "properties": properties, "required": [name] })
    };
    vec![
        with_input("test_sampling", one("prompt")),
        with_input("test_elicitation", one("message")),
        plain("test_elicitation_sep1034_defaults"),
        plain("test_elicitation_sep1330_enums"),
    ]
}

pub(crate) fn has(name: &str) -> bool {
    tools().iter().any(|tool| tool.name == name)
}

pub(crate) async fn call(
    call: &CallToolRequestParams,
    request: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let argument = |name: &str| {
        call.arguments.as_ref().and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    match call.name.as_ref() {
        "test_sampling" => sample(&argument("prompt"), request).await,
        "test_elicitation" => {
            let field = |words: &str| json!({ "type": "string", "description": words });
            let properties = json!({ "username": field("User's response"), "email": field("User's email address") });
            let answer = elicit(&argument("message"), properties, &["username", "email"], request).await?;
            Ok(text(&format!("User response: {answer}")))
        }
        "test_elicitation_sep1034_defaults" => {
            let answer = elicit("Please review", defaults(), &[], request).await?;
            Ok(text(&format!("Elicitation completed: {answer}")))
        }
        _ => {
            let answer = elicit("Please choose", enums(), &[], request).await?;
            Ok(text(&format!("Elicitation completed: {answer}")))
        }
    }
}

async fn sample(prompt: &str, request: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    let content = json!({ "type": "text", "text": prompt });
    let ask = read(json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 }));
    let answer = request.peer.create_message(ask).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = serde_json::to_value(answer).expect("what came as JSON is JSON");
    let words = answer["content"]["text"].as_str().or_else(|| answer["content"][0]["text"].as_str());
    Ok(text(&format!("LLM response: {}", words.unwrap_or_default())))
}

async fn elicit(
    message: &str,
    properties: Value,
    required: &[&str],
    request: &RequestContext<RoleServer>,
) -> Result<String, ErrorData> {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let ask: ElicitRequestParams = read(json!({ "mode": "form", "message": message, "requestedSchema": schema }));
    let answer = request.peer.send_request(ServerRequest::ElicitRequest(ElicitRequest::new(ask))).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = serde_json::to_value(answer).expect("what came as JSON is JSON");
    Ok(format!("action={}, content={}", answer["action"].as_str().unwrap_or_default(), answer["content"]))
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn enums() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = |what: &str| {
        let one = |value: &str, number: &str| json!({ "const": value, "title": format!("{number} {what}") });
        json!([one("value1", "First"), one("value2", "Second"), one("value3", "Third")])
    };
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}
