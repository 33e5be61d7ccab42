//! How a store's writer ended: closed as asked, or by a panic.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use tokio::sync::watch;

use crate::error::{ErrorKind, StoreError};

/// Why a store's writer has ended. No command is carried out afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The store was closed, or everything that could ask it is gone.
    Closed,
    /// The writer panicked with this message. What it had not committed did not happen.
    Panicked(String),
}

impl Ended {
    /// What a command that comes too late is answered.
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
    // Without its sender the writer was dropped with the runtime it ran on.
    known.ok().and_then(|known| known.clone()).unwrap_or(Ended::Closed)
}

/// Runs the writer to its end. A panic ends it too, and is caught here so that it can be reported.
pub(crate) async fn run(writer: impl Future<Output = ()>) -> Ended {
    let mut writer = pin!(writer);
    std::future::poll_fn(move |context| {
        // The writer is not polled again after a panic, so nobody sees its broken state.
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
