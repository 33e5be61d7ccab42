//! The request an agent makes at an injection point, and the response.
//!
//! Notifications become *items* (coalesced by subscriber and source); items are ordered, capped by number and tokens,
//! and written in one of three styles. The response is stored and never changes: the same call id gets the same
//! response.

mod answer;
mod cap;
mod item;

pub use answer::{Injection, ShownItem, SystemMessage, TemplateFailure};
pub use cap::{CountTokens, estimate_tokens};

pub(crate) use cap::{CappedContent, fill};
pub(crate) use item::{BlockItem, coalesce};

use crate::InjectionPoint;
use crate::subscriber::words;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A request at an injection point.
///
/// ```
/// use bellwire_core::{Inject, InjectionPoint};
///
/// let inject = Inject::new(InjectionPoint::AfterTool, "toolu_1").unwrap();
/// assert_eq!(inject.limits.items_max, 10);
/// assert!(Inject::new(InjectionPoint::AfterTool, "").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Inject {
    /// The injection point the agent reached.
    pub point: InjectionPoint,
    /// The caller's id for this request. A repeated call id gets the stored response.
    pub call_id: String,
    /// How notifications are written into the context.
    pub style: Style,
    /// The API for which synthetic messages are shaped.
    pub shape: Shape,
    /// How much the response may contain.
    pub limits: InjectLimits,
    /// Take nothing unless a waking notification is among it (for hooks that keep an agent from stopping).
    pub wake_only: bool,
}

impl Inject {
    /// In characters.
    pub const CALL_ID_MAX: usize = 256;
    /// The most earlier call ids one request may report as unseen.
    pub const UNSEEN_MAX: usize = 20;

    /// A request for a block with the default limits.
    pub fn new(point: InjectionPoint, call_id: &str) -> Result<Self, crate::ValidationError> {
        let length = call_id.chars().count();
        if length == 0 || length > Self::CALL_ID_MAX {
            let message = format!("has {length} characters; 1 to {} are allowed", Self::CALL_ID_MAX);
            return Err(crate::ValidationError::new("call_id", message));
        }
        Ok(Self {
            point,
            call_id: call_id.to_owned(),
            style: Style::Block,
            shape: Shape::Anthropic,
            limits: InjectLimits::default(),
            wake_only: false,
        })
    }
}

/// How much one response may contain, in items and in tokens.
#[derive(Copy, Clone, Debug)]
pub struct InjectLimits {
    /// The most items shown.
    pub items_max: usize,
    /// The most tokens of the whole text, tags included.
    pub tokens_max: usize,
    /// How tokens are counted.
    pub count_tokens: CountTokens,
}

impl InjectLimits {
    /// Fewer tokens could not hold even one shortened item.
    pub const TOKENS_MIN: usize = 64;
    /// The largest accepted token limit.
    pub const TOKENS_MOST: usize = 100_000;
    /// The largest accepted item limit.
    pub const ITEMS_MOST: usize = 100;

    /// Checked limits: 1 to 100 items, 64 to 100 000 tokens.
    pub fn new(items_max: usize, tokens_max: usize) -> Result<Self, crate::ValidationError> {
        if !(1..=Self::ITEMS_MOST).contains(&items_max) {
            let message = format!("is {items_max}; 1 to {} is allowed", Self::ITEMS_MOST);
            return Err(crate::ValidationError::new("max_items", message));
        }
        if !(Self::TOKENS_MIN..=Self::TOKENS_MOST).contains(&tokens_max) {
            let message = format!("is {tokens_max}; {} to {} is allowed", Self::TOKENS_MIN, Self::TOKENS_MOST);
            return Err(crate::ValidationError::new("max_tokens", message));
        }
        Ok(Self { items_max, tokens_max, count_tokens: estimate_tokens })
    }
}

impl Default for InjectLimits {
    fn default() -> Self {
        Self { items_max: 10, tokens_max: 1000, count_tokens: estimate_tokens }
    }
}

words! {
    /// How notifications are written into a context.
    Style {
        /// One `<notifications>` block after the tool's result.
        Block = "block",
        /// One `<notification>` element per item after the tool's result.
        Append = "append",
        /// A synthetic tool call and its result, as separate messages.
        Synthetic = "synthetic",
    }
}

words! {
    /// The API for which synthetic messages are shaped.
    Shape {
        /// Anthropic's Messages.
        Anthropic = "anthropic",
        /// OpenAI's Chat Completions.
        OpenaiChat = "openai_chat",
        /// OpenAI's Responses.
        OpenaiResponses = "openai_responses",
    }
}
