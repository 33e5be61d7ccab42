//! The state shared by calls and the worker: the connection, the queue of writes, and the masked entries.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwire_core::Time;
use redis::aio::MultiplexedConnection;
use tokio::sync::{Notify, watch};

use crate::people::Quota;
use crate::refusals::RefusalCacheStatus;

/// How many timeouts in a row disconnect Redis.
const SLOW_MAX: u32 = 3;
/// The length of the write queue; further refusals are not cached.
const WRITES_MAX: usize = 4096;

/// The state shared by calls and the worker.
pub(super) struct SharedConnection {
    scope: String,
    /// None = disconnected. Connections are numbered, so that a late failure of an old one does not close the new one.
    connection: Mutex<(u64, Option<MultiplexedConnection>)>,
    /// In the order of the commits.
    writes: Mutex<VecDeque<RedisWrite>>,
    /// The quotas that Redis has not deleted yet, each with its number of pending deletes. They must not be returned.
    masked: Mutex<HashMap<Quota, usize>>,
    work: Notify,
    away: watch::Sender<Option<String>>,
    slow: AtomicU32,
    recalled: AtomicU64,
    failed: AtomicU64,
}

/// A write for the worker.
#[derive(Clone)]
pub(super) enum RedisWrite {
    Remember(Quota, Time),
    Forget(Vec<Quota>),
}

impl SharedConnection {
    pub(super) fn new(scope: &str) -> Self {
        Self {
            scope: scope.to_owned(),
            connection: Mutex::default(),
            writes: Mutex::default(),
            masked: Mutex::default(),
            work: Notify::new(),
            away: watch::channel(Some("not connected yet".to_owned())).0,
            slow: AtomicU32::new(0),
            recalled: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// The user id is last, because it may contain any character.
    pub(super) fn key(&self, quota: &Quota) -> String {
        let Quota { user_id, allowance, per_hour } = quota;
        format!("bellwire:{}:full:{}:{per_hour}:{user_id}", self.scope, allowance.as_str())
    }

    /// The connection and its number, if connected.
    pub(super) fn connection(&self) -> Option<(u64, MultiplexedConnection)> {
        let connection = lock(&self.connection);
        connection.1.clone().map(|open| (connection.0, open))
    }

    /// Sets the connection; from now on calls use Redis.
    pub(super) fn open(&self, open: MultiplexedConnection) -> u64 {
        let mut connection = lock(&self.connection);
        *connection = (connection.0 + 1, Some(open));
        self.slow.store(0, Ordering::Relaxed);
        self.away.send_replace(None);
        connection.0
    }

    /// Drops the connection; calls skip Redis until the worker has reconnected.
    pub(super) fn disconnect(&self, number: u64, why: String) {
        let mut connection = lock(&self.connection);
        if connection.0 != number || connection.1.take().is_none() {
            return;
        }
        self.is_away(why);
        self.work.notify_one();
    }

    /// Records a failure and its reason.
    pub(super) fn is_away(&self, why: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.away.send_if_modified(|away| away.replace(why.clone()).as_ref() != Some(&why));
    }

    pub(super) fn away(&self) -> watch::Receiver<Option<String>> {
        self.away.subscribe()
    }

    pub(super) fn was_slow(&self, number: u64) {
        match self.slow.fetch_add(1, Ordering::Relaxed) + 1 {
            slow if slow >= SLOW_MAX => self.disconnect(number, "it answers too slowly".to_owned()),
            _ => drop(self.failed.fetch_add(1, Ordering::Relaxed)),
        }
    }

    pub(super) fn was_in_time(&self) {
        self.slow.store(0, Ordering::Relaxed);
    }

    pub(super) fn recalled(&self) {
        self.recalled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn status(&self) -> RefusalCacheStatus {
        RefusalCacheStatus {
            recalled: self.recalled.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            away: self.away.borrow().clone(),
        }
    }

    /// Queues a write for the worker. A `Forget` masks its entries at once and is never dropped.
    pub(super) fn queue(&self, write: RedisWrite) {
        let mut writes = lock(&self.writes);
        match &write {
            RedisWrite::Remember(..) if writes.len() >= WRITES_MAX => return,
            RedisWrite::Remember(..) => {}
            RedisWrite::Forget(quotas) => {
                let mut masked = lock(&self.masked);
                quotas.iter().for_each(|quota| *masked.entry(quota.clone()).or_default() += 1);
            }
        }
        writes.push_back(write);
        self.work.notify_one();
    }

    pub(super) fn next_write(&self) -> Option<RedisWrite> {
        lock(&self.writes).pop_front()
    }

    /// Waits for a queued write, or for a disconnect.
    pub(super) async fn work(&self) {
        self.work.notified().await;
    }

    pub(super) fn is_masked(&self, quota: &Quota) -> bool {
        lock(&self.masked).contains_key(quota)
    }

    /// Removes the mask after Redis has deleted the entries.
    pub(super) fn unmask(&self, quotas: &[Quota]) {
        let mut masked = lock(&self.masked);
        for quota in quotas {
            match masked.get_mut(quota) {
                Some(times) if *times > 1 => *times -= 1,
                _ => drop(masked.remove(quota)),
            }
        }
    }
}

/// No code panics while it holds a lock, so the data is consistent even if the lock is poisoned.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
