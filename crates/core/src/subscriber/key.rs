use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::event::{Event, HashKey, Payload, fingerprint};

/// A pattern for dedupe and replace keys: terms joined by colons, each `type`, `source`, `severity`, `payload.<path>` or a
/// literal word.
///
/// ```
/// use bellwire_core::subscriber::KeyPattern;
///
/// assert!(KeyPattern::parse("type:payload.tool_name").is_ok());
/// assert!(KeyPattern::parse("type::payload.").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Type,
    Source,
    Severity,
    Payload(Vec<Box<str>>),
    Literal(Box<str>),
}

/// The maximum length of a pattern, in bytes.
const PATTERN_MAX: usize = 256;

impl KeyPattern {
    /// Parses a pattern such as `type:payload.tool_name`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > PATTERN_MAX {
            return Err(format!("must have 1 to {PATTERN_MAX} characters"));
        }
        let terms = text.split(':').map(Term::parse).collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// The event's key under this secret; `None` if the event lacks a part of the pattern.
    pub(crate) fn hash(&self, mut hasher: SipHasher13, event: &Event, secret: &HashKey) -> Option<u128> {
        for term in &self.terms {
            match term {
                Term::Type => write_text(&mut hasher, event.kind().as_str()),
                Term::Source => write_text(&mut hasher, event.source().as_str()),
                Term::Severity => write_text(&mut hasher, event.severity().as_str()),
                Term::Literal(text) => write_text(&mut hasher, text),
                Term::Payload(path) => {
                    let value = value_at(event.payload(), path)?;
                    match value.as_str() {
                        Some(text) => write_text(&mut hasher, text),
                        None => hasher.write(&fingerprint(value, secret).to_le_bytes()),
                    }
                }
            }
        }
        Some(hasher.finish128().as_u128())
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let colon = if index > 0 { ":" } else { "" };
            match term {
                Term::Type => write!(f, "{colon}type")?,
                Term::Source => write!(f, "{colon}source")?,
                Term::Severity => write!(f, "{colon}severity")?,
                Term::Payload(path) => write!(f, "{colon}payload.{}", path.join("."))?,
                Term::Literal(text) => write!(f, "{colon}{text}")?,
            }
        }
        Ok(())
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("has an empty term; write terms such as type:payload.tool_name".into()),
            "type" => Ok(Self::Type),
            "source" => Ok(Self::Source),
            "severity" => Ok(Self::Severity),
            _ => match text.strip_prefix("payload.") {
                Some(path) if path.split('.').any(str::is_empty) => {
                    Err(format!("has the term '{text}', whose path has an empty part"))
                }
                Some(path) => Ok(Self::Payload(path.split('.').map(Into::into).collect())),
                None => Ok(Self::Literal(text.into())),
            },
        }
    }
}

fn value_at<'a>(payload: &'a Payload, path: &[Box<str>]) -> Option<&'a serde_json::Value> {
    payload.at_path(path.iter().map(|part| &**part))
}

/// Hashes the length before the text, so that `ab` + `c` and `a` + `bc` give different keys.
pub(crate) fn write_text(hasher: &mut SipHasher13, text: &str) {
    hasher.write(&(text.len() as u32).to_le_bytes());
    hasher.write(text.as_bytes());
}
