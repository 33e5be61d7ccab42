use std::fmt;
use std::sync::Arc;

use super::{ValidationError, bounded_text, excerpt};

/// The component an event came from, as it stands in front of the news: `[tool_executor]`.
///
/// Its alphabet holds no bracket, quote, angle or line end, so a label can be written without escaping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(Arc<str>);

impl Source {
    /// The longest source.
    pub const MAX: usize = 64;

    /// Checks the form.
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

    /// A source this crate itself uses.
    pub(crate) fn known(text: &'static str) -> Self {
        Self(text.into())
    }

    /// The source as it is written.
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

/// One agent inside a conversation: `main`, or a sub-agent's own name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// The longest name of an agent.
    pub const MAX: usize = 128;

    /// The conversation's own agent.
    pub fn main() -> Self {
        Self("main".into())
    }

    /// Checks the form: 1 to 128 characters, none of them a control character.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        bounded_text("agent", text, Self::MAX).map(|text| Self(text.into()))
    }

    /// Whether this is the conversation's own agent and not a sub-agent.
    pub fn is_main(&self) -> bool {
        &*self.0 == "main"
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same, for whoever keeps it.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
