//! MCP requests to the hub, for `bellwire mcp`, which forwards what depends on the token.

use anyhow::{Result, bail};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use rmcp::ErrorData;
use serde_json::{Map, Value, json};

use super::{CALL_TIMEOUT, Client, HubRefused, SseReader, failure};

/// This revision has no sessions: a request needs no `initialize` before it.
const REVISION: &str = "2026-07-28";

impl Client {
    /// Sends one MCP request with this `_meta`. Returns its result, or the error that the hub's MCP server answers.
    pub(crate) async fn mcp(&self, method: &str, mut meta: Map<String, Value>) -> Result<Result<Value, ErrorData>> {
        let client = json!({ "name": "bellwire", "version": env!("CARGO_PKG_VERSION") });
        for (key, value) in
            [("protocolVersion", json!(REVISION)), ("clientInfo", client), ("clientCapabilities", json!({}))]
        {
            meta.insert(format!("io.modelcontextprotocol/{key}"), value);
        }
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": meta } });
        let request = self.request(Method::POST, "/mcp").timeout(CALL_TIMEOUT);
        let request = request.header("MCP-Protocol-Version", REVISION).header("Mcp-Method", method);
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        let sent = request.header(CONTENT_TYPE, "application/json").body(message.to_string()).send().await;
        self.mcp_answer(sent.map_err(|error| failure::describe(&error, &self.url))?).await
    }

    /// The answer is JSON, or the first message of an event stream.
    async fn mcp_answer(&self, response: reqwest::Response) -> Result<Result<Value, ErrorData>> {
        let (status, headers) = (response.status(), response.headers().clone());
        let is_stream = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let answer: Value = match is_stream {
            true => SseReader::new(response).next().await?.map(|(_, message)| message).unwrap_or_default(),
            false => response.json().await.map_err(|error| failure::describe(&error, &self.url))?,
        };
        match (serde_json::from_value(answer["error"].clone()), &answer["result"]) {
            (Ok(error), _) => Ok(Err(error)),
            (_, result @ Value::Object(_)) => Ok(Ok(result.clone())),
            _ if !status.is_success() => Err(HubRefused::new(status, &headers, &answer).into()),
            _ => bail!("{} answers ({status}), but not like a Bellwire hub; check the address", self.url),
        }
    }
}
