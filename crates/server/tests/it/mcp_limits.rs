//! What a token may have in progress over MCP, where work goes on behind the head of a response.

use std::sync::Arc;

use bellwire_server::Config;
use bellwire_server::mcp::McpServer;
use reqwest::{Method, StatusCode};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InitializeRequestParams, InitializeResult, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _};
use tokio::sync::Semaphore;

use crate::hub::TestHub;
use crate::mailed::wait_for;
use crate::mcp::{Client, Messages};

/// A server whose tools take until the test lets them go on, and the handshake of a client called `slow` too.
struct Slow {
    server: McpServer,
    go_on: Arc<Semaphore>,
}

impl ServerHandler for Slow {
    fn get_info(&self) -> ServerConfig {
        self.server.get_info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if request.client_info.name == "slow" {
            self.go_on.acquire().await.expect("it is never closed").forget();
        }
        self.server.initialize(request, context).await
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _request: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.go_on.acquire().await.expect("it is never closed").forget();
        Ok(CallToolResult::success(Vec::new()).into())
    }
}

#[tokio::test]
async fn a_tool_call_counts_until_the_tool_is_done_even_if_its_client_goes() {
    let go_on = Arc::new(Semaphore::new(0));
    let held = go_on.clone();
    let mut config = Config::default();
    config.limits.concurrent_per_token = 2;
    let hub = TestHub::start_offering(config, move |server| Slow { server, go_on: held.clone() }).await;
    let agent = hub.token("agent", "ada").await;
    let (client, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    let call = |id: u64| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "notify_self"}});
        let request = client.request(Method::POST).json(&message);
        async { request.send().await.unwrap() }
    };
    let (first, second) = (call(2).await, call(3).await);
    assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK), "the heads come at once");
    assert_eq!(call(4).await.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(second);
    for id in 5..25 {
        assert_eq!(call(id).await.status(), StatusCode::TOO_MANY_REQUESTS, "a tool goes on when its client goes");
    }
    go_on.add_permits(2);
    assert_eq!(Messages::of(first).next().await.unwrap()["id"], 2);
    wait_for("the calls to be over", || async { call(30).await.status() == StatusCode::OK }).await;
}

#[tokio::test]
async fn a_session_counts_even_if_its_client_goes_while_it_begins() {
    let go_on = Arc::new(Semaphore::new(0));
    let held = go_on.clone();
    let mut config = Config::default();
    config.limits.mcp_sessions_per_token = 1;
    let hub = TestHub::start_offering(config, move |server| Slow { server, go_on: held.clone() }).await;
    let agent = hub.token("agent", "ada").await;
    let client = Client::new(&hub, &agent);
    let hello = |name: &str| {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        client.request(Method::POST).json(&message)
    };
    let gone = hello("slow").timeout(std::time::Duration::from_millis(500)).send().await;
    assert!(gone.is_err_and(|error| error.is_timeout()), "the client goes while the session begins");
    go_on.add_permits(1);
    // The first session that is refused shows that the other one is counted.
    wait_for("the session to count", || async {
        let response = hello("quick").send().await.unwrap();
        if let Some(id) = response.headers().get("mcp-session-id") {
            let end = client.request(Method::DELETE).header("mcp-session-id", id).send().await.unwrap();
            assert_eq!(end.status(), StatusCode::NO_CONTENT);
        }
        response.status() == StatusCode::TOO_MANY_REQUESTS
    })
    .await;
}

#[tokio::test]
async fn a_tool_call_that_is_not_done_in_time_is_an_error() {
    let mut config = Config::default();
    config.limits.request_seconds = 1;
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    let (client, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    let note =
        json!({"name": "notify_self", "arguments": {"message": "late"}, "_meta": {"bellwire/conversation_id": "chat"}});
    // The hub's writer waits for this transaction, for up to five seconds.
    let file = hub.folder.path().join("bellwire.db");
    let mut other = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let late = client.ask("tools/call", note.clone()).await;
    other.execute("ROLLBACK").await.unwrap();
    assert!(late["error"]["message"].as_str().unwrap().contains("limits.request_seconds"), "{late}");
    // On a busy machine a call may take longer than a second again.
    let works = || async { client.ask("tools/call", note.clone()).await["result"]["isError"] == false };
    wait_for("the session to go on", works).await;
}

#[tokio::test]
async fn a_request_that_listens_to_nothing_is_a_stream_too() {
    let mut config = Config::default();
    (config.limits.streams_per_token, config.limits.concurrent_per_token) = (2, 1);
    let hub = TestHub::start_with(config).await;
    let body = json!({"scope": "agent", "user_id": "ada", "origin": "butler"});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let agent = made["token"].as_str().unwrap();
    let client = Client::new(&hub, agent);
    let mut open = Vec::new();
    while open.len() < 2 {
        let response = client.send_alone("subscriptions/listen", json!({"notifications": {}})).await;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            // The one before is acknowledged and not yet a stream.
            continue;
        }
        let mut stream = Messages::of(response);
        let acknowledged = stream.next().await.unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        open.push(stream);
    }
    let (status, _) = hub.get(agent, "/v1/subscribers").await;
    assert_eq!(status, StatusCode::OK, "a stream is no request in progress");
    let refused = async || {
        let response = client.send_alone("subscriptions/listen", json!({"notifications": {}})).await;
        let mut third = Messages::of(response);
        third.next().await;
        third.next().await
    };
    let refusal = refused().await.expect("a third stream is refused");
    assert!(refusal["error"]["message"].as_str().unwrap().contains("limits.streams_per_token"), "{refusal}");
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    hub.call(&hub.admin, Method::DELETE, &path, None).await;
    for stream in &mut open {
        while let Some(last) = stream.next().await {
            assert!(last["result"].is_object(), "the last word is the end: {last}");
        }
    }
}
