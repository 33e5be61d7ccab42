//! The cache in the process, enough for a single hub.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwire_core::Time;

use super::{RecallFuture, RefusalCache, RefusalCacheStatus};
use crate::people::Quota;

/// The largest number of entries.
const QUOTAS_MAX: usize = 100_000;

/// A cache in this process; lost at its end.
#[derive(Debug, Default)]
pub struct LocalRefusalCache {
    refused: Mutex<HashMap<Quota, Time>>,
    recalled: AtomicU64,
}

impl LocalRefusalCache {
    /// No code panics while it holds the lock, so the map is consistent even if the lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, HashMap<Quota, Time>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RefusalCache for LocalRefusalCache {
    fn until<'a>(&'a self, quota: &'a Quota) -> RecallFuture<'a> {
        let until = self.lock().get(quota).copied();
        self.recalled.fetch_add(u64::from(until.is_some()), Ordering::Relaxed);
        Box::pin(std::future::ready(until))
    }

    fn remember(&self, quota: &Quota, until: Time) {
        let mut refused = self.lock();
        if refused.len() >= QUOTAS_MAX {
            // Most entries have expired by then. The database decides again for the others.
            refused.clear();
        }
        refused.insert(quota.clone(), until);
    }

    fn forget(&self, quotas: &[Quota]) {
        let mut refused = self.lock();
        for quota in quotas {
            refused.remove(quota);
        }
    }

    fn status(&self) -> RefusalCacheStatus {
        RefusalCacheStatus { recalled: self.recalled.load(Ordering::Relaxed), ..RefusalCacheStatus::default() }
    }
}
