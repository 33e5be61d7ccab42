mod script;
mod stage;

use anyhow::{Context as _, Result};
use clap::Args;
use reqwest::Method;

use crate::client::{Client, Connection};
use stage::Stage;

/// Watch an agent work: every kind of notification within a minute
///
/// Plays a short scripted conversation against a running hub, with the same requests that your agent would send. Shows what
/// is published, what the agent reads, and why. It uses its own person and conversation, and erases them.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Do not pause for reading
    #[arg(long)]
    fast: bool,
    /// Keep the conversation, to look at it with tail and trace
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &DemoArgs) -> Result<bool> {
    let client = Client::new(&arguments.connection).context("the demo needs a running hub: bellwire start")?;
    let mut stage = Stage::new(&client, arguments.fast)?;
    let played = script::play(&mut stage);
    let conversation = stage.conversation.clone();
    if arguments.keep {
        anstream::eprintln!("Kept: bellwire tail --all {conversation}");
    } else {
        // The user was created for this demo, so nothing else is erased.
        client.call(Method::DELETE, &format!("/v1/users/{conversation}"), None)?;
        anstream::eprintln!("{conversation} is erased; `bellwire demo --keep` would have kept it.");
    }
    match played {
        Err(error) if error.is::<stage::Interrupted>() => Ok(true),
        played => played.map(|()| true),
    }
}
