//! The stand-in enforces the rules that Telegram documents; each file is one part of the API.

mod faults;
mod send;
mod touch;
mod updates;

use serde_json::{Value, json};
use telegram_standin::Standin;

/// A user whose private chat is open.
const ADA: i64 = 1815;

/// A client that works in a build of the whole workspace, where other crates switch TLS on without a provider.
fn client() -> reqwest::Client {
    // Only the first call of a process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// Calls a method with a JSON body; returns the status and the answer.
async fn call(standin: &Standin, method: &str, parameters: Value) -> (u16, Value) {
    let url = format!("{}/bot{}/{method}", standin.url(), standin.token());
    let response = client().post(url).json(&parameters).send().await.expect("an answer");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

/// The description of the refusal, with its status.
async fn refused(standin: &Standin, method: &str, parameters: Value) -> (u16, String) {
    let (status, body) = call(standin, method, parameters).await;
    assert_eq!((&body["ok"], &body["error_code"]), (&json!(false), &json!(status)), "{body}");
    (status, body["description"].as_str().expect("a description").to_owned())
}

/// The result of a call that works.
async fn result(standin: &Standin, method: &str, parameters: Value) -> Value {
    let (status, body) = call(standin, method, parameters).await;
    assert_eq!((status, &body["ok"]), (200, &json!(true)), "{body}");
    body["result"].clone()
}

fn standin() -> Standin {
    let standin = Standin::start();
    standin.open_chat(ADA);
    standin
}
