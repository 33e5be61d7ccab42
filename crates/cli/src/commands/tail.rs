mod show;

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::Value;
use tokio::time::{interval, sleep};

use crate::client::{Client, Connection, Refused, conversation_path};
use crate::output::{text, warn};

/// Follow a conversation live: what waits for its agent, and what the agent is told
///
/// Goes on when the hub is started again; Ctrl-C ends it.
#[derive(Args)]
pub(crate) struct Tail {
    /// The conversation
    conversation: String,
    /// Whose conversation, where several people use the same id
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Begin with everything the agent was told before
    #[arg(long)]
    all: bool,
    /// Print one JSON object a line: {"event": "pending", "at": TIME, "data": {...}}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// A hub that was started again is there within a second; one that is down for long is not hammered.
const WAIT_FIRST: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Streams carry hints only; what was injected is asked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &Tail) -> Result<bool> {
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
    arguments: &'a Tail,
    /// Where the page of messages begins that is not full yet, and what of it was shown.
    cursor: Option<String>,
    seen: HashSet<String>,
}

impl Follower<'_> {
    async fn follow(&mut self, all: bool) -> Result<bool> {
        let (mut wait, mut first) = (WAIT_FIRST, true);
        loop {
            let connected = self.session(first && !all, &mut first).await;
            match connected {
                Err(error) if first || is_final(&error) => return Err(error),
                Err(error) => warn(&format!("{error:#}; trying again")),
                Ok(()) => {
                    warn("the stream ended; connecting again");
                    wait = WAIT_FIRST;
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    /// From connecting until the hub goes away. What a first connection finds in the history is old news.
    async fn session(&mut self, skip_history: bool, first: &mut bool) -> Result<()> {
        let mut lines = self.client.stream(&self.path("/stream")).await?;
        let history = self.news().await?;
        if !skip_history {
            history.iter().try_for_each(|message| show::show(self.arguments.json, "message", message))?;
        }
        if *first {
            anstream::eprintln!("following {}; Ctrl-C ends it", self.client.url());
            *first = false;
        }
        let mut look = interval(LOOK_EVERY);
        loop {
            tokio::select! {
                event = lines.next() => match event? {
                    Some((name, data)) => show::show(self.arguments.json, &name, &data)?,
                    None => return Ok(()),
                },
                _ = look.tick() => for message in self.news().await? {
                    show::show(self.arguments.json, "message", &message)?;
                },
            }
        }
    }

    fn path(&self, call: &str) -> String {
        conversation_path(&self.arguments.conversation, call, self.arguments.user.as_deref())
    }

    /// What the agent was told since the last look.
    async fn news(&mut self) -> Result<Vec<Value>> {
        let mut news = Vec::new();
        loop {
            let path = self.path("/messages");
            let and = if path.contains('?') { '&' } else { '?' };
            let cursor = self.cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let page = self.client.read(&format!("{path}{and}limit=100{cursor}")).await?;
            for message in page["items"].as_array().into_iter().flatten() {
                if self.seen.insert(text(message, "id")) {
                    news.push(message.clone());
                }
            }
            let Some(next) = page["next_cursor"].as_str() else { return Ok(news) };
            self.cursor = Some(next.to_owned());
            self.seen.clear();
        }
    }
}

/// What trying again would not change: the hub said no, or nobody reads what is printed.
fn is_final(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<Refused>().is_some_and(|refused| refused.status < 500 && refused.status != 429);
    refused || error.is::<std::io::Error>()
}
