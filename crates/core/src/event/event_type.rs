use std::fmt;
use std::sync::Arc;

use super::{Invalid, excerpt};

/// The maximum length of an event type, in characters.
const TYPE_MAX: usize = 128;

/// An event type: two to six lower-case parts joined by dots, such as `tool.call.failure`.
///
/// Any type of this form is accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(Arc<str>);

impl EventType {
    /// Parses and validates a type.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let parts = text.split('.').count();
        if text.len() <= TYPE_MAX && (2..=6).contains(&parts) && text.split('.').all(is_part) {
            return Ok(Self(text.into()));
        }
        Err(Invalid::new(
            "type",
            format!(
                "'{}' must be 2 to 6 parts joined by dots, each a lower-case letter followed by lower-case letters, \
                 digits or _, at most {TYPE_MAX} characters in all (for example tool.call.failure)",
                excerpt(text)
            ),
        ))
    }

    /// A valid constant of this crate.
    pub(crate) fn known(text: &'static str) -> Self {
        debug_assert!(Self::parse(text).is_ok());
        Self(text.into())
    }

    /// The type as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The types a subscriber listens for: one type, or all below a prefix (`task.background.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// One type.
    Exact(EventType),
    /// Every type with this prefix, which ends in a dot.
    Below(Box<str>),
}

impl TypePattern {
    /// Parses a type or a prefix with a trailing `.*`, the only wildcard.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let Some(prefix) = text.strip_suffix(".*") else {
            return EventType::parse(text).map(Self::Exact);
        };
        if prefix.len() <= TYPE_MAX && prefix.split('.').count() <= 5 && prefix.split('.').all(is_part) {
            return Ok(Self::Below(format!("{prefix}.").into()));
        }
        let message = format!("'{}' must be a type, or 1 to 5 of its first parts with .* behind", excerpt(text));
        Err(Invalid::new("types", message))
    }

    /// Whether the pattern includes this type.
    pub fn matches(&self, kind: &EventType) -> bool {
        match self {
            Self::Exact(own) => own == kind,
            Self::Below(prefix) => kind.as_str().starts_with(&**prefix),
        }
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(kind) => kind.fmt(f),
            Self::Below(prefix) => write!(f, "{prefix}*"),
        }
    }
}

fn is_part(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_lowercase())
        && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
