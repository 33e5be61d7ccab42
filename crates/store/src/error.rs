use std::fmt;

/// Why a store did not do what it was asked, sorted by what the caller can do about it. Nothing has happened then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// What the caller can do.
    pub kind: ErrorKind,
    /// What went wrong, in words a person can act on.
    pub message: String,
}

/// What the caller can do about an error.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It is not there, or it is not the caller's: nobody may learn which.
    NotFound,
    /// It was done before, otherwise: ask again with what was asked then, or under another name.
    Conflict,
    /// The person's messages fill the mailbox: ask again when the agent has read some.
    Full,
    /// There is no room on the disk: make some and ask again.
    NoSpace,
    /// It may work in a moment: ask again.
    Retry,
    /// What is asked about is damaged; everything else works.
    Damaged,
    /// It cannot work until somebody repairs the store.
    Broken,
}

impl StoreError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
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
