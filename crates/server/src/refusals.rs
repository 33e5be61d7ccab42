//! Opens the [`RefusalCache`]: in Redis if it is configured, else in the process.
//!
//! Never both: an erasure on another hub of the same database would not reach a cache in this process.

use std::sync::Arc;

use bellwire_store::{LocalRefusalCache, RedisRefusalCache, RefusalCache};
use tokio::sync::watch;

use crate::clock;
use crate::config::RedisConfig;

/// The configured cache. Returns at once; Redis is used as soon as it is reachable.
pub(crate) fn open(redis: &RedisConfig, stopping: watch::Receiver<bool>) -> Result<Arc<dyn RefusalCache>, String> {
    let Some(address) = redis.address()? else { return Ok(Arc::new(LocalRefusalCache::default())) };
    // A new scope per start: entries of an earlier process may concern a person who was erased while Redis was unreachable.
    let scope = format!("{:032x}", u128::from_le_bytes(clock::random()));
    let refusals = RedisRefusalCache::open(address.reveal(), &scope, redis.patience());
    let refusals = refusals.map_err(|error| format!("redis.url: {error}"))?;
    tokio::spawn(log_changes(refusals.away(), stopping));
    Ok(Arc::new(refusals))
}

/// Logs when Redis becomes unreachable and when it is back.
async fn log_changes(mut away: watch::Receiver<Option<String>>, mut stopping: watch::Receiver<bool>) {
    let mut known = None;
    loop {
        tokio::select! {
            changed = away.changed() => if changed.is_err() { return },
            _ = stopping.changed() => return,
        }
        let why = away.borrow_and_update().clone();
        match (&why, known.as_ref()) {
            (Some(why), Some(true) | None) => {
                tracing::warn!(why, "Redis is away: the database alone refuses, until it is back");
            }
            (None, _) => tracing::info!("Redis remembers refusals of the hourly limits"),
            (Some(_), Some(false)) => continue,
        }
        known = Some(why.is_none());
    }
}
