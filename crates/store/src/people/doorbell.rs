//! Who waits for whose inbox: a commit rings for its own people and for nobody else.
//!
//! A ring says that something has changed and nothing more. However often it rings before somebody looks, one look
//! finds everything, so nobody can be too slow for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::PeopleChanges;

/// The doorbells of everyone who is waited for, and the one of the outbox.
#[derive(Default)]
pub(crate) struct Doorbells {
    inboxes: Mutex<HashMap<Arc<str>, watch::Sender<()>>>,
    outbox: watch::Sender<()>,
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
        // The last one takes the person off the list; its own receiver is still counted here.
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

    /// Rings for what a commit has changed.
    pub(crate) fn ring(&self, changes: &PeopleChanges) {
        if !changes.deliveries.is_empty() {
            self.ring_outbox();
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

    /// Tells everyone that it will not ring again.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    /// Nothing panics while it is held, so a poisoned lock still guards a whole map.
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, watch::Sender<()>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
