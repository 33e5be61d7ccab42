mod bridge;
mod changes;
mod embedded;

use anyhow::{Context as _, Result};
use clap::Args;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use crate::client::{Client, Connection};
use bridge::Bridge;
use embedded::Embedded;

/// Give an agent its tools, as an MCP server on standard input and output
///
/// Agents start it by themselves, as `bellwire mcp` in their list of MCP servers. It passes every call on to a running
/// hub, or, with --embedded, to one of its own for as long as the agent runs. Nothing but the protocol is written to
/// standard output.
#[derive(Args)]
pub(crate) struct McpArgs {
    /// Run a hub of its own on this machine's data folder, instead of asking a running one
    #[arg(long, conflicts_with_all = ["url", "token"])]
    embedded: bool,
    #[command(flatten)]
    defaults: DefaultContext,
    #[command(flatten)]
    connection: Connection,
}

/// For whom the agent speaks; what a call says in its _meta goes first
#[derive(Args, Clone, Default)]
struct DefaultContext {
    /// The person the agent works for; not needed where the token is bound to one
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The conversation; its pending notifications come with every result
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// The agent inside the conversation
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

/// The user and conversation of an embedded hub, unless flags or calls name others.
const OWNER: &str = "me";
const CONVERSATION: &str = "default";

pub(crate) fn run(arguments: &McpArgs) -> Result<bool> {
    let mut defaults = arguments.defaults.clone();
    if !arguments.embedded {
        return serve(Client::new(&arguments.connection)?, defaults, std::future::pending());
    }
    let hub = Embedded::start(&arguments.connection)?;
    defaults.user.get_or_insert_with(|| OWNER.to_owned());
    defaults.conversation.get_or_insert_with(|| CONVERSATION.to_owned());
    let served = hub.client().and_then(|client| serve(client, defaults, hub.failed()));
    hub.stop()?;
    served
}

/// Serves MCP on standard input and output until the agent disconnects, or until the hub inside this process has failed.
fn serve(client: Client, defaults: DefaultContext, failed: impl Future<Output = ()>) -> Result<bool> {
    let client = std::sync::Arc::new(client);
    let bridge = Bridge::new(client.clone(), defaults);
    let served = client.block_on(async {
        tokio::select! {
            served = converse(bridge) => Some(served),
            () = failed => None,
        }
    });
    served.unwrap_or_else(|| {
        // Its runtime reads standard input on a thread of its own and would wait for that when it is dropped.
        std::mem::forget(client);
        Err(anyhow::anyhow!("the hub inside this process has failed"))
    })
}

async fn converse(bridge: Bridge) -> Result<bool> {
    let running = match bridge.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // The agent disconnected before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(true),
        Err(error) => return Err(error).context("the agent and this server do not understand each other"),
    };
    running.waiting().await.context("serving failed")?;
    Ok(true)
}
