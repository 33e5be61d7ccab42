//! `bellwire wrap`: stands between an MCP client and any MCP server, and adds notifications to the results of tools.
//!
//! Every message passes byte for byte, in both directions and in its order. The one exception: the result of a tool call gets
//! one more block at the end of its `content`, if notifications wait. Nothing is taken from the hub for a message that cannot
//! carry it. Without a hub, or with a slow one, everything passes as it is.

mod calls;
mod client_output;
mod ending;
mod hub;
mod lines;
mod listen;
mod message;
mod news;
mod process;
#[cfg(test)]
mod properties;
mod proxy;
mod recipient;
mod remote;
mod report;
mod splice;
mod sse;
mod upstream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use news::News;
use proxy::Proxy;
pub(crate) use recipient::Search;
pub(crate) use remote::Remote;

/// The server that is wrapped, and how its client reaches it.
pub(crate) enum Server {
    /// A command that speaks MCP on its standard input and output.
    Command(Vec<String>),
    /// A server at a URL, for a client on standard input and output.
    Remote(Remote),
    /// A server at a URL, for HTTP clients that connect to a local address instead.
    Behind(SocketAddr, Remote),
}

/// In characters.
const NAME_MAX: usize = 100;

/// Runs until the client or the server is gone; returns the exit code.
pub(crate) fn run(server: Server, search: Search, silence_max: Duration) -> Result<i32> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot start")?;
    let code = runtime.block_on(async {
        let proxy = Arc::new(Proxy { news: News::start(search), server: server.name(), silence_max });
        match server {
            Server::Command(command) => process::run(&command, &proxy).await,
            Server::Remote(remote) => upstream::run(remote, &proxy).await,
            Server::Behind(address, remote) => listen::run(remote, address, &proxy).await,
        }
    });
    // A thread may still read standard input: it is not waited for.
    runtime.shutdown_background();
    code
}

impl Server {
    fn name(&self) -> String {
        match self {
            // Without its arguments: one may be a secret, and the model reads the name.
            Self::Command(command) => command.iter().take(1).flat_map(|name| name.chars()).take(NAME_MAX).collect(),
            Self::Remote(remote) | Self::Behind(_, remote) => remote.shown(),
        }
    }
}
