//! The MCP endpoints between the processes of `notify`: `/mcp/switchboard` with the tool `deliver`, and `/mcp/messenger`
//! with `route.execute`. They have no sessions: every request stands alone, in every revision of the protocol.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, MetaObject, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};

use super::server::{authenticated, in_time};
use super::translate;
use crate::config::Limits;
use crate::http::Hub;
use crate::notify::DaemonTool;

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;
type Serve = Arc<dyn Fn(Request) -> ResponseFuture + Send + Sync>;

/// The endpoints of the Switchboard and of the Messenger.
#[derive(Clone)]
pub(crate) struct DaemonEndpoints {
    switchboard: Serve,
    messenger: Serve,
}

impl DaemonEndpoints {
    pub(crate) fn new(hub: &Hub, limits: &Limits) -> Self {
        let serve = |tool| endpoint(DaemonServer { hub: hub.clone(), tool }, limits);
        Self { switchboard: serve(DaemonTool::Deliver), messenger: serve(DaemonTool::RouteExecute) }
    }

    /// Handles one authenticated request for this tool.
    pub(crate) async fn answer(&self, tool: DaemonTool, request: Request) -> Response {
        match tool {
            DaemonTool::Deliver => (self.switchboard)(request).await,
            DaemonTool::RouteExecute => (self.messenger)(request).await,
        }
    }
}

fn endpoint(server: DaemonServer, limits: &Limits) -> Serve {
    let config = StreamableHttpServerConfig::default()
        // `OriginCheck` has checked host and origin already, as for all routes.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(limits.body_bytes);
    let manager = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), manager, config);
    Arc::new(move |request: Request| {
        let service = service.clone();
        Box::pin(async move { service.handle(request).await.map(Body::new) })
    })
}

/// Serves one tool.
#[derive(Clone)]
struct DaemonServer {
    hub: Hub,
    tool: DaemonTool,
}

impl DaemonServer {
    fn definition(&self) -> Tool {
        let mut tool = Tool::new(self.tool.name(), self.tool.description(), Arc::new(self.tool.input_schema()));
        tool.output_schema = Some(Arc::new(self.tool.output_schema()));
        tool
    }
}

impl ServerHandler for DaemonServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("bellwire", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.definition()]))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == self.tool.name()).then(|| self.definition())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if call.name != self.tool.name() {
            let message = format!("there is no tool '{}' here; the only one is {}", call.name, self.tool.name());
            return Err(ErrorData::invalid_params(message, None));
        }
        let (identity, _) = authenticated(&request)?;
        let arguments = call.arguments.map_or(Value::Null, Value::Object);
        let answer = in_time(&request, self.tool.call(&self.hub, &identity, arguments, &request.meta)).await?;
        let value = match answer.value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let mut result = translate::result(value, answer.is_error, None);
        result.meta = (!answer.meta.is_empty()).then_some(MetaObject(answer.meta));
        Ok(result.into())
    }
}
