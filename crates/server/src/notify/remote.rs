//! The Switchboard or the Messenger on another machine, called over MCP.
//!
//! Each call is one POST of revision 2026-07-28, which has no sessions. What is not known is reported as unknown: only a
//! request of which no byte was sent, or one that the other side refused before it looked at it, may be made again.

use std::time::Duration;

use axum::http::{Request, StatusCode, header};
use bellwire_core::notify::{ErrorClass, NotifyError};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::attempt::Question;
use super::envelope::{ASKS_AGAIN, AnswerMeta, Envelope, Failure, unproven};
use crate::config::{RemoteConfig, Secret};
use crate::http_client::{HttpAnswer, HttpClient, HttpError};

const REVISION: &str = "2026-07-28";
/// Longer than the other side waits for the outcome of an attempt.
const ANSWER_WAIT: Duration = Duration::from_secs(28);
/// In bytes: the largest answer.
const ANSWER_MAX: usize = 1024 * 1024;
/// JSON-RPC's codes for a request that was not carried out.
const REFUSED_CODES: [i64; 4] = [-32700, -32600, -32601, -32602];

/// A process of the path that runs elsewhere.
#[derive(Debug)]
pub(crate) struct Remote {
    http: HttpClient,
    token: Secret,
    /// Its name in errors.
    name: &'static str,
    path: &'static str,
    tool: &'static str,
}

impl Remote {
    /// The Switchboard, if it runs elsewhere. An error names the setting and the fix.
    pub(crate) fn switchboard(config: &RemoteConfig) -> Result<Option<Self>, String> {
        Self::new(config, "switchboard", ("the Switchboard", "/mcp/switchboard", "deliver"))
    }

    /// The Messenger, if it runs elsewhere.
    pub(crate) fn messenger(config: &RemoteConfig) -> Result<Option<Self>, String> {
        Self::new(config, "messenger", ("the Messenger", "/mcp/messenger", "route.execute"))
    }

    fn new(
        config: &RemoteConfig,
        section: &str,
        (name, path, tool): (&'static str, &'static str, &'static str),
    ) -> Result<Option<Self>, String> {
        let Some(url) = &config.url else { return Ok(None) };
        let http = HttpClient::new(url).map_err(|why| format!("{section}.url: {why}"))?;
        Ok(Some(Self { http, token: config.token(section)?, name, path, tool }))
    }

    /// Calls the tool once and reads its answer.
    pub(crate) async fn call<T: Envelope>(
        &self,
        arguments: &impl Serialize,
        question: Question,
    ) -> Result<(T, AnswerMeta), Failure> {
        let request = self.request(arguments, question)?;
        let answer = self.http.send(request, ANSWER_WAIT, ANSWER_MAX).await.map_err(|error| match error {
            HttpError::NotSent { reason, .. } => {
                let message = format!("{} cannot be reached: {reason}", self.name);
                NotifyError::new(ErrorClass::TargetUnavailable, message).into()
            }
            HttpError::Unknown(reason) => unproven(&format!("{} was asked, and {reason}", self.name)),
        })?;
        self.read(&answer)
    }

    fn request(&self, arguments: &impl Serialize, question: Question) -> Result<Request<Full<Bytes>>, Failure> {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": { "name": "bellwire", "version": env!("CARGO_PKG_VERSION") },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if question == Question::Again {
            meta[ASKS_AGAIN] = true.into();
        }
        let params = json!({ "name": self.tool, "arguments": arguments, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = Request::post(self.path)
            .header(header::HOST, self.http.authority())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token.reveal()))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header("MCP-Protocol-Version", REVISION)
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", self.tool)
            .body(Full::new(Bytes::from(message.to_string())));
        request.map_err(|_| {
            let message = format!("the request to {} cannot be made; check its token", self.name);
            NotifyError::new(ErrorClass::InternalError, message).into()
        })
    }

    fn read<T: Envelope>(&self, answer: &HttpAnswer) -> Result<(T, AnswerMeta), Failure> {
        if !answer.status.is_success() {
            return Err(self.refused(answer));
        }
        let malformed = |why: &str| unproven(&format!("the answer of {} is malformed: {why}", self.name));
        let Some(message) = message(answer) else { return Err(malformed("it is no message of MCP")) };
        if let Some(error) = message.get("error") {
            let code = error["code"].as_i64().unwrap_or_default();
            let said: String = error["message"].as_str().unwrap_or_default().chars().take(200).collect();
            return match REFUSED_CODES.contains(&code) {
                true => {
                    let message = format!("{} refused the call: {said}", self.name);
                    Err(NotifyError::new(ErrorClass::InternalError, message).into())
                }
                false => Err(unproven(&format!("{} failed: {said}", self.name))),
            };
        }
        let result = &message["result"];
        let text = || result["content"][0]["text"].as_str().map(|text| Value::String(text.to_owned()));
        let structured = Some(result["structuredContent"].clone()).filter(Value::is_object);
        let Some(value) = structured.or_else(text) else { return Err(malformed("it has no content")) };
        let envelope = T::read(value).map_err(|error| malformed(&error.to_string()))?;
        Ok((envelope, AnswerMeta::read(&result["_meta"])))
    }

    /// An HTTP error. The statuses that a server gives before it looks at the call prove that nothing was attempted.
    fn refused(&self, answer: &HttpAnswer) -> Failure {
        let status = answer.status;
        let seconds = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let error = |class, what: &str| NotifyError::new(class, format!("{} {what} ({status})", self.name));
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                error(ErrorClass::OverloadRejected, "is busy").retry_after(seconds).into()
            }
            status if status.is_client_error() || status.is_redirection() => {
                error(ErrorClass::TargetUnavailable, "refused the call; check its address and token").into()
            }
            _ => unproven(&format!("{} failed ({status})", self.name)),
        }
    }
}

/// The JSON-RPC message of an answer, which may be an event stream.
fn message(answer: &HttpAnswer) -> Option<Value> {
    let is_stream =
        answer.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !is_stream {
        return serde_json::from_slice(&answer.body).ok();
    }
    let text = std::str::from_utf8(&answer.body).ok()?.replace('\r', "");
    let data = |event: &str| -> String { event.lines().filter_map(|line| line.strip_prefix("data:")).collect() };
    let messages = text.split("\n\n").filter_map(|event| serde_json::from_str::<Value>(&data(event)).ok());
    messages.into_iter().find(|message| message.get("result").is_some() || message.get("error").is_some())
}
