//! Fixtures that ask the client for input in their result, as servers do since revision 2026-07-28.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    InputRequiredResult, InputResponses, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::content::{plain, read, text};

pub(crate) const PROMPT: &str = "test_input_required_result_prompt";
const START: &str = "test_input_required_result_";
const KINDS: [&str; 8] = [
    "elicitation",
    "sampling",
    "list_roots",
    "request_state",
    "multiple_inputs",
    "multi_round",
    "tampered_state",
    "capabilities",
];

pub(crate) fn tools() -> Vec<Tool> {
    KINDS.iter().map(|kind| plain(&format!("{START}{kind}"))).collect()
}

pub(crate) fn has(name: &str) -> bool {
    name.strip_prefix(START).is_some_and(|kind| KINDS.contains(&kind))
}

pub(crate) fn call(
    call: &CallToolRequestParams,
    request: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let kind = call.name.strip_prefix(START).unwrap_or_default();
    let state = call.request_state.as_deref().map(opened).transpose()?;
    let given = |key: &str| call.input_responses.as_ref().and_then(|all| answered(all, key));
    let step = match kind {
        "elicitation" => wants(json!({ "user_name": name() }), None),
        "sampling" => wants(json!({ "capital_question": sampling("What is the capital of France?", 100) }), None),
        "list_roots" => wants(json!({ "client_roots": roots() }), None),
        "request_state" | "tampered_state" => wants(json!({ "confirm": confirm() }), Some("asked")),
        "multiple_inputs" => {
            let greeting = sampling("Generate a greeting", 50);
            wants(json!({ "user_name": name(), "greeting": greeting, "client_roots": roots() }), Some("asked"))
        }
        "multi_round" if state.as_deref() == Some("first") && given("step1").is_some() => {
            wants(json!({ "step2": field("Step 2: What is your favorite color?", "color", "string") }), Some("second"))
        }
        "multi_round" if state.as_deref() == Some("second") => {
            wants(json!({ "step2": field("Step 2: What is your favorite color?", "color", "string") }), Some("second"))
        }
        "multi_round" => {
            wants(json!({ "step1": field("Step 1: What is your name?", "name", "string") }), Some("first"))
        }
        _ => wants(allowed(request), None),
    };
    let keys: Vec<String> = step.input_requests.iter().flatten().map(|(key, _)| key.clone()).collect();
    let complete = keys.iter().all(|key| given(key).is_some());
    let remembered = step.request_state.is_none() || state.is_some();
    if !complete || !remembered {
        return Ok(step.into());
    }
    let answers: Vec<String> = keys.iter().filter_map(|key| given(key)).map(|answer| answer.to_string()).collect();
    let ok = if state.is_some() { "state-ok " } else { "" };
    let name = given("user_name").and_then(|answer| answer["content"]["name"].as_str().map(str::to_owned));
    Ok(match name.filter(|_| kind == "elicitation") {
        Some(name) => text(&format!("Hello, {name}!")),
        None => text(&format!("{ok}{}", answers.join(" "))),
    }
    .into())
}

pub(crate) fn prompt(ask: &GetPromptRequestParams) -> GetPromptResponse {
    let given = ask.input_responses.as_ref().and_then(|all| answered(all, "user_context"));
    match given {
        Some(answer) => {
            let content = json!({ "type": "text", "text": format!("With context: {}", answer["content"]) });
            let messages = json!([{ "role": "user", "content": content }]);
            read::<GetPromptResult>(json!({ "resultType": "complete", "messages": messages })).into()
        }
        None => {
            let question = field("What context should the prompt use?", "context", "string");
            wants(json!({ "user_context": question }), None).into()
        }
    }
}

/// Whether the client's answer is a non-empty object.
fn answered(all: &InputResponses, key: &str) -> Option<Value> {
    all.get(key).filter(|answer| answer.as_object().is_some_and(|answer| !answer.is_empty())).cloned()
}

/// The input requests that the client supports.
fn allowed(request: &RequestContext<RoleServer>) -> Value {
    let able = request.client_capabilities().unwrap_or_default();
    let mut all = json!({});
    if able.sampling.is_some() {
        all["capital_question"] = sampling("What is the capital of France?", 100);
    }
    if able.elicitation.is_some() {
        all["user_name"] = name();
    }
    all
}

fn wants(requests: Value, state: Option<&str>) -> InputRequiredResult {
    InputRequiredResult::new(Some(read(requests)), state.map(sealed))
}

fn name() -> Value {
    field("What is your name?", "name", "string")
}

fn confirm() -> Value {
    field("Please confirm", "ok", "boolean")
}

fn field(message: &str, name: &str, kind: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] });
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
}

fn sampling(words: &str, tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": words } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": tokens } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// State that the client sends back, signed so that it cannot change it.
fn sealed(state: &str) -> String {
    format!("{state}.{}", seal(state))
}

fn opened(text: &str) -> Result<String, ErrorData> {
    let state = text.split_once('.').filter(|(state, mark)| seal(state) == *mark).map(|(state, _)| state.to_owned());
    state.ok_or_else(|| ErrorData::invalid_params("requestState was changed on its way", None))
}

fn seal(state: &str) -> String {
    Sha256::digest(format!("a secret of the fixtures {state}")).iter().map(|byte| format!("{byte:02x}")).collect()
}
