use std::sync::Arc;

use axum::http::request::Parts;
use bellwire_store::ErrorKind;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams, CompleteResult,
    DiscoverResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::hints::{self, Subscriptions};
use super::instructions::{boundary_of, instructions};
use super::translate::{self, conversation_of, pending_contents, pending_resource, pending_template};
use crate::auth::Identity;
use crate::http::{ApiError, Correlation, Hub, InProgress};
use crate::tools::{self, Context, ToolRefusal};

/// The MCP request handler. There is one per session; since revision 2026-07-28, which has no sessions, one per request.
#[derive(Clone)]
pub struct McpServer {
    hub: Hub,
    subscriptions: Arc<Subscriptions>,
}

/// The server's name, version and capabilities, and its instructions for a client whose conversation is not known.
pub fn about() -> ServerConfig {
    let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe();
    let implementation = Implementation::new("bellwire", env!("CARGO_PKG_VERSION")).with_title("Bellwire");
    ServerConfig::new(capabilities.build()).with_server_info(implementation).with_instructions(instructions(None))
}

impl McpServer {
    pub(super) fn new(hub: Hub) -> Self {
        Self { hub, subscriptions: Arc::default() }
    }

    /// The context of a request other than a tool call.
    fn context(&self, request: &RequestContext<RoleServer>) -> Result<Context, ErrorData> {
        let requested_context =
            translate::requested_context(&request.meta).map_err(|refused| invalid(refused.message()))?;
        let (identity, correlation_id) = authenticated(request)?;
        Context::of(identity, requested_context, &correlation_id).map_err(|error| invalid(&error.message))
    }

    /// The token's identity, restricted to the user in the request's context.
    fn identity_for_user(&self, request: &RequestContext<RoleServer>) -> Result<Identity, ErrorData> {
        let context = self.context(request)?;
        let mut identity = Identity::clone(&context.identity);
        identity.caller = context.caller();
        Ok(identity)
    }

    /// The instructions for the client of this request. Without the boundary they are still of use, so an error does not
    /// fail the request.
    async fn instructions(&self, request: &RequestContext<RoleServer>) -> String {
        let boundary = match self.context(request) {
            Ok(context) => in_time(request, boundary_of(&self.hub, &context)).await.ok().and_then(Result::ok).flatten(),
            Err(_) => None,
        };
        instructions(boundary.as_ref())
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        about()
    }

    async fn initialize(
        &self,
        ask: InitializeRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        request.peer.set_peer_info(ask.clone());
        Ok(self.negotiate_initialize(&ask)?.with_instructions(self.instructions(&request).await))
    }

    async fn discover(&self, request: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let about = about().with_instructions(self.instructions(&request).await);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), about))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(translate::offered(&self.hub.channels)))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        tools::find(name).map(|tool| translate::offered_tool(tool, &self.hub.channels))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = tools::find(&call.name).ok_or_else(|| invalid(&format!("there is no tool '{}'", call.name)))?;
        let (identity, correlation_id) = authenticated(&request)?;
        let context = translate::requested_context(&request.meta).and_then(|requested_context| {
            Context::of(identity, requested_context, &correlation_id)
                .map_err(|error| ToolRefusal::invalid(message_with_field(&error)))
        });
        let result = match context {
            Ok(context) => {
                let arguments = call.arguments.map_or(Value::Null, Value::Object);
                in_time(&request, tools::call(&self.hub, tool, context, arguments)).await?
            }
            Err(refused) => tool.refuse(refused),
        };
        Ok(translate::result(result.value, result.is_error, result.call_id).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        request: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let conversation = self.context(&request)?.conversation_id;
        let own = conversation.iter().map(|id| pending_resource(id)).collect();
        Ok(ListResourcesResult::with_all_items(own))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![pending_template()]))
    }

    async fn read_resource(
        &self,
        ask: ReadResourceRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let id = conversation_of(&ask.uri).ok_or_else(|| resource_not_found(&ask.uri))?;
        let caller = self.identity_for_user(&request)?.caller;
        let view = in_time(&request, self.hub.store.conversation(caller, id)).await?;
        let view = view.map_err(|error| match error.kind {
            ErrorKind::NotFound => resource_not_found(&ask.uri),
            _ => internal_error(&error.into()),
        })?;
        Ok(pending_contents(&ask.uri, &view.id, view.pending as u64).into())
    }

    // rmcp answers this and the next method with empty results by default. The server does not support them, so it says so.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    #[allow(deprecated, reason = "clients of the era of sessions still ask for it")]
    async fn subscribe(
        &self,
        ask: SubscribeRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let id = conversation_of(&ask.uri).ok_or_else(|| resource_not_found(&ask.uri))?;
        let feed = in_time(&request, hints::open(&self.hub, self.identity_for_user(&request)?, &ask.uri, id)).await??;
        self.subscriptions.begin(ask.uri, feed, request.peer)
    }

    #[allow(deprecated, reason = "clients of the era of sessions still ask for it")]
    async fn unsubscribe(&self, ask: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.subscriptions.end(&ask.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(hints::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let identity = self.identity_for_user(request)?;
        let changes = in_time(request, hints::open_all(&self.hub, &identity, context.accepted())).await??;
        if let Some(in_progress) = in_progress(request) {
            in_progress.becomes_stream();
        }
        hints::listen(changes, &context).await
    }
}

/// The request over HTTP that this one came with.
fn in_progress(request: &RequestContext<RoleServer>) -> Option<&InProgress> {
    request.extensions.get::<Parts>()?.extensions.get::<Arc<InProgress>>().map(|in_progress| &**in_progress)
}

/// Does what a request asks for within the time of its request over HTTP, whose response may have begun.
pub(super) async fn in_time<T>(
    request: &RequestContext<RoleServer>,
    work: impl Future<Output = T>,
) -> Result<T, ErrorData> {
    match in_progress(request) {
        Some(in_progress) => in_progress.in_time(work).await,
        None => Some(work.await),
    }
    .ok_or_else(|| ErrorData::internal_error("this was not done in time (limits.request_seconds)", None))
}

/// The authenticated identity and the correlation id of the HTTP request.
pub(super) fn authenticated(request: &RequestContext<RoleServer>) -> Result<(Arc<Identity>, String), ErrorData> {
    let parts = request.extensions.get::<Parts>();
    let identity = parts.and_then(|parts| parts.extensions.get::<Arc<Identity>>()).cloned();
    let correlation = parts.and_then(|parts| parts.extensions.get::<Correlation>());
    let correlation_id = correlation.map(|correlation| correlation.id().to_owned()).unwrap_or_default();
    // The route table requires a token for `/mcp`, so the pipeline has always set the identity.
    identity.map(|identity| (identity, correlation_id)).ok_or_else(|| ErrorData::internal_error("who asks?", None))
}

fn message_with_field(error: &ApiError) -> String {
    error.field.as_ref().map_or_else(|| error.message.clone(), |field| format!("{field}: {}", error.message))
}

fn invalid(message: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), None)
}

pub(super) fn resource_not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })))
}

pub(super) fn internal_error(error: &ApiError) -> ErrorData {
    ErrorData::internal_error(error.message.clone(), None)
}
