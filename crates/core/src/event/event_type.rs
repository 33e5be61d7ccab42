use std::fmt;
use std::sync::Arc;

use super::{Invalid, excerpt};

/// The longest event type.
const TYPE_MAX: usize = 128;

/// What kind of thing happened: two to six lower-case parts joined by dots, such as `tool.call.failure`.
///
/// The set is open, the form is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(Arc<str>);

impl EventType {
    /// Checks the form.
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

    /// A type this crate itself uses.
    pub(crate) fn known(text: &'static str) -> Self {
        debug_assert!(Self::parse(text).is_ok());
        Self(text.into())
    }

    /// The type as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a subscriber listens for: one type, or everything below a prefix (`task.background.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// Exactly this type.
    Exact(EventType),
    /// Every type that begins with these parts; the text ends in a dot.
    Below(Box<str>),
}

impl TypePattern {
    /// Checks the form; only a trailing `.*` is a wildcard.
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

    /// Whether an event of this type is meant.
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
