//! Fixtures that only answer: texts, images, sounds, resources, prompts.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, GetPromptRequestParams, GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate,
    Tool,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// Builds a protocol type from its JSON.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the fixtures are written as the protocol has it")
}

pub(crate) fn text(text: &str) -> CallToolResult {
    read(json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] }))
}

/// A tool without arguments.
pub(crate) fn plain(name: &str) -> Tool {
    with_input(name, json!({ "type": "object", "properties": {} }))
}

pub(crate) fn with_input(name: &str, schema: Value) -> Tool {
    read(json!({ "name": name, "description": "A fixture of the conformance suite.", "inputSchema": schema }))
}

pub(crate) fn tools() -> Vec<Tool> {
    let header = json!({ "type": "string", "x-mcp-header": "Region" });
    let mut tools: Vec<Tool> = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
    ]
    .map(plain)
    .into();
    tools.push(with_input("test_x_mcp_header", json!({ "type": "object", "properties": { "region": header } })));
    tools.push(with_input("json_schema_2020_12_tool", every_keyword()));
    tools
}

/// A schema with keywords of JSON Schema 2020-12 that the server must keep.
fn every_keyword() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef", "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" }, "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

pub(crate) fn call(name: &str) -> Option<CallToolResult> {
    let resource = |uri: &str, kind: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } });
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let embedded = resource("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    let mixed = resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
    let words = |words: &str| json!({ "type": "text", "text": words });
    let content = match name {
        "test_simple_text" => json!([words("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => json!([embedded]),
        "test_multiple_content_types" => json!([words("Multiple content types test:"), image, mixed]),
        "test_error_handling" => json!([words("This tool intentionally returns an error for testing")]),
        "test_x_mcp_header" | "json_schema_2020_12_tool" => json!([words("Taken.")]),
        _ => return None,
    };
    Some(read(json!({ "resultType": "complete", "content": content, "isError": name == "test_error_handling" })))
}

pub(crate) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str| json!({ "name": name, "description": "An argument.", "required": true });
    read(json!([
        { "name": "test_simple_prompt", "description": "A simple prompt." },
        {
            "name": "test_prompt_with_arguments", "description": "A prompt with arguments.",
            "arguments": [argument("arg1"), argument("arg2")],
        },
        {
            "name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource.",
            "arguments": [argument("resourceUri")],
        },
        { "name": "test_prompt_with_image", "description": "A prompt with an image." },
        { "name": crate::input::PROMPT, "description": "A prompt that asks back." },
    ]))
}

pub(crate) fn prompt(ask: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        ask.arguments.as_ref().and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let says = |content: Value| json!({ "role": "user", "content": content });
    let words = |words: &str| says(json!({ "type": "text", "text": words }));
    let messages = match ask.name.as_str() {
        "test_simple_prompt" => json!([words("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([words(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let text = "Embedded resource content for testing.";
            let resource = json!({ "uri": argument("resourceUri"), "mimeType": "text/plain", "text": text });
            let first = says(json!({ "type": "resource", "resource": resource }));
            json!([first, words("Please process the embedded resource above.")])
        }
        "test_prompt_with_image" => {
            let first = says(json!({ "type": "image", "data": PNG, "mimeType": "image/png" }));
            json!([first, words("Please analyze the image above.")])
        }
        _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
    };
    Ok(read(json!({ "resultType": "complete", "messages": messages })))
}

pub(crate) fn resources() -> Vec<Resource> {
    let one = |uri: &str, kind: &str| json!({ "uri": uri, "name": uri, "description": "A fixture.", "mimeType": kind });
    read(json!([
        one("test://static-text", "text/plain"),
        one("test://static-binary", "image/png"),
        one("test://watched-resource", "text/plain"),
        one("test://example-resource", "text/plain"),
    ]))
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    read(json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template", "description": "A fixture.",
        "mimeType": "application/json",
    }]))
}

pub(crate) fn resource(uri: &str) -> Option<ReadResourceResult> {
    let text = |text: &str| json!({ "uri": uri, "mimeType": "text/plain", "text": text });
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text", _) => text("This is the content of the static text resource."),
        ("test://watched-resource" | "test://example-resource", _) => text("A fixture."),
        ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        (_, Some(id)) => {
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
        }
        _ => return None,
    };
    Some(read(json!({ "resultType": "complete", "contents": [content] })))
}
