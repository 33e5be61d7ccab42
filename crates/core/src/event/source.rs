use std::fmt;
use std::sync::Arc;

use super::{ValidationError, bounded_text, excerpt};

/// The component an event came from. Notifications show it as their label: `[tool_executor]`.
///
/// Brackets, quotes, angle brackets and line breaks are not allowed, so that a label needs no escaping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(Arc<str>);

impl Source {
    /// In characters.
    pub const MAX: usize = 64;

    /// Validates the form.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        let legal = (1..=Self::MAX).contains(&text.len())
            && text.bytes().all(Self::allows)
            && !text.starts_with(' ')
            && !text.ends_with(' ');
        if legal {
            return Ok(Self(text.into()));
        }
        let message = format!(
            "'{}' must be 1 to 64 letters, digits, spaces or _ . : / - without spaces at either end",
            excerpt(text)
        );
        Err(ValidationError::new("source", message))
    }

    /// Whether a source may contain this byte.
    pub fn allows(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b" _.:/-".contains(&byte)
    }

    /// A source that this crate itself uses; not validated.
    pub(crate) fn known(text: &'static str) -> Self {
        Self(text.into())
    }

    /// The validated text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// An agent in a conversation: `main`, or the name of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// In characters.
    pub const MAX: usize = 128;

    /// The conversation's main agent.
    pub fn main() -> Self {
        Self("main".into())
    }

    /// Validates the form: 1 to 128 characters, no control characters.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        bounded_text("agent", text, Self::MAX).map(|text| Self(text.into()))
    }

    /// Whether this is the main agent and not a sub-agent.
    pub fn is_main(&self) -> bool {
        &*self.0 == "main"
    }

    /// The validated text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A shared copy of the text, without allocation.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
