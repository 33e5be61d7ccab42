use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::event::{Event, HashKey, Payload, excerpt, fingerprint};
use crate::nearest;

/// A pattern for dedupe and replace keys: terms joined by colons, each `type`, `source`, `severity`, `payload.<path>` or a
/// literal in single quotes.
///
/// ```
/// use bellwire_core::subscriber::KeyPattern;
///
/// assert!(KeyPattern::parse("type:payload.tool_name").is_ok());
/// assert!(KeyPattern::parse("'ci':payload.job").is_ok());
/// assert!(KeyPattern::parse("paylod.job").is_err());
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
        let mut terms = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let term;
            (term, rest) = Term::first_of(text)?;
            terms.push(term);
        }
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
                Term::Literal(text) => write!(f, "{colon}'{text}'")?,
            }
        }
        Ok(())
    }
}

impl Term {
    /// The first term of a pattern, and the text after its colon, if there is one.
    fn first_of(text: &str) -> Result<(Self, Option<&str>), String> {
        let Some(quoted) = text.strip_prefix('\'') else {
            let (term, rest) = text.split_once(':').map_or((text, None), |(term, rest)| (term, Some(rest)));
            return Ok((Self::parse(term)?, rest));
        };
        let (literal, rest) = quoted.split_once('\'').ok_or("has a literal without its closing single quote")?;
        if literal.is_empty() {
            return Err("has an empty literal; write a word between the single quotes".into());
        }
        match rest.strip_prefix(':') {
            None if !rest.is_empty() => {
                Err(format!("has '{}' after a literal; write a colon between terms", excerpt(rest)))
            }
            rest => Ok((Self::Literal(literal.into()), rest)),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("has an empty term; write terms such as type:payload.tool_name".into()),
            "type" => Ok(Self::Type),
            "source" => Ok(Self::Source),
            "severity" => Ok(Self::Severity),
            _ => match text.strip_prefix("payload.") {
                Some(path) if path.split('.').any(str::is_empty) => {
                    Err(format!("has the term '{}', whose path has an empty part", excerpt(text)))
                }
                Some(path) => Ok(Self::Payload(path.split('.').map(Into::into).collect())),
                None => Err(unknown_term(text)),
            },
        }
    }
}

/// Names the nearest known term, and how to write a literal.
fn unknown_term(text: &str) -> String {
    let (head, path) = text.split_once('.').map_or((text, None), |(head, path)| (head, Some(path)));
    let suggestion = match (nearest(head, ["payload", "type", "source", "severity"]), path) {
        (Some("payload"), path) => format!("payload.{}", path.unwrap_or("<path>")),
        (Some(known), None) => known.to_owned(),
        _ => format!("payload.{text}"),
    };
    let (text, suggestion) = (excerpt(text), excerpt(&suggestion));
    format!(
        "has the unknown term {text}; did you mean {suggestion}? Terms are type, source, severity and payload.<path>; a \
         literal stands in single quotes: '{text}'"
    )
}

fn value_at<'a>(payload: &'a Payload, path: &[Box<str>]) -> Option<&'a serde_json::Value> {
    payload.at_path(path.iter().map(|part| &**part))
}

/// Hashes the length before the text, so that `ab` + `c` and `a` + `bc` give different keys.
pub(crate) fn write_text(hasher: &mut SipHasher13, text: &str) {
    hasher.write(&(text.len() as u32).to_le_bytes());
    hasher.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_written_as_it_was_read() {
        for pattern in ["type", "source:severity", "payload.a.b:type", "'ci: builds':payload.job", "'a':'b'"] {
            assert_eq!(KeyPattern::parse(pattern).map(|pattern| pattern.to_string()), Ok(pattern.to_owned()));
        }
    }

    #[test]
    fn an_unknown_term_is_refused_with_the_nearest_known_one() {
        let wrong = [
            "paylod.service",
            "typ",
            "type:sorce",
            "service",
            "payload",
            "tool.name",
            "ci:payload.job",
            "'ci",
            "''",
            "'ci'x",
            "'ci':",
            ":type",
            "payload..x",
        ];
        let said = |text: &str| match KeyPattern::parse(text) {
            Ok(pattern) => format!("{text} is taken as {pattern}"),
            Err(message) => format!("{text}: {message}"),
        };
        insta::assert_snapshot!(wrong.map(said).join("\n"));
    }
}
