use std::collections::HashSet;
use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{interval, sleep};

use crate::client::{Client, Connection, Refused, segment};
use crate::output::{MUTED, SAID, TEXT, WAITS, WRONG, paint, text, warn};

/// Follow a conversation live: what waits for its agent, and what the agent is told
///
/// Goes on when the hub is started again; Ctrl-C ends it.
#[derive(Args)]
pub(crate) struct Tail {
    /// The conversation
    conversation: String,
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
    let path = format!("/v1/conversations/{}", segment(&arguments.conversation));
    let mut follower = Follower { client: &client, path, json: arguments.json, cursor: None, seen: HashSet::new() };
    client.block_on(async {
        tokio::select! {
            ended = follower.follow(arguments.all) => ended,
            _ = tokio::signal::ctrl_c() => Ok(true),
        }
    })
}

struct Follower<'a> {
    client: &'a Client,
    path: String,
    json: bool,
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
        let mut lines = self.client.stream(&format!("{}/stream", self.path)).await?;
        let history = self.news().await?;
        if !skip_history {
            history.iter().try_for_each(|message| self.show("message", message))?;
        }
        if *first {
            anstream::eprintln!("following {}; Ctrl-C ends it", self.client.url());
            *first = false;
        }
        let mut look = interval(LOOK_EVERY);
        loop {
            tokio::select! {
                event = lines.next() => match event? {
                    Some((name, data)) => self.show(&name, &data)?,
                    None => return Ok(()),
                },
                _ = look.tick() => for message in self.news().await? {
                    self.show("message", &message)?;
                },
            }
        }
    }

    /// What the agent was told since the last look.
    async fn news(&mut self) -> Result<Vec<Value>> {
        let mut news = Vec::new();
        loop {
            let cursor = self.cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let page = self.client.read(&format!("{}/messages?limit=100{cursor}", self.path)).await?;
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

    fn show(&self, event: &str, data: &Value) -> Result<()> {
        let mut out = anstream::stdout().lock();
        let now = Timestamp::now();
        if self.json {
            writeln!(out, "{}", json!({ "event": event, "at": now.to_string(), "data": data }))?;
            return Ok(out.flush()?);
        }
        let at = match data["timestamp"].as_str().and_then(|text| text.parse().ok()) {
            Some(told) => told,
            None => now,
        };
        let clock = paint(MUTED, at.strftime("%H:%M:%S"));
        match event {
            "message" => {
                let head = format!("told in call {}: [{}]", text(data, "call_id"), text(data, "source"));
                writeln!(out, "{clock}  {}", paint(SAID, head))?;
                for line in text(data, "content").lines() {
                    writeln!(out, "          {}", paint(TEXT, line))?;
                }
            }
            event => writeln!(out, "{clock}  {}", hint(event, data))?,
        }
        Ok(out.flush()?)
    }
}

/// What trying again would not change: the hub said no, or nobody reads what is printed.
fn is_final(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<Refused>().is_some_and(|refused| refused.status < 500 && refused.status != 429);
    refused || error.is::<std::io::Error>()
}

fn hint(event: &str, data: &Value) -> String {
    let (count, agent) = (data["count"].as_u64().unwrap_or(0), text(data, "agent"));
    let meant = data["notifications"].as_array().map_or(0, Vec::len);
    match event {
        "pending" if count == 0 => paint(MUTED, format!("nothing waits for {agent}")),
        "pending" => paint(WAITS, format!("pending: {count} waiting for {agent}")),
        "wake" => paint(SAID, format!("wake: {agent} is idle, and {meant} of {count} waiting are worth waking it for")),
        "immediate" => paint(WRONG, format!("immediate: {meant} of {count} waiting for {agent} are critical")),
        other => format!("{other}: {data}"),
    }
}
