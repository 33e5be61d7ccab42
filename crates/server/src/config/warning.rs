use std::fmt;

/// A setting that is allowed but risky, or a variable that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    /// What is risky, and why.
    pub message: String,
    /// What to set instead.
    pub fix: String,
}

impl ConfigWarning {
    pub(super) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { message: message.into(), fix: fix.into() }
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.fix)
    }
}
