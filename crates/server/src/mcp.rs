//! The agent tools over the Model Context Protocol, at `/mcp`: every revision that clients still speak, up to 2026-07-28.
//!
//! The protocol's own library reads and writes its messages. What is ours: who may come in (the router's table), which
//! session belongs to which token and when it ends (`sessions`), and what a server of ours says ([`McpServer`]). A push is
//! a hint that something waits and never the news itself: whether a client hears it is not known, so the record of what
//! an agent was told is the injection alone.

mod endpoint;
mod hints;
mod priming;
mod server;
mod sessions;
mod translate;

pub(crate) use endpoint::Endpoint;
pub use hints::accepted;
pub use server::{McpServer, about};
pub use translate::{
    TEMPLATE, conversation_of, definitions, pending_contents, pending_resource, pending_template, pending_uri, result,
};
