use std::sync::Arc;

use bellwire_server::auth::Scope;
use bellwire_server::channels::Channel;
use bellwire_server::mcp::McpServer;
use bellwire_server::{App, Config, create_token};
use bellwire_store::Clock;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A hub for one test, with SQLite in a temporary folder that is deleted with it.
pub(crate) struct TestHub {
    pub(crate) base: String,
    pub(crate) admin: String,
    pub(crate) client: Client,
    pub(crate) folder: tempfile::TempDir,
    app: App,
    stop: oneshot::Sender<()>,
}

impl TestHub {
    pub(crate) async fn start() -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder")).await
    }

    pub(crate) async fn start_in(folder: tempfile::TempDir) -> Self {
        Self::start_as(Config::default(), folder).await
    }

    pub(crate) async fn start_with(config: Config) -> Self {
        Self::start_as(config, tempfile::tempdir().expect("a folder")).await
    }

    /// A hub whose MCP server is what `offer` makes of ours.
    pub(crate) async fn start_offering<H: rmcp::ServerHandler + Send + 'static>(
        config: Config,
        offer: impl Fn(McpServer) -> H + Send + Sync + 'static,
    ) -> Self {
        Self::start_whole(config, tempfile::tempdir().expect("a folder"), offer).await
    }

    /// A hub with these channels besides its own.
    pub(crate) async fn start_with_channels(config: Config, channels: Vec<Arc<dyn Channel>>) -> Self {
        Self::start_in_with_channels(config, tempfile::tempdir().expect("a folder"), channels).await
    }

    pub(crate) async fn start_in_with_channels(
        config: Config,
        folder: tempfile::TempDir,
        channels: Vec<Arc<dyn Channel>>,
    ) -> Self {
        let config = in_folder(config, &folder);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App::start_with_channels(config, listener, async move { drop(stopped.await) }, channels).await;
        Self::of(app.expect("the hub starts"), folder, stop).await
    }

    /// A hub whose time is that of this clock.
    pub(crate) async fn start_with_clock(clock: Clock) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = in_folder(Config::default(), &folder);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App::start_with_clock(config, listener, async move { drop(stopped.await) }, clock).await;
        Self::of(app.expect("the hub starts"), folder, stop).await
    }

    pub(crate) async fn start_as(config: Config, folder: tempfile::TempDir) -> Self {
        Self::start_whole(config, folder, |server| server).await
    }

    async fn start_whole<H: rmcp::ServerHandler + Send + 'static>(
        config: Config,
        folder: tempfile::TempDir,
        offer: impl Fn(McpServer) -> H + Send + Sync + 'static,
    ) -> Self {
        let config = in_folder(config, &folder);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App::start_offering(config, listener, async move { drop(stopped.await) }, offer).await;
        Self::of(app.expect("the hub starts"), folder, stop).await
    }

    async fn of(app: App, folder: tempfile::TempDir, stop: oneshot::Sender<()>) -> Self {
        let admin = create_token(&*app.store, Scope::Admin, "test").await.expect("a token is made");
        let base = format!("http://{}", app.address);
        Self { base, admin, client: client(), folder, app, stop }
    }

    /// The hub's store.
    pub(crate) fn store(&self) -> std::sync::Arc<dyn bellwire_store::Store> {
        self.app.store.clone()
    }

    /// Waits until the hub has stopped because of an error, and returns the error.
    pub(crate) async fn failed(self) -> std::io::Error {
        let _running = self.stop;
        self.app.stopped().await.expect_err("the hub stopped without a shutdown request")
    }

    /// Shuts the hub down and returns its folder.
    pub(crate) async fn stop(self) -> tempfile::TempDir {
        drop(self.client);
        self.stop.send(()).expect("the hub runs");
        self.app.stopped().await.expect("it stops in order");
        self.folder
    }

    pub(crate) async fn call(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.client.request(method, format!("{}{path}", self.base)).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.expect("the hub answers");
        let status = response.status();
        let text = response.text().await.expect("a text");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: Value) -> (StatusCode, Value) {
        self.call(token, Method::POST, path, Some(body)).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> (StatusCode, Value) {
        self.call(token, Method::GET, path, None).await
    }

    /// Creates a token of this scope, bound to this user if the scope allows it.
    pub(crate) async fn token(&self, scope: &str, user: &str) -> String {
        let user = (!matches!(scope, "admin" | "daemon")).then_some(user);
        let body = json!({"scope": scope, "user_id": user, "origin": "butler"});
        let (status, answer) = self.post(&self.admin, "/v1/tokens", body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        answer["token"].as_str().expect("the secret is shown once").to_owned()
    }
}

fn in_folder(config: Config, folder: &tempfile::TempDir) -> Config {
    Config { data_dir: Some(folder.path().to_owned()), sizes: bellwire_store::Sizes::SMALL, ..config }
}

/// An HTTP client. The workspace builds reqwest without a TLS crypto provider, so one is installed first.
fn client() -> Client {
    // Fails if another test of this process has installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

pub(crate) fn failure(tool: &str) -> Value {
    json!({
        "type": "tool.call.failure", "source": "tool_executor", "severity": "error", "conversation_id": "chat",
        "payload": {"tool_name": tool, "error_type": "timeout"},
    })
}
