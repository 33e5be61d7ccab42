//! Routes requests to the fixtures, and the rest to the hub's own MCP server.

use std::sync::Arc;

use bellwire_server::mcp::McpServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::broadcast;

use crate::{ask, content, input, progress};

type Request = RequestContext<RoleServer>;

/// A list that has changed, sent to all listeners.
#[derive(Copy, Clone)]
pub(crate) enum Change {
    Tools,
    Prompts,
}

pub(crate) struct Board(broadcast::Sender<Change>);

impl Default for Board {
    fn default() -> Self {
        Self(broadcast::channel(16).0)
    }
}

pub(crate) struct Fixtures {
    own: McpServer,
    board: Arc<Board>,
}

impl Fixtures {
    pub(crate) fn new(own: McpServer, board: Arc<Board>) -> Self {
        Self { own, board }
    }

    fn tools() -> Vec<Tool> {
        [content::tools(), progress::tools(), ask::tools(), input::tools()].concat()
    }

    /// Sends to all listeners; there may be none.
    fn changed(&self, change: Change) -> CallToolResponse {
        let _ = self.board.0.send(change);
        content::text("Changed.").into()
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut info = self.own.get_info();
        info.capabilities = capabilities;
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        request: Request,
    ) -> Result<ListToolsResult, ErrorData> {
        let own = self.own.list_tools(page, request).await?;
        Ok(ListToolsResult::with_all_items([own.tools, Self::tools()].concat()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.own.get_tool(name).or_else(|| Self::tools().into_iter().find(|tool| tool.name == name))
    }

    async fn call_tool(&self, call: CallToolRequestParams, request: Request) -> Result<CallToolResponse, ErrorData> {
        if let Some(answer) = content::call(&call.name) {
            return Ok(answer.into());
        }
        match call.name.as_ref() {
            "test_trigger_tool_change" => Ok(self.changed(Change::Tools)),
            "test_trigger_prompt_change" => Ok(self.changed(Change::Prompts)),
            name if progress::has(name) => progress::call(name, &request).await.map(Into::into),
            name if ask::has(name) => ask::call(&call, &request).await.map(Into::into),
            name if input::has(name) => input::call(&call, &request),
            _ => self.own.call_tool(call, request).await,
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Request,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(content::prompts()))
    }

    async fn get_prompt(&self, ask: GetPromptRequestParams, _: Request) -> Result<GetPromptResponse, ErrorData> {
        match ask.name.as_str() {
            input::PROMPT => Ok(input::prompt(&ask)),
            _ => content::prompt(&ask).map(Into::into),
        }
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        request: Request,
    ) -> Result<ListResourcesResult, ErrorData> {
        let own = self.own.list_resources(page, request).await?;
        Ok(ListResourcesResult::with_all_items([own.resources, content::resources()].concat()))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        request: Request,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let own = self.own.list_resource_templates(page, request).await?;
        let all = [own.resource_templates, content::templates()].concat();
        Ok(ListResourceTemplatesResult::with_all_items(all))
    }

    async fn read_resource(
        &self,
        ask: ReadResourceRequestParams,
        request: Request,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match content::resource(&ask.uri) {
            Some(found) => Ok(found.into()),
            None => self.own.read_resource(ask, request).await,
        }
    }

    async fn subscribe(&self, ask: SubscribeRequestParams, request: Request) -> Result<(), ErrorData> {
        match ask.uri.starts_with("test://") {
            true => Ok(()),
            false => self.own.subscribe(ask, request).await,
        }
    }

    async fn unsubscribe(&self, ask: UnsubscribeRequestParams, request: Request) -> Result<(), ErrorData> {
        self.own.unsubscribe(ask, request).await
    }

    async fn set_level(&self, _: SetLevelRequestParams, request: Request) -> Result<(), ErrorData> {
        let version = request.protocol_version().map(|version| version.to_string());
        match version.is_some_and(|version| version.as_str() >= "2026-07-28") {
            true => Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>()),
            false => Ok(()),
        }
    }

    async fn complete(&self, _: CompleteRequestParams, _: Request) -> Result<CompleteResult, ErrorData> {
        let values = vec!["paris".to_owned(), "park".to_owned()];
        Ok(CompleteResult::new(CompletionInfo::new(values).expect("two are not too many")))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.board.0.subscribe();
        let accepted = context.accepted().clone();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
            };
            let told = match change {
                Ok(Change::Tools) if accepted.tools_list_changed == Some(true) => {
                    context.sink().notify_tool_list_changed().await
                }
                Ok(Change::Prompts) if accepted.prompts_list_changed == Some(true) => {
                    context.sink().notify_prompt_list_changed().await
                }
                _ => Ok(()),
            };
            if told.is_err() {
                return Ok(());
            }
        }
    }
}
