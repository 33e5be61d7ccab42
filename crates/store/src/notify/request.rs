use bellwire_core::notify::{ErrorClass, Intent, NotifyError, RequestContext};
use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The hash that identifies a request. Equal requests have equal keys.
pub type NotifyKey = [u8; 32];

/// A request to claim. Its arguments are checked and its target is resolved.
#[derive(Clone, Debug)]
pub struct NotifyClaim {
    /// The hash of everything that makes two requests equal.
    pub key: NotifyKey,
    /// The id of the request.
    pub request_id: Uuid,
    /// The authenticated origin.
    pub origin: String,
    /// What is done.
    pub intent: Intent,
    /// The channel.
    pub channel: ChannelName,
    /// Who gets it.
    pub recipient: NotifyRecipient,
    /// The person the agent works for.
    pub on_behalf_of: Option<String>,
    /// Which part of the path claims it.
    pub claimant: Claimant,
    /// What limits replies and reactions to one inbound message; none for `send`.
    pub answer_key: Option<NotifyKey>,
    /// The message that the hub chose for an answer without a request_context.
    pub chosen: Option<ChosenContext>,
    /// The conversation it comes from.
    pub conversation_id: Option<String>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// The text; none for `react`.
    pub message: Option<String>,
    /// The subject.
    pub subject: Option<String>,
}

impl NotifyClaim {
    /// The conversation it comes from, if it is the recipient's. Another person's means nothing to them.
    pub fn recipients_conversation(&self) -> Option<&str> {
        let is_own = self.recipient.user_id().is_some_and(|user_id| self.on_behalf_of.as_deref() == Some(user_id));
        self.conversation_id.as_deref().filter(|_| is_own)
    }
}

/// The inbound message that the hub chose for an answer. A repeat of the call answers the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenContext {
    /// The hash of the caller and its idempotency key.
    pub call_key: NotifyKey,
    /// The message.
    pub context: RequestContext,
}

/// Which part of the path claims a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// The tool. In the recipient's quiet hours the outbox takes over a `send`.
    Tool,
    /// The Messenger, for another process. In quiet hours a `send` is refused, because the answer cannot say that it is
    /// deferred. If that process uses the same store, the Messenger takes its request over.
    Messenger,
}

/// Where an attempt is made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SentFrom {
    /// In this process.
    Here,
    /// By a Messenger elsewhere, which may use the same store.
    Elsewhere,
}

/// Who gets a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyRecipient {
    /// A person, by the target in their settings. Their quiet hours, mutes and limits apply.
    Person {
        /// The person.
        user_id: String,
        /// The target.
        target: String,
    },
    /// A target of the origin's allow-list that belongs to no user.
    Listed {
        /// A hash of the target, for its hourly limit. The target itself is not stored.
        limit_key: NotifyKey,
    },
}

impl NotifyRecipient {
    /// The person, if it is one.
    pub fn user_id(&self) -> Option<&str> {
        match self {
            Self::Person { user_id, .. } => Some(user_id),
            Self::Listed { .. } => None,
        }
    }
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyClaimed {
    /// The caller makes the attempt.
    Mine {
        /// The fence of this claim.
        fence: i64,
        /// The item in the recipient's inbox.
        notification_id: Option<NotificationId>,
        /// The recipient's time zone, by its IANA name.
        timezone: Option<String>,
    },
    /// An equal request is in flight.
    InFlight,
    /// An equal request has ended, or this one was deferred.
    Ended(NotifyAnswer),
    /// The recipient's settings or limits refuse it. Nothing is remembered.
    Refused(NotifyError),
}

/// The outcome of an attempt, to be recorded.
#[derive(Clone, Debug)]
pub struct NotifyEnd {
    /// The request.
    pub key: NotifyKey,
    /// The fence of its claim.
    pub fence: i64,
    /// The outcome.
    pub ending: NotifyEnding,
    /// How long the attempt took.
    pub duration_ms: u64,
    /// The ids of the parts that were delivered after the first.
    pub further_parts: Vec<String>,
    /// The target, if it does not exist or its owner has blocked the hub: the channel is switched off for the person.
    pub unreachable_target: Option<String>,
}

/// The answer to a request. Equal requests get it again, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyAnswer {
    /// The outcome.
    pub ending: NotifyEnding,
    /// How long the attempt took.
    pub duration_ms: u64,
    /// The item in the recipient's inbox.
    pub notification_id: Option<NotificationId>,
    /// The ids of the parts that were delivered after the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_parts: Vec<String>,
    /// Whether the target does not exist or its owner has blocked the hub.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unreachable: bool,
}

