use std::sync::{Arc, Mutex};

use axum::http::Uri;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A Switchboard or Messenger that the test plays: it records what it is asked, and answers as told.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Peer {
    /// Answers the arguments of a tool call with its structured result.
    pub(super) async fn start(answer: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static) -> Self {
        Self::start_with_meta(move |arguments, _| (answer(arguments), json!({}))).await
    }

    /// Answers a tool call with its structured result and its `_meta`, by its arguments and the number of earlier calls.
    pub(super) async fn start_with_meta(
        answer: impl Fn(&Value, usize) -> (Value, Value) + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let peer = Self { url, asked: Arc::default() };
        let asked = peer.asked.clone();
        let serve = move |uri: Uri, Json(message): Json<Value>| async move {
            let params = message["params"].clone();
            let earlier = {
                let mut asked = asked.lock().unwrap();
                asked.push(json!({"path": uri.path(), "tool": params["name"], "arguments": params["arguments"]}));
                asked.len() - 1
            };
            let (answer, meta) = answer(&params["arguments"], earlier);
            let result = json!({"structuredContent": answer, "content": [], "_meta": meta});
            Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(serve)).await });
        peer
    }

    /// A Switchboard that says that everything was delivered.
    pub(super) async fn switchboard() -> Self {
        Self::start(sent).await
    }

    /// The calls so far: path, tool and arguments.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// The notify.v1 envelopes of these calls.
    pub(super) fn envelopes(&self) -> Vec<Value> {
        self.asked().into_iter().map(|call| call["arguments"]["notify_request"].clone()).collect()
    }
}

/// The Switchboard's answer that a request was delivered.
pub(super) fn sent(arguments: &Value) -> Value {
    let request = &arguments["notify_request"];
    json!({
        "notification_id": uuid::Uuid::nil(), "status": "sent",
        "result": {
            "schema_version": "notify_response.v1", "status": "ok",
            "request_context": {"request_id": request["request_context"]["request_id"]},
            "delivery": {"channel": request["delivery"]["channel"], "delivery_id": "1"},
        },
    })
}

/// The Switchboard's answer that a request failed.
pub(super) fn failed(arguments: &Value, class: &str, message: &str, retryable: bool) -> Value {
    let request_id = &arguments["notify_request"]["request_context"]["request_id"];
    json!({
        "notification_id": uuid::Uuid::nil(), "status": "failed",
        "error": message, "error_class": class, "retryable": retryable,
        "result": {
            "schema_version": "notify_response.v1", "status": "error", "request_context": {"request_id": request_id},
            "error": {"class": class, "message": message, "retryable": retryable},
        },
    })
}
