mod show;

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::Value;
use tokio::time::{interval, sleep};

use crate::client::{Client, Connection, HubRefused, conversation_path};
use crate::output::{text, warn};

/// Follow a conversation live: what is pending, and what the agent is shown
///
/// Reconnects when the hub restarts; Ctrl-C ends it.
#[derive(Args)]
pub(crate) struct TailArgs {
    /// The conversation
    conversation: String,
    /// The id of the conversation's owner, if several people use the same conversation id
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Start with everything the agent was shown before
    #[arg(long)]
    all: bool,
    /// Print one JSON object per line: {"event": "pending", "at": TIME, "data": {...}}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// The reconnect delay starts short for a restarted hub and doubles up to `RECONNECT_MAX`.
const RECONNECT_FIRST: Duration = Duration::from_millis(250);
const RECONNECT_MAX: Duration = Duration::from_secs(10);
/// How often injected messages are polled; the stream carries only hints.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &TailArgs) -> Result<bool> {
    let client = Client::new(&arguments.connection)?;
    let mut follower = Follower { client: &client, arguments, cursor: None, seen: HashSet::new() };
    client.block_on(async {
        tokio::select! {
            ended = follower.follow(arguments.all) => ended,
            _ = tokio::signal::ctrl_c() => Ok(true),
        }
    })
}

struct Follower<'a> {
    client: &'a Client,
    arguments: &'a TailArgs,
    /// The cursor of the last page of messages, which may still grow.
    cursor: Option<String>,
    /// The ids of that page's messages that were printed.
    seen: HashSet<String>,
}

impl Follower<'_> {
    async fn follow(&mut self, all: bool) -> Result<bool> {
        let (mut wait, mut first) = (RECONNECT_FIRST, true);
        loop {
            let connected = self.session(first && !all, &mut first).await;
            match connected {
                Err(error) if first || is_final(&error) => return Err(error),
                Err(error) => warn(&format!("{error:#}; trying again")),
                Ok(()) => {
                    warn("the stream ended; connecting again");
                    wait = RECONNECT_FIRST;
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(RECONNECT_MAX);
        }
    }

    /// Follows one connection until it ends. `skip_history` marks earlier messages as seen without printing them.
    async fn session(&mut self, skip_history: bool, first: &mut bool) -> Result<()> {
        let mut stream = self.client.stream(&self.path("/stream")).await?;
        let history = self.new_messages().await?;
        if !skip_history {
            history.iter().try_for_each(|message| show::show(self.arguments.json, "message", message))?;
        }
        if *first {
            anstream::eprintln!("following {}; Ctrl-C ends it", self.client.url());
            *first = false;
        }
        let mut poll = interval(POLL_INTERVAL);
        loop {
            tokio::select! {
                event = stream.next() => match event? {
                    Some((name, data)) => show::show(self.arguments.json, &name, &data)?,
                    None => return Ok(()),
                },
                _ = poll.tick() => for message in self.new_messages().await? {
                    show::show(self.arguments.json, "message", &message)?;
                },
            }
        }
    }

    fn path(&self, call: &str) -> String {
        conversation_path(&self.arguments.conversation, call, self.arguments.user.as_deref())
    }

    /// The messages injected since the last poll.
    async fn new_messages(&mut self) -> Result<Vec<Value>> {
        let mut new_messages = Vec::new();
        loop {
            let path = self.path("/messages");
            let and = if path.contains('?') { '&' } else { '?' };
            let cursor = self.cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let page = self.client.get_async(&format!("{path}{and}limit=100{cursor}")).await?;
            for message in page["items"].as_array().into_iter().flatten() {
                if self.seen.insert(text(message, "id")) {
                    new_messages.push(message.clone());
                }
            }
            let Some(next) = page["next_cursor"].as_str() else { return Ok(new_messages) };
            self.cursor = Some(next.to_owned());
            self.seen.clear();
        }
    }
}

/// Whether reconnecting would not help: the hub refused the stream, or our output was closed.
fn is_final(error: &anyhow::Error) -> bool {
    error.downcast_ref::<HubRefused>().is_some_and(HubRefused::is_final) || error.is::<std::io::Error>()
}
