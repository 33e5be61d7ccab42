use tokio::sync::oneshot;

use crate::error::{ErrorKind, StoreError};

/// The channel for a command's answer, and the answer until its commit succeeds.
pub(crate) struct PendingReply<T> {
    asker: oneshot::Sender<Result<T, StoreError>>,
    held: Option<Result<T, StoreError>>,
}

impl<T> PendingReply<T> {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (asker, answer) = oneshot::channel();
        (Self { asker, held: None }, answer)
    }

    /// Holds the answer until the commit. Returns a copy of its error, if it is one.
    pub(crate) fn hold(&mut self, decided: Result<T, StoreError>) -> Result<(), StoreError> {
        let failed = decided.as_ref().err().cloned();
        self.held = Some(decided);
        failed.map_or(Ok(()), Err)
    }

    /// Holds the answer, if there is one. `None` = the command has staged a part of its work and needs another step.
    pub(crate) fn hold_if_complete(&mut self, decided: Result<Option<T>, StoreError>) -> Result<(), StoreError> {
        match decided.transpose() {
            Some(decided) => self.hold(decided),
            None => {
                self.held = None;
                Ok(())
            }
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Changes a held error.
    pub(crate) fn explain(&mut self, explain: impl FnOnce(StoreError) -> StoreError) {
        self.held = self.held.take().map(|held| held.map_err(explain));
    }

    /// Sends the held answer, or the error if the commit failed.
    pub(crate) fn send(self, committed: Result<(), StoreError>) {
        let undecided = || Err(StoreError::new(ErrorKind::Broken, "the command was not decided"));
        let answer = committed.and_then(|()| self.held.unwrap_or_else(undecided));
        // If the caller has stopped waiting, the answer is dropped.
        let _ = self.asker.send(answer);
    }
}
