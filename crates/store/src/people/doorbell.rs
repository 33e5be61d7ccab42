//! Doorbells: a commit wakes the readers of the inboxes it changed, and no others.
//!
//! A ring only says that something has changed. Several rings before the reader wakes are merged, because one query finds
//! all changes; so a reader cannot be too slow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::PeopleChanges;

/// The doorbells of all inboxes with readers, and the one of the outbox.
#[derive(Default)]
pub(crate) struct Doorbells {
    inboxes: Mutex<HashMap<Arc<str>, watch::Sender<()>>>,
    outbox: watch::Sender<()>,
    notify: watch::Sender<()>,
    edits: watch::Sender<()>,
}

/// Rings when one person's inbox has changed.
pub struct Doorbell {
    user_id: Arc<str>,
    rings: watch::Receiver<()>,
    doorbells: Arc<Doorbells>,
}

impl Doorbell {
    /// Waits for the next ring; false = the store is closed.
    pub async fn rings(&mut self) -> bool {
        self.rings.changed().await.is_ok()
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        let mut inboxes = self.doorbells.lock();
        // The last receiver removes the person. It is still counted here.
        if inboxes.get(&self.user_id).is_some_and(|bell| bell.receiver_count() <= 1) {
            inboxes.remove(&self.user_id);
        }
    }
}

impl Doorbells {
    pub(crate) fn at(self: &Arc<Self>, user_id: &str) -> Doorbell {
        let user_id: Arc<str> = user_id.into();
        let rings = self.lock().entry(user_id.clone()).or_default().subscribe();
        Doorbell { user_id, rings, doorbells: self.clone() }
    }

    pub(crate) fn outbox(&self) -> watch::Receiver<()> {
        self.outbox.subscribe()
    }

    pub(crate) fn notify(&self) -> watch::Receiver<()> {
        self.notify.subscribe()
    }

    /// Rings because a request of `notify` has ended or was released.
    pub(crate) fn ring_notify(&self) {
        self.notify.send_replace(());
    }

    pub(crate) fn edits(&self) -> watch::Receiver<()> {
        self.edits.subscribe()
    }

    /// Rings for the inboxes, deliveries and edits that a commit changed.
    pub(crate) fn ring(&self, changes: &PeopleChanges) {
        if !changes.deliveries.is_empty() {
            self.ring_outbox();
        }
        if changes.chats.has_edits() {
            self.edits.send_replace(());
        }
        if changes.positions.is_empty() {
            return;
        }
        let inboxes = self.lock();
        for bell in changes.positions.keys().filter_map(|person| inboxes.get(person)) {
            bell.send_replace(());
        }
    }

    /// Rings because a delivery has become due, or a lease has ended.
    pub(crate) fn ring_outbox(&self) {
        self.outbox.send_replace(());
    }

    /// Closes the doorbells: [`Doorbell::rings`] returns false.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    /// No code panics while it holds the lock, so the map is consistent even if the lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, watch::Sender<()>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
