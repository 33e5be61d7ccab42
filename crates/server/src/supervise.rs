//! Supervises the essential tasks. When one ends before the hub is asked to stop, the hub fails: `/healthz` answers 503,
//! all other tasks stop, and [`App::stopped`](crate::App::stopped) returns the reason.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Supervises the essential tasks of one hub. Clones share the failure.
#[derive(Clone)]
pub(crate) struct Supervisor {
    /// Why the hub has failed: the first essential task that ended, and how.
    failure: watch::Sender<Option<String>>,
    stopping: watch::Receiver<bool>,
}

impl Supervisor {
    /// `stopping` becomes true when the hub is asked to stop.
    pub(crate) fn new(stopping: watch::Receiver<bool>) -> Self {
        Self { failure: watch::Sender::new(None), stopping }
    }

    /// Runs an essential task. It may end only after the hub was asked to stop, and must not panic then either.
    pub(crate) fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let supervisor = self.clone();
        tokio::spawn(async move {
            match AssertUnwindSafe(task).catch_unwind().await {
                Ok(()) if *supervisor.stopping.borrow() => {}
                Ok(()) => supervisor.fail(format!("{name} has ended")),
                Err(panic) => supervisor.fail(format!("{name} has panicked: {}", message_of(&*panic))),
            }
        })
    }

    /// Records why the hub has failed. The first reason is kept.
    pub(crate) fn fail(&self, reason: String) {
        tracing::error!(reason, "an essential task has died; the hub stops");
        self.failure.send_if_modified(|failure| failure.is_none().then(|| *failure = Some(reason)).is_some());
    }

    /// Why the hub has failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Waits until the hub has failed.
    pub(crate) async fn failed(&self) {
        // `self` owns the sender, so the channel is open.
        let _ = self.failure.subscribe().wait_for(Option::is_some).await;
    }
}

/// The message of a panic.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(it gave no reason)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_task_that_dies_is_the_reason() {
        let (_stop, stopping) = watch::channel(false);
        let supervisor = Supervisor::new(stopping);
        assert_eq!(supervisor.failure(), None);
        supervisor.spawn("the outbox", async { panic!("no room") });
        supervisor.failed().await;
        supervisor.spawn("another task", async {}).await.expect("it is watched");
        assert_eq!(supervisor.failure().as_deref(), Some("the outbox has panicked: no room"));
    }

    #[tokio::test]
    async fn a_task_may_end_once_the_hub_stops_but_not_panic() {
        let (stop, stopping) = watch::channel(false);
        let supervisor = Supervisor::new(stopping);
        stop.send_replace(true);
        supervisor.spawn("the outbox", async {}).await.expect("it is watched");
        assert_eq!(supervisor.failure(), None);
        supervisor.spawn("the outbox", async { panic!("late") }).await.expect("it is watched");
        assert!(supervisor.failure().is_some());
    }
}
