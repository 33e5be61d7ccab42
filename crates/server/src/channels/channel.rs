use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::person::ChannelName;
use bellwire_store::{AttemptOutcome, Claim, DirectMessage, Grouping, InboxItem, Purpose, Store};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    NotifyDelivery, NotifyMessage, NotifyOutcome, NotifyTarget, SettingsShape, TestRefusal, TestReport,
    UnsubscribeLinks, WebhookAnswer, WebhookCall,
};

/// One way to reach a person outside the hub.
///
/// A channel that the operator has not configured is registered too: its [`status`](Self::status) is
/// [`ChannelStatus::Off`], its settings are shown, and nothing is sent through it.
pub trait Channel: Send + Sync + 'static {
    /// Its name in settings, deliveries, metrics and envelopes.
    fn name(&self) -> ChannelName;

    /// How a person's settings of this channel look on the wire, and how a target is verified.
    fn settings(&self) -> &SettingsShape;

    /// How messages are grouped, how many are sent at once, and how long one attempt may take.
    fn sending(&self) -> Sending;

    /// Whether it is configured and works, for readiness and `doctor`.
    fn status(&self) -> ChannelStatus;

    /// Called once, after the store is open and before the first message. Returns the channel's own tasks, such as one
    /// that receives messages. They are essential tasks of the hub and end when [`ChannelHub::stopping`] becomes true.
    fn start(&self, hub: ChannelHub) -> Vec<ChannelTask>;

    /// Waits until the channel's own pacing lets a message go to this target, at most `wait_max`. The start of the attempt is
    /// committed after this and before [`deliver`](Self::deliver) or [`notify`](Self::notify): a hub that is killed while it
    /// waits has sent nothing.
    fn slot(&self, _target: &str, _wait_max: Duration) -> BoxFuture<'_, Result<(), NoSlot>> {
        Box::pin(async { Ok(()) })
    }

    /// Sends one message to one target, once. The start of the attempt is committed before this is called.
    ///
    /// The outcome claims only what can be proven: `TryAgain` = nothing was sent; `Partial` = a part was sent, and if the
    /// rest is tried again, that attempt gets the progress; `Interrupted` = the hub stops and nothing was sent, so that it is sent after the next
    /// start; `Unknown` = it may have arrived.
    /// `Unreachable` = the target does not exist or the person has blocked the hub: the store switches the channel off for
    /// this person and adds a note to their inbox. Reasons are read by agents, so they contain no target.
    fn deliver(&self, message: OutboundMessage) -> BoxFuture<'_, AttemptOutcome>;

    /// What an answer to an inbound message needs on this channel.
    fn answers(&self) -> Answers {
        Answers::default()
    }

    /// Checks a notify request before anything is stored, and returns its target in normal form. The error text says what to
    /// fix; the caller of `notify` reads it.
    fn resolve(&self, request: &NotifyDelivery) -> Result<NotifyTarget, String>;

    /// Makes one synchronous attempt to send a message of `notify` to a target that [`resolve`](Self::resolve) returned.
    fn notify(&self, message: NotifyMessage) -> BoxFuture<'_, NotifyOutcome>;

    /// Called after a Messenger elsewhere has delivered this message, with the ids of its parts: a channel on which people
    /// answer stores them, as after a message of its own.
    fn delivered_elsewhere(&self, _message: NotifyMessage, _ids: Vec<String>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// A link that opens the channel and sends a pairing code. None = there are no such links, or the provider cannot be
    /// asked now.
    fn pairing_link(&self, _code: String) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }

    /// Takes a call of the provider to `/{channel}/webhook`. The channel authenticates it.
    fn receive(&self, _call: WebhookCall) -> BoxFuture<'_, WebhookAnswer> {
        Box::pin(async { WebhookAnswer::NotFound })
    }

    /// Sends one test message within `wait` and reports each step, so that an operator sees which setting is wrong. It is no
    /// delivery: nothing is stored, and it is never sent again. `id` is new for every test.
    fn test(
        &self,
        _target: String,
        _id: Uuid,
        _at: Time,
        _wait: Duration,
    ) -> BoxFuture<'_, Result<TestReport, TestRefusal>> {
        Box::pin(async { Err(TestRefusal::NoTest) })
    }
}

