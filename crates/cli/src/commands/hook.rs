use anyhow::Result;
use clap::Args;

use crate::hook;
use crate::hosts::Host;

/// Answer a hook of an agent harness: report what happened, and give the agent what waits for it
///
/// `bellwire install` writes this command into the harness's configuration. It reads the harness's JSON on standard input. If
/// the hub cannot be reached, it prints nothing and exits with 0. BELLWIRE_HOOK_DEBUG=1 shows why on standard error.
#[derive(Args)]
pub(crate) struct HookArgs {
    /// The harness that runs the hook
    host: Host,
    /// The hook's event, for harnesses whose input does not name it
    event: Option<String>,
}

pub(crate) fn run(arguments: &HookArgs) -> Result<bool> {
    let code = hook::run(arguments.host, arguments.event.as_deref());
    std::process::exit(code.into())
}
