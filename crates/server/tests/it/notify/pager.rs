use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwire_core::notify::Intent;
use bellwire_core::person::ChannelName;
use bellwire_server::channels::{
    Answers, Channel, ChannelHub, ChannelStatus, ChannelTask, Grouping, NoSlot, NotifyDelivery, NotifyMessage,
    NotifyOutcome, NotifyTarget, OutboundContent, OutboundMessage, Sending, SettingsShape, TargetField, TargetKind,
    Verification, VerifiedField,
};
use bellwire_store::AttemptOutcome;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};

static SHAPE: SettingsShape = SettingsShape {
    display_name: "pager",
    description: "A pager.",
    target: TargetField {
        name: "number",
        description: "Its number.",
        kind: TargetKind::Text { max: 64 },
        is_writable: true,
        example: "555:1",
        parse: |text| Ok(text.to_owned()),
    },
    verified: VerifiedField { name: "confirmed", description: "Whether it was confirmed." },
    verification: Verification::Code,
};

/// What the provider does with the next message.
pub(crate) enum Script {
    /// This.
    Outcome(NotifyOutcome),
    /// It accepts the message, and its answer comes when the test says so.
    Hold(Arc<Notify>),
    /// Its answer comes when the test says so, and is this.
    HeldOutcome(Arc<Notify>, NotifyOutcome),
    /// The channel panics after the provider accepted it.
    Panic,
}

/// A channel with threads and reactions, whose provider the test plays. A target is a number, a thread `<number>#<message>`.
pub(crate) struct Pager {
    accepted: Mutex<Vec<NotifyMessage>>,
    delivered: Mutex<Vec<OutboundMessage>>,
    script: Mutex<VecDeque<Script>>,
    slots: Mutex<VecDeque<Option<NoSlot>>>,
    /// What a recipient is resolved to; none = itself.
    resolved: Mutex<VecDeque<String>>,
    changed: watch::Sender<usize>,
}

impl Pager {
    pub(crate) fn new() -> Arc<Self> {
        let (changed, _) = watch::channel(0);
        Arc::new(Self {
            accepted: Mutex::default(),
            delivered: Mutex::default(),
            script: Mutex::default(),
            slots: Mutex::default(),
            resolved: Mutex::default(),
            changed,
        })
    }

    pub(crate) fn next(&self, script: Script) {
        self.script.lock().unwrap().push_back(script);
    }

    /// What the next recipients are resolved to.
    pub(crate) fn next_resolved(&self, targets: [&str; 2]) {
        self.resolved.lock().unwrap().extend(targets.map(str::to_owned));
    }

    /// Why the next message has no slot; none = it waits for one without end.
    pub(crate) fn next_slot(&self, slot: Option<NoSlot>) {
        self.slots.lock().unwrap().push_back(slot);
    }

    /// Waits until all of these slots were asked for.
    pub(crate) async fn until_slots_are_asked_for(&self) {
        let mut changed = self.changed.subscribe();
        let all = changed.wait_for(|_| self.slots.lock().unwrap().is_empty());
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("it comes within a minute").unwrap();
    }

    /// What the provider has accepted or refused, by `notify`.
    pub(crate) fn messages(&self) -> Vec<NotifyMessage> {
        self.accepted.lock().unwrap().clone()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.messages().into_iter().filter_map(|message| message.message).collect()
    }

    /// What the outbox has delivered.
    pub(crate) fn outbound(&self) -> Vec<OutboundMessage> {
        self.delivered.lock().unwrap().clone()
    }

    /// Waits for so many messages by `notify`.
    pub(crate) async fn until(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        let enough = changed.wait_for(|_| self.accepted.lock().unwrap().len() >= count);
        tokio::time::timeout(Duration::from_secs(60), enough).await.expect("it comes within a minute").unwrap();
    }

    /// Waits for the code that was sent last.
    pub(crate) async fn code(&self) -> String {
        let mut changed = self.changed.subscribe();
        let take = |messages: &mut Vec<OutboundMessage>| match &messages.last()?.content {
            OutboundContent::Code(code) => {
                let code = code.clone();
                messages.pop();
                Some(code)
            }
            OutboundContent::Notifications(_) | OutboundContent::Direct(..) => None,
        };
        let wait = async {
            loop {
                if let Some(code) = take(&mut self.delivered.lock().unwrap()) {
                    return code;
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait).await.expect("a code comes within a minute")
    }

    fn note_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl Channel for Pager {
    fn name(&self) -> ChannelName {
        ChannelName::parse("pager").unwrap()
    }

    fn settings(&self) -> &SettingsShape {
        &SHAPE
    }

    fn sending(&self) -> Sending {
        Sending { grouping: Grouping::Digest, concurrency: 2, attempt_max: Duration::from_secs(60) }
    }

    fn status(&self) -> ChannelStatus {
        ChannelStatus::Ready
    }

    fn start(&self, _: ChannelHub) -> Vec<ChannelTask> {
        Vec::new()
    }

    fn slot(&self, _: &str, _: Duration) -> BoxFuture<'_, Result<(), NoSlot>> {
        let slot = self.slots.lock().unwrap().pop_front();
        self.note_change();
        Box::pin(async move {
            match slot {
                None => Ok(()),
                Some(Some(no_slot)) => Err(no_slot),
                Some(None) => std::future::pending().await,
            }
        })
    }

    fn deliver(&self, message: OutboundMessage) -> BoxFuture<'_, AttemptOutcome> {
        self.delivered.lock().unwrap().push(message);
        self.note_change();
        Box::pin(async { AttemptOutcome::Sent })
    }

    fn answers(&self) -> Answers {
        Answers { has_reactions: true, needs_thread: true }
    }

    fn resolve(&self, request: &NotifyDelivery) -> Result<NotifyTarget, String> {
        match request.intent {
            Intent::Send => {
                let target = request.recipient.clone().ok_or("Missing required 'recipient' parameter")?;
                let target = self.resolved.lock().unwrap().pop_front().unwrap_or(target);
                match target.starts_with("555") {
                    true => Ok(NotifyTarget { target, thread: None, reaction: None }),
                    false => Err(format!("Invalid recipient: '{target}' is no pager")),
                }
            }
            Intent::Reply | Intent::React => {
                let thread =
                    request.request_context.as_ref().and_then(|context| context.source_thread_identity.clone());
                let thread = thread.unwrap_or_default();
                let (target, _) =
                    thread.split_once('#').ok_or("Invalid request_context field 'source_thread_identity'")?;
                let reaction = request.emoji.clone();
                Ok(NotifyTarget { target: target.to_owned(), thread: Some(thread), reaction })
            }
        }
    }

    fn notify(&self, message: NotifyMessage) -> BoxFuture<'_, NotifyOutcome> {
        let number = {
            let mut accepted = self.accepted.lock().unwrap();
            accepted.push(message);
            accepted.len()
        };
        self.note_change();
        let script = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            let delivered = NotifyOutcome::delivered(format!("page-{number}"));
            match script {
                None => delivered,
                Some(Script::Outcome(outcome)) => outcome,
                Some(Script::Hold(released)) => {
                    released.notified().await;
                    delivered
                }
                Some(Script::HeldOutcome(released, outcome)) => {
                    released.notified().await;
                    outcome
                }
                Some(Script::Panic) => panic!("on purpose"),
            }
        })
    }
}
