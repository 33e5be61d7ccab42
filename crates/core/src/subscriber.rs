//! Who wants to know: a TOML file and a template that say which events, how long to hold them, how they read, and how
//! urgent they are.
//!
//! A [`SubscriberFile`] is read into a [`Subscriber`] whose values cannot be wrong; a [`Subscribers`] set holds them in
//! id order, finds the ones an event is for, and survives reloads.

mod bundled;
mod file;
mod key;
mod set;

pub use bundled::bundled_files;
pub use file::{FileError, SubscriberFile};
pub use key::KeyPattern;
pub(crate) use key::write_text;
pub use set::{Loaded, Preferences, RefusedId, SubscriberState, Subscribers};

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventType, Severity, Source, TypePattern};
use crate::render::Template;

/// How long a notification waits for an injection point before it expires, unless its subscriber says otherwise.
pub const TTL_DEFAULT_MS: u64 = 24 * 60 * 60 * 1000;

/// One subscriber, checked.
#[derive(Debug)]
pub struct Subscriber {
    /// Its unique name, also its label where a notification has several sources.
    pub id: SubscriberId,
    pub(crate) key: SubscriberKey,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The version of the file.
    pub version: String,
    /// The event types it listens for.
    pub types: Vec<TypePattern>,
    /// The mildest severity it lets through.
    pub severity_filter: Severity,
    /// The only sources it hears, if it is choosy.
    pub sources: Option<Vec<Source>>,
    /// How long to hold events and which of them are repeats.
    pub batching: Batching,
    /// How the news goes out.
    pub output: Output,
    /// How the news reads.
    pub template: Template,
}

/// How long to hold events, and which of them are repeats.
#[derive(Clone, Debug)]
pub struct Batching {
    /// How long a batch stays open; 0 = every event stands alone.
    pub window_ms: u64,
    /// How many events close a batch early, and the most one item of a block may stand for.
    pub max_size: usize,
    /// What makes two events the same; none = type, source and whole payload.
    pub dedupe_key: Option<KeyPattern>,
    /// For how long after the first event an equal one only counts; 0 = never.
    pub dedupe_window_ms: u64,
}

/// How the news goes out.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its place in the queue.
    pub priority: Priority,
    /// Where it enters the context.
    pub inject_at: InjectionPoint,
    /// A core subscriber cannot be disabled.
    pub core: bool,
    /// Whether it wakes an idle conversation.
    pub activation: Activation,
    /// What makes a newer event take an older one's place.
    pub replace_key: Option<KeyPattern>,
    /// How long a notification may wait.
    pub ttl_ms: u64,
    /// Whom it is for.
    pub audience: Audience,
}

impl Subscriber {
    /// Whether it listens for this type at all.
    pub fn listens_for(&self, kind: &EventType) -> bool {
        self.types.iter().any(|pattern| pattern.matches(kind))
    }

    /// Where this event enters the context: the subscriber's own point, or the one a note to oneself asks for.
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

/// The name of a subscriber: `^[a-z][a-z0-9_]*$`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SubscriberId(Arc<str>);

impl SubscriberId {
    /// The longest name.
    pub const MAX: usize = 64;

    /// Checks the form. `user` and `bellwire` are labels of the person and of ourselves, so no subscriber bears them.
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

    /// The same, for whoever keeps it.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }

    /// The label of what Bellwire itself has to say, such as how much it left out.
    pub(crate) fn bellwire() -> Self {
        Self("bellwire".into())
    }

    /// A name read back from where it was saved.
    pub(crate) fn saved(text: &str) -> Self {
        Self(text.into())
    }

    /// The name in four bytes, the same in every build: FNV-1a. Loading refuses two subscribers with the same key.
    pub(crate) fn key(&self) -> SubscriberKey {
        let hash =
            self.0.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        SubscriberKey(hash)
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A subscriber's name where a thousand of them must fit into a mailbox.
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
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word in files and on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Reads the word; the error lists the allowed ones.
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
    /// A notification's place in the queue. `Critical` sorts first.
    Priority {
        /// Bypasses batching.
        Critical = "critical",
        /// At the next opportunity.
        High = "high",
        /// Standard batching.
        Normal = "normal",
        /// Aggregated; never breaks into a turn.
        Low = "low",
    }
}

words! {
    /// A place where news can enter a running agent's context.
    InjectionPoint {
        /// Now, between any two steps.
        Immediate = "immediate",
        /// Before the agent gets control.
        TurnStart = "turn_start",
        /// Between a tool's result and the next model call.
        AfterTool = "after_tool",
        /// Before the agent yields.
        TurnEnd = "turn_end",
    }
}

impl InjectionPoint {
    /// Whether a notification meant for `theirs` is taken here: the table of what each point takes.
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
    /// Whether news waits for the agent or wakes it.
    Activation {
        /// Waits for the next injection point.
        Passive = "passive",
        /// Tells an idle conversation's stream that something waits.
        Wake = "wake",
    }
}

words! {
    /// Whom a subscriber's news is for.
    Audience {
        /// The conversation's agent.
        Agent = "agent",
        /// The person who owns the conversation.
        User = "user",
        /// Both of them.
        Both = "both",
    }
}

impl Audience {
    /// Whether the mailbox of an agent (or else of a person) is meant.
    pub(crate) fn includes(self, person: bool) -> bool {
        match self {
            Self::Both => true,
            Self::User => person,
            Self::Agent => !person,
        }
    }
}
