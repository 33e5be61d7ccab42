//! An HTTP client for a hub that may be killed at any time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::sync::watch;

/// The longest the hub may be down or a request may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The status and body of the response.
    Answered(u16, String),
    /// The connection broke; the hub may or may not have carried the call out.
    Lost,
}

/// A request that can be repeated byte for byte.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), content_type: "application/json", body: String::new() }
    }

    pub(crate) fn put(path: impl Into<String>, body: &Value) -> Self {
        Self { method: Method::PUT, ..Self::post(path, body) }
    }

    pub(crate) fn post(path: impl Into<String>, body: &Value) -> Self {
        let content_type = "application/json";
        Self { method: Method::POST, path: path.into(), content_type, body: body.to_string() }
    }
}

/// Follows the hub to its current address; there is none while the hub is down.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    token: Arc<str>,
    address: watch::Receiver<Option<String>>,
    answers: Arc<AtomicU64>,
}

impl Client {
    pub(crate) fn new(token: &str, address: watch::Receiver<Option<String>>) -> Self {
        // Fails if another client of this process has installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(TIMEOUT).build().expect("a client can be made");
        Self { http, token: token.into(), address, answers: Arc::default() }
    }

    /// A client with a fixed address and the admin token of the folder.
    pub(crate) fn of(folder: &Path, address: &str) -> Self {
        Self::new(&admin_token(folder), watch::channel(Some(address.to_owned())).1)
    }

    /// The number of responses that this client and its clones have received.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::SeqCst)
    }

    /// Makes the call once, as soon as the hub is up.
    pub(crate) async fn call(&self, call: &Call) -> Reply {
        let mut address = self.address.clone();
        let there = tokio::time::timeout(TIMEOUT, address.wait_for(Option::is_some)).await;
        let there = there.expect("the hub comes back").expect("the test runs").clone();
        self.call_at(there.as_deref().unwrap_or_default(), call).await
    }

    /// Repeats the call until it gets a response.
    pub(crate) async fn call_until_answered(&self, call: &Call) -> (u16, String) {
        loop {
            match self.call(call).await {
                Reply::Answered(status, body) => return (status, body),
                Reply::Lost => tokio::task::yield_now().await,
            }
        }
    }

    /// Repeats the call until it gets a response, which must be 2xx; returns the body.
    pub(crate) async fn expect(&self, call: &Call) -> String {
        match self.call_until_answered(call).await {
            (200..=299, body) => body,
            (status, body) => panic!("{} {} was answered {status}: {body}", call.method, call.path),
        }
    }

    /// The status of `/readyz`.
    pub(crate) async fn ready(&self) -> u16 {
        self.call_until_answered(&Call::get("/readyz")).await.0
    }

    async fn call_at(&self, address: &str, call: &Call) -> Reply {
        let request = self
            .http
            .request(call.method.clone(), format!("http://{address}{}", call.path))
            .bearer_auth(&self.token)
            .header("content-type", call.content_type)
            .body(call.body.clone());
        let Ok(response) = request.send().await else { return Reply::Lost };
        let status = response.status().as_u16();
        match response.text().await {
            Ok(body) => {
                self.answers.fetch_add(1, Ordering::SeqCst);
                Reply::Answered(status, body)
            }
            Err(_) => Reply::Lost,
        }
    }

    /// Opens a conversation's stream.
    pub(crate) async fn stream(&self, conversation: &str) -> reqwest::Response {
        let address = self.address.borrow().clone().expect("the hub runs");
        let url = format!("http://{address}/v1/conversations/{conversation}/stream");
        self.http.get(url).bearer_auth(&self.token).send().await.expect("the stream opens")
    }
}

pub(crate) fn admin_token(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("admin.token")).expect("the first start left its token");
    text.trim().to_owned()
}

pub(crate) fn json(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {body}"))
}
