//! The cache in Redis.
//!
//! Calls and a worker task share a [`SharedConnection`]: calls read, the worker connects, writes and detects failures. A call
//! never connects and never waits longer than `patience`; while Redis is disconnected, calls go to the database at once. The
//! worker reconnects by itself, and first deletes the entries that were forgotten meanwhile.

mod connection;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Time;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::connection::{RedisWrite, SharedConnection};
use super::{RecallFuture, RefusalCache, RefusalCacheStatus};
use crate::error::{ErrorKind, StoreError};
use crate::people::Quota;

/// A cache in Redis.
pub struct RedisRefusalCache {
    shared: Arc<SharedConnection>,
    patience: Duration,
    /// Subscribed before the worker starts, so that its first change is not missed.
    away: watch::Receiver<Option<String>>,
    worker: AbortHandle,
}

impl RedisRefusalCache {
    /// Starts to connect and returns at once. `scope` is part of every key: only hubs with the same database may use the same
    /// scope. A call waits no longer than `patience`.
    pub fn open(url: &str, scope: &str, patience: Duration) -> Result<Self, StoreError> {
        let client = client(url)?;
        let shared = Arc::new(SharedConnection::new(scope));
        let away = shared.away();
        let worker = tokio::spawn(worker::run(client, shared.clone())).abort_handle();
        Ok(Self { shared, patience, away, worker })
    }

    /// Checks that a Redis answers at this URL.
    pub async fn probe(url: &str) -> Result<(), StoreError> {
        worker::connect(&client(url)?).await.map(drop).map_err(|why| StoreError::new(ErrorKind::Retry, why))
    }

    /// Why Redis is unavailable, or none; changes are signalled.
    pub fn away(&self) -> watch::Receiver<Option<String>> {
        self.away.clone()
    }

    async fn recall(&self, quota: &Quota) -> Option<Time> {
        // Checked first: after an erasure the entry is masked until Redis has deleted it.
        if self.shared.is_masked(quota) {
            return None;
        }
        let (number, mut connection) = self.shared.connection()?;
        let mut get = redis::cmd("GET");
        get.arg(self.shared.key(quota));
        let found: Result<Option<i64>, String> = match timeout(self.patience, get.query_async(&mut connection)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => {
                self.shared.was_slow(number);
                return None;
            }
        };
        match found {
            Ok(found) => {
                self.shared.was_in_time();
                let until = found.map(Time::from_millis)?;
                self.shared.recalled();
                Some(until)
            }
            Err(why) => {
                self.shared.disconnect(number, why);
                None
            }
        }
    }
}

impl RefusalCache for RedisRefusalCache {
    fn until<'a>(&'a self, quota: &'a Quota) -> RecallFuture<'a> {
        Box::pin(self.recall(quota))
    }

    fn remember(&self, quota: &Quota, until: Time) {
        self.shared.queue(RedisWrite::Remember(quota.clone(), until));
    }

    fn forget(&self, quotas: &[Quota]) {
        self.shared.queue(RedisWrite::Forget(quotas.to_vec()));
    }

    fn status(&self) -> RefusalCacheStatus {
        self.shared.status()
    }
}

impl Drop for RedisRefusalCache {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

/// The URL is a secret, so the error does not repeat it.
fn client(url: &str) -> Result<redis::Client, StoreError> {
    let wrong = "the address of Redis is wrong: write it like redis://127.0.0.1:6379";
    redis::Client::open(url).map_err(|_| StoreError::new(ErrorKind::Broken, wrong))
}
