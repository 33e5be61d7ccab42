mod bridge;
mod changes;
mod embedded;
pub(crate) mod harness_session;

use anyhow::{Context as _, Result};
use clap::Args;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use crate::client::{Client, Connection};
use crate::hosts::{Host, HostFile};
use bridge::Bridge;
use embedded::Embedded;

/// Serve the agent's tools over MCP on standard input and output
///
/// Add `bellwire mcp` to the MCP servers of an agent, which then starts it. It forwards every call to a running hub, or with
/// --embedded to a hub in the same process. Standard output carries only the protocol.
#[derive(Args)]
pub(crate) struct McpArgs {
    /// Run a hub on this machine's data folder in the same process
    #[arg(long, conflicts_with_all = ["url", "token"])]
    embedded: bool,
    /// The harness that starts this server, as `bellwire install` writes it: the hub and the token are those of its file,
    /// and the conversation is that of the session
    #[arg(long, value_name = "HOST", conflicts_with_all = ["embedded", "conversation"])]
    host: Option<Host>,
    #[command(flatten)]
    defaults: DefaultContext,
    /// The origin of the agent, which people see; with an admin token any, with an agent's token its own
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// For whom the agent works; values in the _meta of a call win
#[derive(Args, Clone, Default)]
struct DefaultContext {
    /// The id of the person the agent works for; not needed if the token is bound to one
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The conversation's id; its pending notifications come with every result
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// The agent inside the conversation
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The harness whose session is the conversation.
    #[arg(skip)]
    host: Option<Host>,
}

/// The user and conversation of an embedded hub, unless flags or calls name others.
const OWNER: &str = "me";
const CONVERSATION: &str = "default";

pub(crate) fn run(arguments: &McpArgs) -> Result<bool> {
    let defaults = DefaultContext { host: arguments.host, ..arguments.defaults.clone() };
    if let Some(host) = arguments.host {
        let file = HostFile::load(host)?;
        return serve(Client::open(file.url, Some(file.token))?, defaults, std::future::pending());
    }
    let origin = arguments.origin.as_deref();
    if !arguments.embedded {
        let client = Client::new(&arguments.connection)?.speaking_as(origin)?;
        return serve(client, defaults, std::future::pending());
    }
    serve_embedded(Embedded::start(&arguments.connection)?, defaults, origin)
}

fn serve_embedded(hub: Embedded, mut defaults: DefaultContext, origin: Option<&str>) -> Result<bool> {
    defaults.user.get_or_insert_with(|| OWNER.to_owned());
    defaults.conversation.get_or_insert_with(|| CONVERSATION.to_owned());
    let client = hub.client().and_then(|client| client.speaking_as(origin));
    let served = client.and_then(|client| serve(client, defaults, hub.failed()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_process::TestProcess;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        mcp: McpArgs,
    }

    #[test]
    fn the_process_exits_with_the_reason_when_the_hub_inside_it_dies() {
        let this =
            TestProcess::new("commands::mcp::tests::the_process_exits_with_the_reason_when_the_hub_inside_it_dies");
        if this.is_child() {
            // As `main` does.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let folder = tempfile::tempdir().expect("a folder");
            let arguments = ["mcp", "--embedded", "--data-dir"].map(Into::into);
            let arguments = Arguments::parse_from(arguments.into_iter().chain([folder.path().as_os_str().to_owned()]));
            let hub = Embedded::start(&arguments.mcp.connection).expect("the hub starts");
            let store = hub.store();
            // A writer that ends without being asked to is an essential task that died.
            let closing = std::thread::spawn(move || {
                tokio::runtime::Runtime::new().expect("a runtime").block_on(store.close()).expect("it closes");
            });
            let code = crate::exit_code(serve_embedded(hub, DefaultContext::default(), None));
            closing.join().expect("it does not panic");
            std::process::exit(code.into());
        }
        // Standard input stays open: the agent is still there.
        let output = this.run(|_| {});
        assert_eq!(output.status.code(), Some(crate::EXIT_FAILED.into()), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("error: the hub failed: the writer of the store has ended"), "{said}");
    }
}
