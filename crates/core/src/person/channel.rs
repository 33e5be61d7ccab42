use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ValidationError;
use crate::event::excerpt;

/// In characters: the longest name of a channel.
const NAME_MAX: usize = 32;

/// The name of a channel: 1 to 32 of `[a-z0-9_]`, beginning with a letter. The core knows no particular channel. Clones
/// share the text.
///
/// ```
/// use bellwire_core::person::ChannelName;
///
/// assert_eq!(ChannelName::parse("pigeon_post")?.as_str(), "pigeon_post");
/// assert!(ChannelName::parse("Pigeon").is_err());
/// # Ok::<(), bellwire_core::ValidationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelName(Arc<str>);

impl ChannelName {
    /// Checks a name.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let fits = text.len() <= NAME_MAX && text.starts_with(|c: char| c.is_ascii_lowercase());
        if fits && text.chars().all(is_allowed) {
            return Ok(Self(text.into()));
        }
        let message = format!(
            "'{}' is no name of a channel: 1 to {NAME_MAX} lower-case letters, digits and _, beginning with a letter",
            excerpt(text)
        );
        Err(ValidationError::new("channel", message))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether and where a person is reached on one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelSettings {
    /// Whether the person wants messages on it.
    pub enabled: bool,
    /// The person's address in the channel.
    pub target: Option<String>,
    /// Whether the person has proven that the target is theirs.
    pub verified: bool,
}

/// A change of the settings of one channel; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelChange {
    /// Whether the person wants messages on it.
    pub enabled: Option<bool>,
    /// The new target, in the channel's normal form; `Some(None)` removes it. A different target is not verified.
    pub target: Option<Option<String>>,
}

impl ChannelSettings {
    /// The target, if the channel is switched on and the target is verified.
    pub fn usable_target(&self) -> Option<&str> {
        self.target.as_deref().filter(|_| self.enabled && self.verified)
    }

    pub(super) fn apply(&mut self, change: &ChannelChange) {
        if let Some(target) = &change.target {
            self.verified &= *target == self.target;
            self.target = target.clone();
        }
        self.enabled = change.enabled.unwrap_or(self.enabled);
    }
}

impl Borrow<str> for ChannelName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ChannelName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ChannelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for right in ["x", "email", "a_1", &"x".repeat(32)] {
            assert_eq!(ChannelName::parse(right).map(|name| name.to_string()), Ok(right.to_owned()));
        }
        for wrong in ["", "1a", "_a", "Email", "e-mail", "é", "a b", &"x".repeat(33)] {
            assert!(ChannelName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
