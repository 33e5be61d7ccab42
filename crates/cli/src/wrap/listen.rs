//! A local HTTP address in front of a server that is reached over streamable HTTP: an HTTP client uses it in place of the
//! server's own.
//!
//! Requests and responses pass with their headers. Only the JSON and the events of MCP's responses are read, and results of
//! tools get their block. It listens on this machine only, and refuses requests that a foreign web page makes.

mod guard;
mod relay;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use super::ending::Signals;
use super::proxy::Proxy;
use super::remote::Remote;
use sessions::Sessions;

pub(super) struct Listener {
    remote: Remote,
    proxy: Arc<Proxy>,
    sessions: Sessions,
}

/// Serves until a signal; returns the exit code.
pub(super) async fn run(remote: Remote, address: SocketAddr, proxy: &Arc<Proxy>) -> Result<i32> {
    let socket = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let here = socket.local_addr().context("the listener has no address")?;
    anstream::eprintln!("http://{here}{} stands in front of {}", remote.url.path(), proxy.server);
    let listener = Arc::new(Listener { remote, proxy: proxy.clone(), sessions: Sessions::default() });
    let socket = socket.tap_io(|stream| {
        // Slower without it, and otherwise the same.
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new().fallback(answer).with_state(listener);
    let mut signals = Signals::new()?;
    let code = tokio::select! {
        served = axum::serve(socket, router) => served.map(|()| 0).context("cannot serve")?,
        signal = signals.next() => signal.exit_code(),
    };
    proxy.news.finish().await;
    Ok(code)
}

async fn answer(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    match guard::is_local_request(request.headers()) {
        true => listener.relay(request).await,
        false => guard::plain(StatusCode::FORBIDDEN, guard::REFUSED),
    }
}
