//! The agent tools over the Model Context Protocol, at `/mcp`: every revision that clients still speak, up to 2026-07-28.
//! Clients of the first revision, 2024-11-05, use the transport in `sse`.
//!
//! rmcp reads and writes the protocol's messages. This crate adds authentication (the route table), the owner and the end
//! of each session (`sessions`), and the request handler ([`McpServer`]). A resource update only says that notifications
//! are pending and never contains them: whether a client receives an update is unknown, so only an injection marks
//! notifications as shown.

mod daemon;
mod endpoint;
mod hints;
mod instructions;
mod priming;
mod server;
mod sessions;
mod sse;
mod translate;

pub(crate) use daemon::DaemonEndpoints;
pub(crate) use endpoint::{Endpoint, to_api_error};
pub use hints::accepted;
pub use server::{McpServer, about};
pub use translate::{
    TEMPLATE, conversation_of, definitions, pending_contents, pending_resource, pending_template, pending_uri, result,
};
