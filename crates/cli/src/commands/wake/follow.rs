//! Follows the stream of one session and wakes it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::LOOK_EVERY;
use super::way::{Way, message};
use crate::client::{Client, conversation_path};
use crate::hook::notes;
use crate::hook::wakeable::Wakeable;
use crate::hook::woken::WokenFor;
use crate::output::{printable, warn};

/// The most wakes within an hour, whatever the hub says. The hub's own limit is six, not counting a person's messages.
const WAKES_MAX: usize = 30;
const HOUR: Duration = Duration::from_secs(60 * 60);

pub(super) struct Follower {
    client: Arc<Client>,
    session: Wakeable,
    conversation: String,
    way: Way,
    woken_for: WokenFor,
    /// The wakes of the last hour, oldest first.
    wakes: VecDeque<Instant>,
}

impl Follower {
    /// `None` if there is no folder for notes: the session could be woken again and again.
    pub(super) fn new(client: Arc<Client>, session: Wakeable, way: Way) -> Option<Self> {
        let conversation = session.conversation();
        let woken_for = WokenFor::of(&conversation)?;
        Some(Self { client, session, conversation, way, woken_for, wakes: VecDeque::new() })
    }

    /// Wakes the session until the task is aborted.
    pub(super) async fn run(mut self) {
        loop {
            // A hub that is away is not an error: it may come back.
            let _ = self.wake_by_stream().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Wakes the session for every notification that has not woken it yet. A new stream tells the state again.
    async fn wake_by_stream(&mut self) -> Result<()> {
        let mut stream = self.client.stream(&conversation_path(&self.conversation, "/stream", None)).await?;
        while let Some((name, hint)) = stream.next().await? {
            if name == "wake" && hint["agent"] == "main" && !notes::is_paused(&self.conversation) {
                self.wake(&hint).await;
            }
        }
        Ok(())
    }

    async fn wake(&mut self, hint: &Value) {
        let ids = hint["notifications"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let fresh = self.woken_for.claim(&ids.map(str::to_owned).collect::<Vec<String>>());
        if fresh.is_empty() {
            return;
        }
        let name = printable(&self.conversation);
        if !self.spend_wake(Instant::now()) {
            self.woken_for.release(&fresh);
            return warn(&format!("{name} is not woken: it was woken {WAKES_MAX} times within an hour"));
        }
        let count = hint["count"].as_u64().unwrap_or_default();
        match self.way.wake(&self.session, count).await {
            Ok(said) => {
                anstream::eprintln!("{} woke {name}: {}", now(), message(count));
                said.lines().for_each(|line| anstream::eprintln!("  {}", printable(line)));
            }
            Err(error) => {
                self.woken_for.release(&fresh);
                warn(&format!("{name} cannot be woken: {}", printable(&format!("{error:#}"))));
            }
        }
    }

    fn spend_wake(&mut self, now: Instant) -> bool {
        while self.wakes.front().is_some_and(|wake| now.duration_since(*wake) >= HOUR) {
            self.wakes.pop_front();
        }
        let allowed = self.wakes.len() < WAKES_MAX;
        if allowed {
            self.wakes.push_back(now);
        }
        allowed
    }
}

fn now() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now)
}
