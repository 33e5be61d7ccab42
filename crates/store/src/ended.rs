//! How the writer ended: closed, or by a panic.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use tokio::sync::watch;

use crate::error::{ErrorKind, StoreError};

/// Why the writer has ended. Every later command fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The store was closed, or all its handles were dropped.
    Closed,
    /// The writer panicked with this message. Uncommitted changes are lost.
    Panicked(String),
}

impl Ended {
    /// The error of a command that arrives after the end.
    pub(crate) fn error(&self) -> StoreError {
        match self {
            Self::Closed => StoreError::new(ErrorKind::Retry, "the store is shutting down"),
            Self::Panicked(message) => {
                StoreError::new(ErrorKind::Broken, format!("the writer of the store has panicked: {message}"))
            }
        }
    }
}

/// Waits until the writer has ended.
pub(crate) async fn wait(mut ended: watch::Receiver<Option<Ended>>) -> Ended {
    let known = ended.wait_for(Option::is_some).await;
    // A missing sender means that the writer was dropped together with its runtime.
    known.ok().and_then(|known| known.clone()).unwrap_or(Ended::Closed)
}

/// Runs the writer until it ends. Catches a panic, so that it can be reported.
pub(crate) async fn run(writer: impl Future<Output = ()>) -> Ended {
    let mut writer = pin!(writer);
    std::future::poll_fn(move |context| {
        // The writer is not polled again after a panic, so its inconsistent state is never used.
        match catch_unwind(AssertUnwindSafe(|| writer.as_mut().poll(context))) {
            Ok(polled) => polled.map(|()| Ended::Closed),
            Err(panic) => std::task::Poll::Ready(Ended::Panicked(message(&*panic))),
        }
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
