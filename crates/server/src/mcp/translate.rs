//! Converts tools, results and conversations to MCP's types, and MCP's metadata to a tool context.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    CallToolResult, MetaObject, ReadResourceResult, RequestMetaObject, Resource, ResourceContents, ResourceTemplate,
    ToolAnnotations,
};
use serde_json::{Map, Value, json};

use crate::channels::Channels;
use crate::tools::{RequestedContext, TOOLS, Tool, ToolRefusal};

/// The prefix of Bellwire's keys in `_meta`.
const PREFIX: &str = "bellwire/";
const JSON: &str = "application/json";
const URI_START: &str = "bellwire://conversations/";
const URI_END: &str = "/notifications";
/// All characters except RFC 3986's unreserved ones.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The URI template of the resources: each has the number of pending notifications of a conversation.
pub const TEMPLATE: &str = "bellwire://conversations/{conversation_id}/notifications";

/// The response of `tools/list`.
pub fn definitions() -> Vec<rmcp::model::Tool> {
    TOOLS.iter().map(definition).collect()
}

/// The response of `tools/list` of a hub with these channels: a schema names only what the hub accepts.
pub(super) fn offered(channels: &Channels) -> Vec<rmcp::model::Tool> {
    TOOLS.iter().map(|tool| offered_tool(tool, channels)).collect()
}

pub(super) fn offered_tool(tool: &Tool, channels: &Channels) -> rmcp::model::Tool {
    let mut definition = definition(tool);
    let names: Vec<Value> = channels.configured().map(|channel| channel.name().as_str().into()).collect();
    if tool.takes_channel && !names.is_empty() {
        let mut schema = tool.input_schema();
        schema["properties"]["channel"]["enum"] = Value::Array(names);
        definition.input_schema = Arc::new(schema);
    }
    definition
}

/// Converts a tool's result: structured content, and the same as text for clients that support only text.
pub fn result(value: Map<String, Value>, is_error: bool, call_id: Option<String>) -> CallToolResult {
    let mut result = CallToolResult::structured(Value::Object(value));
    result.is_error = Some(is_error);
    result.meta = call_id.map(|call_id| {
        let mut meta = MetaObject::default();
        meta.insert(format!("{PREFIX}call_id"), call_id.into());
        meta
    });
    result
}

/// The URI of a conversation's resource.
pub fn pending_uri(conversation_id: &str) -> String {
    format!("{URI_START}{}{URI_END}", utf8_percent_encode(conversation_id, ESCAPED))
}

/// A conversation's resource in the response of `resources/list`.
pub fn pending_resource(conversation_id: &str) -> Resource {
    let resource = Resource::new(pending_uri(conversation_id), "pending notifications").with_mime_type(JSON);
    resource.with_description("How many notifications wait. Subscribe to hear when something arrives.")
}

/// The entry of `resources/templates/list`.
pub fn pending_template() -> ResourceTemplate {
    let template = ResourceTemplate::new(TEMPLATE, "pending notifications").with_mime_type(JSON);
    template.with_description("How many notifications wait in a conversation.")
}

/// The response of `resources/read`.
pub fn pending_contents(uri: &str, conversation_id: &str, pending: u64) -> ReadResourceResult {
    let text = json!({ "conversation_id": conversation_id, "agent": "main", "pending": pending }).to_string();
    ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(JSON)])
}

fn definition(tool: &Tool) -> rmcp::model::Tool {
    let mut definition =
        rmcp::model::Tool::new(tool.name, tool.description, Arc::new(tool.input_schema())).with_title(tool.title);
    definition.output_schema = Some(Arc::new(tool.output_schema()));
    let hints = ToolAnnotations::with_title(tool.title).read_only(tool.hints.read_only).destructive(false);
    definition.annotations = Some(hints.idempotent(tool.hints.idempotent).open_world(tool.hints.open_world));
    definition
}

/// Reads the requested context from `_meta`.
pub(super) fn requested_context(meta: &RequestMetaObject) -> Result<RequestedContext, ToolRefusal> {
    let mut requested_context = RequestedContext::default();
    for (field, value) in requested_context.fields() {
        *value = match meta.get(&format!("{PREFIX}{field}")) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(_) => return Err(ToolRefusal::invalid(format!("_meta {PREFIX}{field} must be text"))),
        };
    }
    Ok(requested_context)
}

/// The conversation id in a resource's URI; `None` if the URI is not one of this server's.
pub fn conversation_of(uri: &str) -> Option<String> {
    let escaped = uri.strip_prefix(URI_START)?.strip_suffix(URI_END)?;
    let id = percent_decode_str(escaped).decode_utf8().ok()?;
    (!id.is_empty()).then(|| id.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_conversation_id_survives_the_round_trip_through_its_uri() {
        for id in ["chat", "a/b", "späti 24/7", "100%", "x/notifications"] {
            assert_eq!(conversation_of(&pending_uri(id)).as_deref(), Some(id));
        }
        for wrong in
            ["", "file:///etc/passwd", "bellwire://conversations//notifications", "bellwire://conversations/%Z/"]
        {
            assert_eq!(conversation_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_tool_description_says_when_to_use_it_and_when_not() {
        for tool in definitions() {
            let description = tool.description.clone().unwrap_or_default();
            for part in ["Use it", "Do not", "Returns", "Example: {"] {
                assert!(description.contains(part), "{} lacks '{part}'", tool.name);
            }
            let output = tool.output_schema.clone().unwrap_or_default();
            assert_eq!(output["properties"]["notifications"]["type"], "string", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
        }
    }
}
