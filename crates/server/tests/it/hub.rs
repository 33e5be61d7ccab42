use bellwire_server::auth::Scope;
use bellwire_server::{App, Config, create_token};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A hub of its own for each test, on SQLite in a folder that goes with it.
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

    async fn start_as(config: Config, folder: tempfile::TempDir) -> Self {
        let sizes = bellwire_store::Sizes::SMALL;
        let config = Config { data_dir: Some(folder.path().to_owned()), sizes, ..config };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App::start(config, listener, async move { drop(stopped.await) }).await.expect("the hub starts");
        let admin = create_token(&*app.store, Scope::Admin, "test").await.expect("a token is made");
        let base = format!("http://{}", app.address);
        Self { base, admin, client: client(), folder, app, stop }
    }

    /// What it remembers.
    pub(crate) fn store(&self) -> std::sync::Arc<dyn bellwire_store::Store> {
        self.app.store.clone()
    }

    /// Waits until the hub has stopped by itself, and gives the reason.
    pub(crate) async fn failed(self) -> std::io::Error {
        let _running = self.stop;
        self.app.stopped().await.expect_err("a hub that nobody stopped has failed")
    }

    /// Stops the hub as an operator would and gives the folder back.
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

    /// A token of this scope, bound to this person if the scope can be.
    pub(crate) async fn token(&self, scope: &str, user: &str) -> String {
        let user = (!matches!(scope, "admin" | "daemon")).then_some(user);
        let body = json!({"scope": scope, "user_id": user, "origin": "butler"});
        let (status, answer) = self.post(&self.admin, "/v1/tokens", body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        answer["token"].as_str().expect("the secret is shown once").to_owned()
    }
}

/// A client as the workspace builds it: one that speaks TLS and leaves the choice of the cryptography to the program.
fn client() -> Client {
    // Another test of this process may have chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

pub(crate) fn failure(tool: &str) -> Value {
    json!({
        "type": "tool.call.failure", "source": "tool_executor", "severity": "error", "conversation_id": "chat",
        "payload": {"tool_name": tool, "error_type": "timeout"},
    })
}
