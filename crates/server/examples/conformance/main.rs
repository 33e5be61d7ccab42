//! A hub with the tools, resources and prompts that the official MCP conformance suite expects.
//!
//! Only for tests (`scripts/test-mcp`). MCP server, sessions, router and tokens are the hub's own; the fixtures handle their
//! own requests and pass the others on to it. Prints `{"url": …, "token": …}` and runs until
//! it is killed.

#![allow(deprecated, reason = "the suite asks for what older revisions have")]
#![allow(missing_docs, reason = "nobody builds on fixtures")]
#![allow(clippy::unwrap_used, reason = "what the fixtures unwrap, they wrote themselves")]

mod ask;
mod content;
mod fixtures;
mod input;
mod progress;

use std::sync::Arc;

use bellwire_server::auth::Scope;
use bellwire_server::{App, Config, create_token};
use tokio::net::TcpListener;

use fixtures::{Board, Fixtures};

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let board = Arc::new(Board::default());
    let offer = move |server| Fixtures::new(server, board.clone());
    let app = App::start_offering(Config::default(), listener, std::future::pending(), offer).await;
    let app = app.expect("the hub starts");
    let token = create_token(&*app.store, Scope::Admin, "conformance").await.expect("a token is made");
    println!("{}", serde_json::json!({ "url": format!("http://{}/mcp", app.address), "token": token }));
    app.stopped().await.expect("nothing stops it");
}
