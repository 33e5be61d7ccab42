use std::fmt;
use std::sync::Arc;

use super::{ValidationError, excerpt};

/// The maximum length of an event type, in characters.
const TYPE_MAX: usize = 128;

/// An event type: two to six lower-case parts joined by dots, such as `tool.call.failure`.
///
/// Any type of this form is accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(Arc<str>);

impl EventType {
    /// Parses and validates a type.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        let parts = text.split('.').count();
        if text.len() <= TYPE_MAX && (2..=6).contains(&parts) && text.split('.').all(is_part) {
            return Ok(Self(text.into()));
        }
        Err(ValidationError::new(
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

    /// The last part, which says what happened: `failure` of `tool.call.failure`.
    pub fn verb(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The types a subscriber listens for: one type, all below a prefix (`task.background.*`), or every type of a form
/// (`budget.*.exceeded`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// One type.
    Exact(EventType),
    /// Every type with this prefix, which ends in a dot.
    Below(Box<str>),
    /// Every type with these parts, where `*` stands for any one part.
    Form {
        /// The parts, joined by dots.
        parts: Box<str>,
        /// Whether further parts must follow: the pattern ends in `.*`.
        below: bool,
    },
}

impl TypePattern {
    /// Parses a type or a pattern: a trailing `.*` is everything below, any other `*` one whole part.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        if !text.contains('*') {
            return EventType::parse(text).map(Self::Exact);
        }
        let (parts, below) = text.strip_suffix(".*").map_or((text, false), |prefix| (prefix, true));
        let count = parts.split('.').count() + usize::from(below);
        let formed = parts.split('.').all(|part| part == "*" || is_part(part)) && parts.split('.').any(is_part);
        if parts.len() > TYPE_MAX || !(2..=6).contains(&count) || !formed {
            let message = format!(
                "'{}' must be a type, in which * may stand for one whole part, or 1 to 5 of its first parts with .* \
                 behind (for example budget.*.exceeded or task.background.*)",
                excerpt(text)
            );
            return Err(ValidationError::new("types", message));
        }
        Ok(match below && !parts.contains('*') {
            true => Self::Below(format!("{parts}.").into()),
            false => Self::Form { parts: parts.into(), below },
        })
    }

    /// Whether the pattern includes this type.
    pub fn matches(&self, kind: &EventType) -> bool {
        match self {
            Self::Exact(own) => own == kind,
            Self::Below(prefix) => kind.as_str().starts_with(&**prefix),
            Self::Form { parts, below } => {
                let mut found = kind.as_str().split('.');
                let mut alike = |part: &str| found.next().is_some_and(|found| part == "*" || part == found);
                parts.split('.').all(&mut alike) && found.next().is_some() == *below
            }
        }
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(kind) => kind.fmt(f),
            Self::Below(prefix) => write!(f, "{prefix}*"),
            Self::Form { parts, below } => write!(f, "{parts}{}", if *below { ".*" } else { "" }),
        }
    }
}

fn is_part(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_lowercase())
        && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, kind: &str) -> bool {
        let pattern = TypePattern::parse(pattern).unwrap_or_else(|refused| panic!("{refused}"));
        pattern.matches(&EventType::parse(kind).unwrap_or_else(|refused| panic!("{refused}")))
    }

    #[test]
    fn a_star_stands_for_one_whole_part_and_at_the_end_for_everything_below() {
        assert!(matches("budget.*.exceeded", "budget.token.exceeded"));
        assert!(matches("*.call.failure", "tool.call.failure"));
        assert!(matches("a.*.*.d", "a.b.c.d"));
        assert!(matches("a.*.c.*", "a.b.c.d") && matches("a.*.c.*", "a.b.c.d.e"));
        assert!(!matches("budget.*.exceeded", "budget.exceeded"));
        assert!(!matches("budget.*.exceeded", "budget.token.daily.exceeded"));
        assert!(!matches("budget.*.exceeded", "budget.token.exceeded.twice"));
        assert!(!matches("a.*.c.*", "a.b.c"));
        for refused in ["*", "*.*", "a.b*.c", "a.*x", "a.**", "a..*", "*.a.b.c.d.e.*", ""] {
            assert!(TypePattern::parse(refused).is_err(), "{refused}");
        }
        for pattern in ["budget.*.exceeded", "a.*.c.*", "task.background.*", "ci.failed"] {
            assert_eq!(TypePattern::parse(pattern).map(|pattern| pattern.to_string()), Ok(pattern.to_owned()));
        }
    }
}
