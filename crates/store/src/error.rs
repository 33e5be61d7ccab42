use std::fmt;

/// Why a command failed. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// What went wrong, for people.
    pub message: String,
}

/// What the caller can do about an error.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It does not exist, or belongs to another owner; the caller cannot distinguish the two.
    NotFound,
    /// It contradicts an earlier command: repeat that one exactly, or use another id or key.
    Conflict,
    /// An argument is invalid; the field is named.
    Invalid(&'static str),
    /// The person's messages fill the mailbox: retry when the agent has read some.
    Full,
    /// The disk is full: free space and retry.
    NoSpace,
    /// A temporary failure: retry.
    Retry,
    /// A row that the command needs is damaged; other commands work.
    Damaged,
    /// The store does not work until the operator repairs it.
    Broken,
}

impl StoreError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid(field), message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("there is no such {what}"))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}