impl NotifyEnd {
    /// The answer that it gives.
    pub fn into_answer(self, notification_id: Option<NotificationId>) -> NotifyAnswer {
        let Self { ending, duration_ms, further_parts, unreachable_target, .. } = self;
        let is_unreachable = unreachable_target.is_some();
        NotifyAnswer { ending, duration_ms, notification_id, further_parts, is_unreachable }
    }
}

impl NotifyAnswer {
    /// The answer without an attempt of which more is known.
    pub(crate) fn without_attempt(ending: NotifyEnding, notification_id: Option<NotificationId>) -> Self {
        Self { ending, duration_ms: 0, notification_id, further_parts: Vec::new(), is_unreachable: false }
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEnding {
    /// The provider accepted it.
    Delivered {
        /// The id of the message in the channel.
        delivery_id: String,
    },
    /// Quiet hours hold it; the outbox sends it later.
    Deferred {
        /// When it is sent.
        deliver_at: Time,
        /// Why it waits.
        reason: String,
    },
    /// It failed, or its outcome is not known.
    Failed {
        /// The class.
        #[serde(with = "class")]
        class: ErrorClass,
        /// What happened.
        message: String,
        /// Whether the same request may be made again: nothing was delivered.
        retryable: bool,
        /// The time to wait before that.
        retry_after_seconds: Option<u64>,
        /// The id of the first part of a text that was delivered in part.
        first_part: Option<String>,
    },
}

impl NotifyEnding {
    /// A failure.
    pub fn failed(error: NotifyError, first_part: Option<String>) -> Self {
        let NotifyError { class, message, retryable, retry_after_seconds } = error;
        Self::Failed { class, message, retryable, retry_after_seconds, first_part }
    }

    /// Whether equal requests get this answer too. One that can be retried releases the key.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Failed { retryable: true, .. })
    }
}

mod class {
    use bellwire_core::notify::ErrorClass;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(class: &ErrorClass, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(class.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorClass, D::Error> {
        let text = String::deserialize(deserializer)?;
        ErrorClass::parse(&text).ok_or_else(|| D::Error::custom("an unknown class"))
    }
}

/// The state of a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotifyState {
    /// A caller is about to attempt it. Nothing was sent.
    Claimed,
    /// The attempt has started.
    Started,
    /// It failed and may be claimed again. The row keeps the inbox item, which a retry does not repeat.
    Released,
    /// It has its final answer.
    Ended,
}

impl NotifyState {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Started => "started",
            Self::Released => "released",
            Self::Ended => "ended",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Claimed, Self::Started, Self::Released, Self::Ended].into_iter().find(|state| state.as_str() == text)
    }
}

/// A request as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct NotifyRow {
    pub(crate) key: NotifyKey,
    pub(crate) request_id: Uuid,
    pub(crate) origin: String,
    pub(crate) intent: Intent,
    pub(crate) channel: ChannelName,
    pub(crate) user_id: Option<String>,
    /// The person the agent works for.
    pub(crate) on_behalf_of: Option<String>,
    pub(crate) limit_key: Option<NotifyKey>,
    pub(crate) chosen: Option<ChosenContext>,
    pub(crate) state: NotifyState,
    /// Whether the started attempt is made elsewhere and nobody has taken it over.
    pub(crate) is_passed_on: bool,
    pub(crate) fence: i64,
    pub(crate) lease_until: Option<Time>,
    pub(crate) answer: Option<NotifyAnswer>,
    pub(crate) notification_id: Option<NotificationId>,
    pub(crate) created_at: Time,
    pub(crate) ended_at: Option<Time>,
}

impl NotifyRow {
    /// How long an answer is remembered.
    pub(crate) const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

    /// Whether an attempt is claimed or started.
    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.state, NotifyState::Claimed | NotifyState::Started)
    }

    /// Whether that lease has ended.
    pub(crate) fn has_lapsed(&self, now: Time) -> bool {
        self.is_leased() && self.lease_until.is_none_or(|until| until <= now)
    }

    /// Whether it ended so long ago that an equal request is a new one.
    pub(crate) fn is_forgotten(&self, now: Time) -> bool {
        self.ended_at.is_some_and(|at| now.millis_since(at) >= Self::KEPT_MS)
    }
}