/// Why there is no slot to send in. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSlot {
    /// The target or the channel gets its next slot after this time.
    Busy(Duration),
    /// The hub stops.
    Stopping,
}

impl fmt::Display for NoSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy(_) => "this target gets too many messages at once",
            Self::Stopping => "the hub is stopping",
        })
    }
}

/// What an answer to an inbound message needs on a channel.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Whether a message can have reactions.
    pub has_reactions: bool,
    /// Whether an answer needs the thread of the message, which must then be one that the hub has received.
    pub needs_thread: bool,
}

/// How a channel sends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Which notifications may share a message.
    pub grouping: Grouping,
    /// How many messages are sent at once; at least 1.
    pub concurrency: usize,
    /// The longest duration of one attempt. The lease of a started delivery is longer.
    pub attempt_max: Duration,
}

/// Whether a channel can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelStatus {
    /// The operator has not configured it.
    Off {
        /// What to set, such as `set email.host`.
        fix: String,
    },
    /// It is configured, and no error is known.
    Ready,
    /// It is configured and does not work. Messages are retried.
    Failing {
        /// What is wrong and what to change. Contains no target.
        reason: String,
    },
}

impl ChannelStatus {
    /// Whether the operator has configured it.
    pub fn is_configured(&self) -> bool {
        !matches!(self, Self::Off { .. })
    }
}

/// The parts of the hub that a channel may use.
#[derive(Clone)]
pub struct ChannelHub {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The base URL of the hub for links, without a slash at the end.
    pub public_url: String,
    /// Signs links that switch a channel off for one target.
    pub unsubscribe: UnsubscribeLinks,
    /// Becomes true when the hub stops.
    pub stopping: watch::Receiver<bool>,
}

/// A task of a channel.
pub struct ChannelTask {
    /// Its name in the log, such as `the poller of x`.
    pub name: &'static str,
    /// Runs until the hub stops.
    pub run: BoxFuture<'static, ()>,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundMessage {
    /// The same on every attempt, so that a recipient can recognize a copy.
    pub id: Uuid,
    /// The recipient.
    pub user_id: String,
    /// The recipient's address in the channel.
    pub target: String,
    /// The content.
    pub content: OutboundContent,
    /// The titles of the notifications' conversations, by id; untitled ones are missing.
    pub titles: BTreeMap<String, String>,
    /// The recipient's time zone, by its IANA name.
    pub timezone: Option<String>,
    /// What an earlier attempt has sent of it, as that attempt reported it.
    pub progress: Option<String>,
    /// When it was first claimed: its date on every attempt.
    pub created_at: Time,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboundContent {
    /// These notifications, oldest first; never empty.
    Notifications(Vec<InboxItem>),
    /// A message of `notify` that quiet hours held: its whole text, and its item in the inbox, which shows the beginning.
    Direct(Box<InboxItem>, DirectMessage),
    /// A code that proves, when the person enters it, that the target is theirs.
    Code(String),
}

impl OutboundMessage {
    /// The message of a claim. `code` is set if the claim is a verification.
    pub fn new(claim: Claim, code: Option<String>) -> Self {
        let content = match claim.purpose {
            Purpose::Notifications(items) => OutboundContent::Notifications(items),
            Purpose::Direct(item, message) => OutboundContent::Direct(item, message),
            Purpose::Confirmation => OutboundContent::Code(code.unwrap_or_default()),
        };
        Self {
            id: claim.message_id,
            user_id: claim.user_id,
            target: claim.target,
            content,
            titles: claim.titles,
            timezone: claim.timezone,
            progress: claim.progress,
            created_at: claim.created_at,
        }
    }
}
