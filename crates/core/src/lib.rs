//! The I/O-free core of Bellwire: it turns events into notifications that an agent reads.
//!
//! The path of an event, in the order of the modules below: an [`Event`] is validated; [`Subscribers`] finds the
//! subscribers that listen for its type; the recipient's [`Mailbox`] decides a [`Verdict`] per subscriber: queued,
//! held, duplicate, filtered or suppressed; at an injection point the agent takes its pending notifications as an
//! [`Injection`], rendered into bounded text that event data cannot break out of.
//!
//! The core does no I/O, reads no clock, has no randomness of its own, starts no thread and never awaits. Time, ids and
//! random bytes come in as arguments; effects go out as data. [`Conversation`] drives all of it in memory, for an agent
//! that embeds the core without a hub:
//!
//! ```
//! use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Randomness, Severity, Subscribers, Time};
//! use serde_json::json;
//!
//! let mut conversation = Conversation::new(Subscribers::bundled().into(), Randomness::repeatable(42));
//! let now: Time = "2026-01-03T15:30:01Z".parse()?;
//!
//! let failure = json!({"tool_name": "vault_search", "error_type": "timeout", "error_message": "no answer in 5000ms"});
//! conversation.publish(Event::new("tool.call.failure", "tool_executor", Severity::Error, failure)?, now)?;
//!
//! let answer = conversation.inject(Inject::new(InjectionPoint::AfterTool, "call_1")?, now)?;
//! let content = answer.content("File updated successfully.");
//! assert!(content.starts_with("File updated successfully.\n\n<notifications id="));
//! assert!(content.contains("- [tool_executor] tool_fail: vault_search timeout - no answer in 5000ms"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod time;
pub use time::{Time, TimeError};

mod ids;
pub use ids::{EventId, Ids, NotificationId};

mod randomness;
pub use randomness::Randomness;

mod nearest;
pub use nearest::nearest;

pub mod event;
pub use event::{AgentName, Event, EventDraft, EventType, Payload, Severity, Source, ValidationError};

pub mod subscriber;
pub use subscriber::{InjectionPoint, Preferences, Priority, Subscriber, Subscribers};

pub mod mailbox;
pub use mailbox::{Effect, Input, Mailbox, MailboxContext, MailboxKind};

pub mod verdict;
pub use verdict::Verdict;

mod detect;

pub mod notification;
pub use notification::Notification;

pub mod inject;
pub use inject::{Inject, Injection};

pub mod render;
pub use render::{Boundary, Template};

pub mod lifecycle;

pub mod conversation;
pub use conversation::Conversation;

pub mod timeline;
pub use timeline::Timeline;

pub mod person;

pub mod notify;
pub use notify::NotifyCall;

pub mod quiet;
pub mod retry;
