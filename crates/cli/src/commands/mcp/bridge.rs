use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bellwire_server::{mcp, tools};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use reqwest::Method;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams, CompleteResult,
    ContentBlock, DiscoverResult, InitializeRequestParams, InitializeResult, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, RequestMetaObject, ResourceUpdatedNotificationParam, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;

use super::harness_session::{self, Conversation};
use super::{DefaultContext, changes};
use crate::client::{Client, conversation_path, segment};

type Request = RequestContext<RoleServer>;

const FIELDS: [&str; 5] = ["user_id", "conversation_id", "agent", "correlation_id", "idempotency_key"];

/// How long a client that connects waits for the hub's instructions and tools.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);

/// An MCP server that forwards every request to a hub.
pub(super) struct Bridge {
    client: Arc<Client>,
    defaults: DefaultContext,
    followed: Mutex<HashMap<String, AbortHandle>>,
}

impl Bridge {
    pub(super) fn new(client: Arc<Client>, defaults: DefaultContext) -> Self {
        Self { client, defaults, followed: Mutex::default() }
    }

    /// The tool context of a call: each field from the call's `_meta`, else from the flags.
    fn context(&self, meta: &RequestMetaObject, session: &Conversation) -> Map<String, Value> {
        let flags = [&self.defaults.user, &self.defaults.conversation, &self.defaults.agent, &None, &None];
        let resolve = |(field, flag): (&str, &Option<String>)| {
            let in_meta = meta.get(&format!("bellwire/{field}")).filter(|value| !value.is_null()).cloned();
            in_meta.or_else(|| flag.clone().map(Value::String)).map(|value| (field.to_owned(), value))
        };
        let mut context: Map<String, Value> = FIELDS.into_iter().zip(flags).filter_map(resolve).collect();
        if let (false, Conversation::One(id)) = (context.contains_key("conversation_id"), session) {
            context.insert("conversation_id".to_owned(), json!(id));
        }
        context
    }

    /// The conversation of the harness's session that calls a tool.
    fn calling_session(&self, meta: &RequestMetaObject) -> Conversation {
        self.defaults.host.map_or(Conversation::Unknown, |host| harness_session::of_call(host, thread(meta)))
    }

    /// Forwards a request whose answer depends on the token to the hub's own MCP server.
    async fn forward(&self, method: &str, meta: &RequestMetaObject) -> Result<Value, ErrorData> {
        // A conversation that is only guessed must not be made for a client that connects.
        let session =
            self.defaults.host.map_or(Conversation::Unknown, |host| harness_session::known(host, thread(meta)));
        let context =
            self.context(meta, &session).into_iter().map(|(field, value)| (format!("bellwire/{field}"), value));
        let answer = self.client.mcp(method, context.collect()).await;
        answer.map_err(|error| ErrorData::internal_error(format!("{error:#}"), None))?
    }

    /// The instructions of the hub, which knows the boundary of the token's conversation. A client that connects does not
    /// wait for a hub that is slow or unreachable: then they name no boundary.
    async fn with_instructions(&self, about: ServerConfig, meta: &RequestMetaObject) -> ServerConfig {
        let asked = self.forward("server/discover", meta);
        let found = tokio::time::timeout(HUB_TIMEOUT, asked).await.ok().and_then(Result::ok);
        match found.as_ref().and_then(|found| found["instructions"].as_str()) {
            Some(instructions) => about.with_instructions(instructions),
            None => about,
        }
    }

    /// The tools as the hub offers them: it knows which channels there are. If it is slow or unreachable, the tools that
    /// every hub has.
    async fn tools(&self, meta: &RequestMetaObject) -> Vec<Tool> {
        let asked = tokio::time::timeout(HUB_TIMEOUT, self.forward("tools/list", meta)).await;
        let listed = asked.ok().and_then(Result::ok).and_then(|mut listed| {
            let tools: Vec<Tool> = serde_json::from_value(listed["tools"].take()).ok()?;
            Some(tools).filter(|tools| !tools.is_empty())
        });
        listed.unwrap_or_else(mcp::definitions)
    }

    async fn call(&self, call: CallToolRequestParams, meta: &RequestMetaObject) -> Result<Map<String, Value>> {
        let body = json!({ "arguments": call.arguments, "context": self.context(meta, &self.calling_session(meta)) })
            .to_string();
        let path = format!("/v1/tools/{}", segment(&call.name));
        let answer = self.client.send_async(Method::POST, &path, Some(("application/json", body))).await?;
        Ok(answer.body.as_object().cloned().unwrap_or_default())
    }

