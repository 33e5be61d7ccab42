use tokio::sync::oneshot;

use crate::error::{ErrorKind, StoreError};

/// Where a command's answer goes, and the answer while it waits for its commit.
pub(crate) struct PendingReply<T> {
    asker: oneshot::Sender<Result<T, StoreError>>,
    held: Option<Result<T, StoreError>>,
}

impl<T> PendingReply<T> {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (asker, answer) = oneshot::channel();
        (Self { asker, held: None }, answer)
    }

    /// Keeps what was decided until it is committed, and tells whether it is an error.
    pub(crate) fn hold(&mut self, decided: Result<T, StoreError>) -> Result<(), StoreError> {
        let failed = decided.as_ref().err().cloned();
        self.held = Some(decided);
        failed.map_or(Ok(()), Err)
    }

    /// There is no answer yet: the command needs another step.
    pub(crate) fn release(&mut self) {
        self.held = None;
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Sends the answer, or the error of the commit that should have made it true.
    pub(crate) fn send(self, committed: Result<(), StoreError>) {
        let undecided = || Err(StoreError::new(ErrorKind::Broken, "the command was not decided"));
        let answer = committed.and_then(|()| self.held.unwrap_or_else(undecided));
        // An asker that has gone away wants no answer.
        let _ = self.asker.send(answer);
    }
}
