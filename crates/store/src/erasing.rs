//! The people whose erasure is in progress. Until it ends, every call about them is refused.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use sha2::{Digest as _, Sha256};

use crate::error::{ErrorKind, StoreError};

/// The digest under which an erased person is remembered, so that no id of theirs is stored.
pub(crate) fn user_digest(user_id: &str) -> [u8; 32] {
    Sha256::digest(user_id.as_bytes()).into()
}

/// Shared by the writer, which adds and removes people, and by the readers.
#[derive(Debug, Default)]
pub(crate) struct Erasing {
    /// The size of the set. Almost always 0: then a check takes no lock.
    count: AtomicUsize,
    users: RwLock<BTreeSet<String>>,
}

impl Erasing {
    pub(crate) fn begin(&self, user_id: &str) {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        users.insert(user_id.to_owned());
        self.count.store(users.len(), Ordering::SeqCst);
    }

    pub(crate) fn end(&self, user_id: &str) {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        users.remove(user_id);
        self.count.store(users.len(), Ordering::SeqCst);
    }

    pub(crate) fn has(&self, user_id: &str) -> bool {
        self.count.load(Ordering::SeqCst) > 0
            && self.users.read().unwrap_or_else(PoisonError::into_inner).contains(user_id)
    }

    /// All of them.
    pub(crate) fn users(&self) -> BTreeSet<String> {
        match self.count.load(Ordering::SeqCst) {
            0 => BTreeSet::new(),
            _ => self.users.read().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Refuses a call about a person who is being erased.
    pub(crate) fn check(&self, user_id: &str) -> Result<(), StoreError> {
        match self.has(user_id) {
            true => {
                Err(StoreError::new(ErrorKind::Conflict, "this person is being erased; ask again when that is done"))
            }
            false => Ok(()),
        }
    }
}
