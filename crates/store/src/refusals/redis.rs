//! The memory in Redis.
//!
//! Two sides share a [`SharedConnection`]: calls read from it, and a worker of its own connects, writes and notices what fails. A call
//! never connects and never waits longer than its patience; while it is disconnected it asks the database at once. The worker
//! opens the line again by itself, after it has deleted what was to be forgotten meanwhile.

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

/// Remembers in Redis.
pub struct RedisRefusalCache {
    shared: Arc<SharedConnection>,
    patience: Duration,
    /// From before the worker began, so that nobody misses its first word.
    away: watch::Receiver<Option<String>>,
    worker: AbortHandle,
}

impl RedisRefusalCache {
    /// Begins to connect and returns at once. `scope` says whose refusals these are: whoever shares a database may share
    /// them, and nobody else. A call waits no longer than `patience`.
    pub fn open(url: &str, scope: &str, patience: Duration) -> Result<Self, StoreError> {
        let client = client(url)?;
        let shared = Arc::new(SharedConnection::new(scope));
        let away = shared.away();
        let worker = tokio::spawn(worker::run(client, shared.clone())).abort_handle();
        Ok(Self { shared, patience, away, worker })
    }

    /// Whether a Redis answers at this address.
    pub async fn probe(url: &str) -> Result<(), StoreError> {
        worker::connect(&client(url)?).await.map(drop).map_err(|why| StoreError::new(ErrorKind::Retry, why))
    }

    /// Why nothing can be recalled, whenever that changes.
    pub fn away(&self) -> watch::Receiver<Option<String>> {
        self.away.clone()
    }

    async fn recall(&self, quota: &Quota) -> Option<Time> {
        // Looked at first: whoever asks after somebody was erased finds this, or Redis has forgotten already.
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
        self.shared.note(RedisWrite::Remember(quota.clone(), until));
    }

    fn forget(&self, quotas: &[Quota]) {
        self.shared.note(RedisWrite::Forget(quotas.to_vec()));
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

/// The address is a secret, so the error does not repeat it.
fn client(url: &str) -> Result<redis::Client, StoreError> {
    let wrong = "the address of Redis is wrong: write it like redis://127.0.0.1:6379";
    redis::Client::open(url).map_err(|_| StoreError::new(ErrorKind::Broken, wrong))
}
