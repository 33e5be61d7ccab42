//! What is done with each message, whatever carries it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::calls::{Calls, EndedCall};
use super::news::{Addition, News};
use super::splice::Place;

/// How often it is checked whether a tool call is overdue.
const TICK: Duration = Duration::from_secs(1);

pub(super) struct Proxy {
    pub(super) news: Arc<News>,
    /// The server, for errors: the command or the URL.
    pub(super) server: String,
    /// A tool call of which nothing is heard for so long is reported as timed out.
    pub(super) silence_max: Duration,
}

/// What is inserted into a message: each text at its place.
#[derive(Default)]
pub(super) struct Insertions {
    pub(super) texts: Vec<(usize, String)>,
    additions: Vec<Addition>,
}

impl Proxy {
    /// Watches a message of the client, which passes unchanged.
    pub(super) fn client_said(&self, calls: &Calls, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        calls.client_said(text, Instant::now()).into_iter().for_each(|ended| self.news.report(ended));
    }

    /// The tool calls that a message of the server answers, and to which something can be added.
    pub(super) fn server_said(&self, calls: &Calls, bytes: &[u8]) -> Vec<(Place, EndedCall)> {
        let Ok(text) = std::str::from_utf8(bytes) else { return Vec::new() };
        let mut open = Vec::new();
        for ended in calls.server_said(text, Instant::now()) {
            match ended.place {
                Some(place) => open.push((place, ended)),
                None => self.news.report(ended),
            }
        }
        open
    }

    /// Asks the hub what to insert into a message that came at `received`.
    pub(super) async fn insertions(&self, ended: Vec<(Place, EndedCall)>, received: Instant) -> Insertions {
        let mut found = Insertions::default();
        for (place, call) in ended {
            if let Some(addition) = self.news.take(&call, received).await {
                found.texts.push((place.end, place.insertion(&addition.text)));
                found.additions.push(addition);
            }
        }
        found
    }

    /// The error responses for requests that will not be answered, each on a line; their tool calls are reported. `ids` are
    /// those of some requests; without them, all are meant.
    pub(super) fn abandon(&self, calls: &Calls, ids: Option<&[String]>, why: &str) -> Vec<Vec<u8>> {
        let error = |id: &str| {
            let message = serde_json::Value::from(why);
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":{message}}}}}\n")
        };
        let each = calls.abandon(ids, why, Instant::now()).into_iter().map(|abandoned| {
            abandoned.call.into_iter().for_each(|call| self.news.report(call));
            error(&abandoned.id).into_bytes()
        });
        each.collect()
    }

    /// Reports overdue tool calls until the client is gone.
    pub(super) fn watch(self: &Arc<Self>, calls: &Arc<Calls>) {
        let (proxy, calls): (Weak<Self>, Weak<Calls>) = (Arc::downgrade(self), Arc::downgrade(calls));
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(TICK);
            loop {
                tick.tick().await;
                let Some((proxy, calls)) = proxy.upgrade().zip(calls.upgrade()) else { return };
                let overdue = calls.overdue(proxy.silence_max, Instant::now());
                overdue.into_iter().for_each(|ended| proxy.news.report(ended));
            }
        });
    }
}

impl Insertions {
    /// The client has the message.
    pub(super) fn written(self) {
        self.additions.into_iter().for_each(Addition::written);
    }
}
