//! Subscribers: a TOML file and a template that define which events to handle, how long to batch them, how they are
//! rendered and how urgent they are.
//!
//! A [`SubscriberFile`] is parsed into a validated [`Subscriber`]. A [`Subscribers`] set holds them in id order and finds
//! those that listen for an event's type.

mod bundled;
mod field_hint;
mod file;
mod key;
mod set;

pub use bundled::bundled_files;
use field_hint::FieldHints;
pub use file::{FILE_MAX, FileError, FindTemplate, SubscriberFile};
pub use key::KeyPattern;
pub(crate) use key::write_text;
pub use set::{DisableError, LoadedSubscribers, Preferences, SubscriberState, Subscribers};

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventType, Severity, Source, TypePattern};
use crate::render::Template;

/// The default time to live of a pending notification: one day.
pub const TTL_DEFAULT_MS: u64 = 24 * 60 * 60 * 1000;

/// One validated subscriber.
#[derive(Debug)]
pub struct Subscriber {
    /// The unique id; also the label of a notification with several sources.
    pub id: SubscriberId,
    pub(crate) key: SubscriberKey,
    /// The display name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The version of the file.
    pub version: String,
    /// The event types it listens for.
    pub types: Vec<TypePattern>,
    /// The lowest severity it accepts.
    pub severity_filter: Severity,
    /// The sources it accepts; `None` = all.
    pub sources: Option<Vec<Source>>,
    /// The rules for batches and duplicates.
    pub batching: Batching,
    /// The rules for its notifications.
    pub output: OutputRules,
    /// Renders its notifications.
    pub template: Template,
    /// Renders its notifications for people, as plain text.
    pub template_user: Option<Template>,
    pub(crate) field_hints: FieldHints,
}

/// A subscriber's rules for batches and duplicates.
#[derive(Clone, Debug)]
pub struct Batching {
    /// How long a batch stays open; 0 = no batching.
    pub window_ms: u64,
    /// The number of events that closes a batch early; also the maximum in one item of a block.
    pub max_size: usize,
    /// The key by which events are duplicates; `None` = type, source and the whole payload.
    pub dedupe_key: Option<KeyPattern>,
    /// How long after the first event duplicates are only counted; 0 = no deduplication.
    pub dedupe_window_ms: u64,
}

/// A subscriber's rules for its notifications.
#[derive(Clone, Debug)]
pub struct OutputRules {
    /// The first sort key of the queue.
    pub priority: Priority,
    /// The injection point at which they are taken.
    pub inject_at: InjectionPoint,
    /// Whether users cannot disable it.
    pub core: bool,
    /// Whether they wake an idle conversation.
    pub activation: Activation,
    /// The key by which a newer event supersedes an older pending one.
    pub replace_key: Option<KeyPattern>,
    /// How long a notification stays pending before it expires.
    pub ttl_ms: u64,
    /// The recipients.
    pub audience: Audience,
}

impl Subscriber {
    /// Whether one of its patterns matches this type.
    pub fn listens_for(&self, kind: &EventType) -> bool {
        self.types.iter().any(|pattern| pattern.matches(kind))
    }

    /// Whether it tells an agent of results of its own tool calls. An agent that has read them itself needs no repetition.
    pub(crate) fn repeats_tool_results(&self) -> bool {
        matches!(self.id.as_str(), "tool_failure" | "turn_summary")
    }

    /// The injection point of an event: the subscriber's, or the one that a note to oneself requests.
    pub(crate) fn point_for(&self, event: &Event) -> InjectionPoint {
        if !event.kind().as_str().starts_with("agent.self.") {
            return self.output.inject_at;
        }
        match event.payload().get("deliver_at").and_then(|value| value.as_str()) {
            Some("next_turn") => InjectionPoint::TurnStart,
            Some("after_tool") => InjectionPoint::AfterTool,
            Some("turn_end") => InjectionPoint::TurnEnd,
            _ => self.output.inject_at,
        }
    }
}

/// A subscriber's id: `^[a-z][a-z0-9_]*$`, at most 64 characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SubscriberId(Arc<str>);

impl SubscriberId {
    /// The maximum length.
    pub const MAX: usize = 64;

    /// Parses an id. `user` and `bellwire` are reserved: they label messages of the person and of Bellwire.
    pub fn parse(text: &str) -> Result<Self, String> {
        let formed = text.len() <= Self::MAX
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        match text {
            "user" | "bellwire" => Err(format!("'{text}' is reserved")),
            _ if formed => Ok(Self(text.into())),
            _ => Err(format!(
                "'{}' must begin with a lower-case letter and go on with lower-case letters, digits or _, at most 64",
                crate::event::excerpt(text)
            )),
        }
    }

    /// The shared text, without a copy.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }

    /// The id of Bellwire's own notifications, such as the overflow line.
    pub(crate) fn bellwire() -> Self {
        Self("bellwire".into())
    }

    /// An id from saved bytes, which were valid when they were written.
    pub(crate) fn saved(text: &str) -> Self {
        Self(text.into())
    }

    /// A 32-bit FNV-1a hash of the id, stable across builds. A set refuses two subscribers with equal keys.
    pub(crate) fn key(&self) -> SubscriberKey {
        let hash =
            self.0.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        SubscriberKey(hash)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A subscriber's id in four bytes, because a mailbox saves up to a thousand of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SubscriberKey(pub(crate) u32);

impl fmt::Display for SubscriberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for SubscriberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All values, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in files and on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Parses a name; the error lists the allowed ones.
            pub fn parse(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    format!("'{}' must be one of: {}", crate::event::excerpt(text), [$($word),+].join(", "))
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The first sort key of pending notifications; `Critical` comes first.
    Priority {
        /// Not batched.
        Critical = "critical",
        /// Batched; shown before `Normal`.
        High = "high",
        /// Batched; may be folded at a turn's start.
        Normal = "normal",
        /// Batched; may be folded, and is never taken within a turn.
        Low = "low",
    }
}

words! {
    /// A point of an agent's loop at which notifications can enter its context.
    InjectionPoint {
        /// Between any two steps.
        Immediate = "immediate",
        /// Before the first model call of a turn.
        TurnStart = "turn_start",
        /// Between a tool's result and the next model call.
        AfterTool = "after_tool",
        /// Before the agent ends its turn.
        TurnEnd = "turn_end",
    }
}

impl InjectionPoint {
    /// Whether this point takes notifications whose `inject_at` is `theirs`.
    pub fn takes(self, theirs: Self) -> bool {
        match self {
            Self::Immediate => theirs == Self::Immediate,
            Self::AfterTool => matches!(theirs, Self::Immediate | Self::AfterTool),
            Self::TurnEnd => theirs != Self::TurnStart,
            Self::TurnStart => true,
        }
    }
}

words! {
    /// Whether a subscriber's notifications wake an idle conversation.
    Activation {
        /// They wait for the next injection point.
        Passive = "passive",
        /// A wake hint is sent to the conversation's stream.
        Wake = "wake",
    }
}

words! {
    /// The recipients of a subscriber's notifications.
    Audience {
        /// The conversation's agent.
        Agent = "agent",
        /// The person who owns the conversation.
        User = "user",
        /// Agent and person.
        Both = "both",
    }
}

impl Audience {
    /// Whether the audience includes a person's mailbox (`person`) or an agent's.
    pub(crate) fn includes(self, person: bool) -> bool {
        match self {
            Self::Both => true,
            Self::User => person,
            Self::Agent => !person,
        }
    }
}
