//! The memory in Redis.
//!
//! Two sides share a [`Line`]: calls read from it, and a keeper of its own connects, writes and notices what fails. A call
//! never connects and never waits longer than its patience; where the line is down it asks the database at once. The keeper
//! opens the line again by itself, after it has deleted what was to be forgotten meanwhile.

mod keeper;
mod line;

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Time;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::line::{Line, Note};
use super::{Recalling, Refusals, Standing};
use crate::error::{ErrorKind, StoreError};
use crate::people::Quota;

/// Remembers in Redis.
pub struct RedisRefusals {
    line: Arc<Line>,
    patience: Duration,
    /// From before the keeper began, so that nobody misses its first word.
    away: watch::Receiver<Option<String>>,
    keeper: AbortHandle,
}

impl RedisRefusals {
    /// Begins to connect and returns at once. `scope` says whose refusals these are: whoever shares a database may share
    /// them, and nobody else. A call waits no longer than `patience`.
    pub fn open(url: &str, scope: &str, patience: Duration) -> Result<Self, StoreError> {
        let client = client(url)?;
        let line = Arc::new(Line::new(scope));
        let away = line.away();
        let keeper = tokio::spawn(keeper::keep(client, line.clone())).abort_handle();
        Ok(Self { line, patience, away, keeper })
    }

    /// Whether a Redis answers at this address.
    pub async fn probe(url: &str) -> Result<(), StoreError> {
        keeper::connect(&client(url)?).await.map(drop).map_err(|why| StoreError::new(ErrorKind::Retry, why))
    }

    /// Why nothing can be recalled, whenever that changes.
    pub fn away(&self) -> watch::Receiver<Option<String>> {
        self.away.clone()
    }

    async fn recall(&self, quota: &Quota) -> Option<Time> {
        // Looked at first: whoever asks after somebody was erased finds this, or Redis has forgotten already.
        if self.line.is_masked(quota) {
            return None;
        }
        let (number, mut connection) = self.line.connection()?;
        let mut get = redis::cmd("GET");
        get.arg(self.line.key(quota));
        let found: Result<Option<i64>, String> = match timeout(self.patience, get.query_async(&mut connection)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => {
                self.line.was_slow(number);
                return None;
            }
        };
        match found {
            Ok(found) => {
                self.line.was_in_time();
                let until = found.map(Time::from_millis)?;
                self.line.recalled();
                Some(until)
            }
            Err(why) => {
                self.line.hang_up(number, why);
                None
            }
        }
    }
}

impl Refusals for RedisRefusals {
    fn until<'a>(&'a self, quota: &'a Quota) -> Recalling<'a> {
        Box::pin(self.recall(quota))
    }

    fn remember(&self, quota: &Quota, until: Time) {
        self.line.note(Note::Remember(quota.clone(), until));
    }

    fn forget(&self, quotas: &[Quota]) {
        self.line.note(Note::Forget(quotas.to_vec()));
    }

    fn standing(&self) -> Standing {
        self.line.standing()
    }
}

impl Drop for RedisRefusals {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// The address is a secret, so the error does not repeat it.
fn client(url: &str) -> Result<redis::Client, StoreError> {
    let wrong = "the address of Redis is wrong: write it like redis://127.0.0.1:6379";
    redis::Client::open(url).map_err(|_| StoreError::new(ErrorKind::Broken, wrong))
}
