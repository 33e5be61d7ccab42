//! Reports how tools ended where no result can carry an answer: in the background, several at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::calls::EndedCall;
use super::hub::Hub;
use super::news::News;
use super::recipient::Recipient;
use crate::hosts::Host;

/// Beyond so many waiting reports, further ones are dropped: the hub is slower than the tools.
const WAITING_MAX: usize = 2048;
/// How many events one request has.
const EVENTS_MAX: usize = 100;

pub(super) struct Reports {
    queue: mpsc::Sender<EndedCall>,
    unsent: Arc<Unsent>,
}

#[derive(Default)]
struct Unsent {
    count: AtomicUsize,
    none: Notify,
}

/// The end of the queue that sends them.
pub(super) struct ReportQueue {
    queue: mpsc::Receiver<EndedCall>,
    unsent: Arc<Unsent>,
}

impl Reports {
    pub(super) fn new() -> (Self, ReportQueue) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let unsent = Arc::new(Unsent::default());
        (Self { queue: sender, unsent: unsent.clone() }, ReportQueue { queue: receiver, unsent })
    }

    pub(super) fn push(&self, ended: EndedCall) {
        self.unsent.count.fetch_add(1, Ordering::AcqRel);
        if self.queue.try_send(ended).is_err() {
            self.unsent.sent(1);
        }
    }

    /// Completes when everything was sent or dropped.
    pub(super) async fn finish(&self) {
        loop {
            let none = self.unsent.none.notified();
            if self.unsent.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Unsent {
    fn sent(&self, count: usize) {
        if self.count.fetch_sub(count, Ordering::AcqRel) == count {
            self.none.notify_waiters();
        }
    }
}

impl ReportQueue {
    pub(super) async fn work_off(mut self, news: Weak<News>) {
        let mut ended = Vec::with_capacity(EVENTS_MAX);
        while self.queue.recv_many(&mut ended, EVENTS_MAX).await > 0 {
            let count = ended.len();
            let Some(news) = news.upgrade() else { return };
            if let Err(reason) = send(&news, std::mem::take(&mut ended)).await {
                news.failed(&reason);
            }
            self.unsent.sent(count);
        }
    }
}

/// Sends the events of each harness, which may have its own hub and token, in one request.
async fn send(news: &News, ended: Vec<EndedCall>) -> Result<()> {
    let mut by_host: HashMap<Option<&str>, (Hub, Vec<Value>)> = HashMap::new();
    let mut last = Ok(());
    for call in ended {
        let recipient = match news.recipient(&call).await {
            Ok(Some(recipient)) if !recipient.has_hooks => recipient,
            Ok(_) => continue,
            Err(reason) => {
                last = Err(reason);
                continue;
            }
        };
        let event = event(&recipient, &call);
        by_host.entry(recipient.host.map(Host::name)).or_insert_with(|| (recipient.hub, Vec::new())).1.push(event);
    }
    for (hub, events) in by_host.into_values() {
        let sent = hub.call(Method::POST, "/v1/events", Some(&json!(events))).await;
        last = last.and(sent.map(drop).map_err(|error| news.refused(error)));
    }
    last
}

fn event(recipient: &Recipient, call: &EndedCall) -> Value {
    let mut event = call.tool.event();
    event["conversation_id"] = json!(recipient.conversation);
    event["agent"] = json!(recipient.agent);
    if let Some(user) = &recipient.user {
        event["user_id"] = json!(user);
    }
    event
}
