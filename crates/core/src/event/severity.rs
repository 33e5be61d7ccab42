use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ValidationError, excerpt};

/// The severity of an event, ordered from `debug` to `critical`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Verbose diagnostics.
    Debug,
    /// Normal operation.
    Info,
    /// A potential problem.
    Warning,
    /// An operation failed.
    Error,
    /// The agent or the system cannot go on.
    Critical,
}

impl Severity {
    /// All severities, lowest first.
    pub const ALL: [Self; 5] = [Self::Debug, Self::Info, Self::Warning, Self::Error, Self::Critical];

    /// The wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }

    /// Parses a wire name.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        Self::ALL.into_iter().find(|severity| severity.as_str() == text).ok_or_else(|| {
            let allowed = "must be one of: debug, info, warning, error, critical";
            ValidationError::new("severity", format!("'{}' is not a severity; it {allowed}", excerpt(text)))
        })
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