    async fn pending(&self, uri: &str) -> Result<(String, u64), ErrorData> {
        let id = mcp::conversation_of(uri).ok_or_else(|| no_such(uri))?;
        let path = conversation_path(&id, "", self.defaults.user.as_deref());
        let view = self.client.get_async(&path).await.map_err(|_| no_such(uri))?;
        Ok((id, view["pending"].as_u64().unwrap_or_default()))
    }

    /// The URI of a followed resource each time it changes.
    fn changes(&self, uris: &[String]) -> BoxStream<'static, String> {
        let each = uris.iter().filter_map(|uri| {
            let path = conversation_path(&mcp::conversation_of(uri)?, "/stream", self.defaults.user.as_deref());
            let changed = changes::follow(self.client.clone(), path);
            let uri = uri.clone();
            let next = move |mut changed: tokio::sync::mpsc::Receiver<()>| {
                let uri = uri.clone();
                async move { changed.recv().await.map(|()| (uri, changed)) }
            };
            Some(stream::unfold(changed, next).boxed())
        });
        stream::select_all(each.collect::<Vec<_>>()).boxed()
    }
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        mcp::about()
    }

    async fn initialize(&self, ask: InitializeRequestParams, request: Request) -> Result<InitializeResult, ErrorData> {
        request.peer.set_peer_info(ask.clone());
        Ok(self.with_instructions(self.negotiate_initialize(&ask)?, &request.meta).await)
    }

    async fn discover(&self, request: Request) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.with_instructions(mcp::about(), &request.meta).await))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        request: Request,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools(&request.meta).await))
    }

    async fn call_tool(&self, call: CallToolRequestParams, request: Request) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&call.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool '{}'", call.name), None));
        };
        let answer = self.call(call, &request.meta).await;
        let mut value = answer.unwrap_or_else(|error| tool.unanswered(format!("{error:#}")));
        let call_id = value.remove("call_id").and_then(|id| id.as_str().map(str::to_owned));
        let is_error = tool.is_failure(&value);
        let mut result = mcp::result(value, is_error, call_id);
        if self.calling_session(&request.meta) == Conversation::Ambiguous {
            result.content.push(ContentBlock::text(harness_session::AMBIGUOUS));
        }
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        request: Request,
    ) -> Result<ListResourcesResult, ErrorData> {
        // The token may be bound to a conversation, which only the hub knows.
        let listed = self.forward("resources/list", &request.meta).await?;
        let resources = serde_json::from_value(listed["resources"].clone());
        let resources = resources.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Request,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![mcp::pending_template()]))
    }

    async fn read_resource(
        &self,
        ask: ReadResourceRequestParams,
        _: Request,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (id, pending) = self.pending(&ask.uri).await?;
        Ok(mcp::pending_contents(&ask.uri, &id, pending).into())
    }

    // rmcp answers this and the next method with empty results by default. The hub does not support them, so this does not.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Request,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn complete(&self, _: CompleteRequestParams, _: Request) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    #[allow(deprecated, reason = "clients of the era of sessions still ask for it")]
    async fn subscribe(&self, ask: SubscribeRequestParams, request: Request) -> Result<(), ErrorData> {
        self.pending(&ask.uri).await?;
        let mut changes = self.changes(std::slice::from_ref(&ask.uri));
        let task = tokio::spawn(async move {
            while let Some(uri) = changes.next().await {
                if request.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                    return;
                }
            }
        });
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = followed.insert(ask.uri, task.abort_handle()) {
            before.abort();
        }
        Ok(())
    }

    #[allow(deprecated, reason = "clients of the era of sessions still ask for it")]
    async fn unsubscribe(&self, ask: UnsubscribeRequestParams, _: Request) -> Result<(), ErrorData> {
        if let Some(task) = self.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(&ask.uri) {
            task.abort();
        }
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(mcp::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes(&context.accepted().resource_subscriptions.clone().unwrap_or_default());
        loop {
            tokio::select! {
                Some(uri) = changes.next() => if context.sink().notify_resource_updated(uri).await.is_err() {
                    return Ok(());
                },
                () = context.cancelled() => return Ok(()),
            }
        }
    }
}

/// The session that calls, where the harness says it in each call.
fn thread(meta: &RequestMetaObject) -> Option<&str> {
    meta.get("threadId").and_then(Value::as_str)
}

fn no_such(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })))
}
