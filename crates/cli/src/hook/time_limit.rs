//! Ends a hook that takes too long.
//!
//! Sockets have timeouts of their own, but looking up the name of a host has none, nor has an input that never ends. So a thread
//! ends the process when the time is over. It never does so while the answer is being written: half an answer would be worse
//! than none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The time until which this process may run.
pub(super) struct TimeLimit {
    /// `None`: without limit.
    end: Arc<Mutex<Option<Instant>>>,
    thread: Option<Thread>,
}

impl TimeLimit {
    /// Ends the process after this time by calling `over`, which must not return.
    pub(super) fn start(after: Duration, over: fn() -> !) -> Self {
        let end = Arc::new(Mutex::new(Instant::now().checked_add(after)));
        let watched = end.clone();
        // Without a thread, only the sockets have timeouts.
        let spawned = std::thread::Builder::new().spawn(move || watch(&watched, over));
        Self { end, thread: spawned.ok().map(|handle| handle.thread().clone()) }
    }

    /// Sets another end.
    pub(super) fn set(&self, end: Instant) {
        *locked(&self.end) = Some(end);
        self.thread.iter().for_each(Thread::unpark);
    }

    /// From now on the process is not ended.
    pub(super) fn lift(&self) {
        *locked(&self.end) = None;
    }
}

fn watch(end: &Mutex<Option<Instant>>, over: fn() -> !) {
    loop {
        let left = {
            let end = locked(end);
            let Some(end) = *end else { return };
            match end.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => left,
                // The lock is held: `lift` waits, so that nothing is being written.
                _ => over(),
            }
        };
        std::thread::park_timeout(left);
    }
}

fn locked(end: &Mutex<Option<Instant>>) -> MutexGuard<'_, Option<Instant>> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}
