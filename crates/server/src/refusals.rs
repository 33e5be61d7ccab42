//! Where refusals of the hourly limits are remembered: in Redis where one is configured, else in the process.
//!
//! Exactly one of them: what one process remembers, an erasure on another hub of the same database would not reach.

use std::sync::Arc;

use bellwire_store::{LocalRefusalCache, RedisRefusalCache, RefusalCache};
use tokio::sync::watch;

use crate::clock;
use crate::config::RedisConfig;

/// The memory that the settings ask for. It is ready at once; a Redis that is away is used when it is there.
pub(crate) fn open(redis: &RedisConfig, stopping: watch::Receiver<bool>) -> Result<Arc<dyn RefusalCache>, String> {
    let Some(address) = redis.address()? else { return Ok(Arc::new(LocalRefusalCache::default())) };
    // A name of this very start: what an earlier one remembered may be of a person who was erased while Redis was away.
    let scope = format!("{:032x}", u128::from_le_bytes(clock::random()));
    let refusals = RedisRefusalCache::open(address.reveal(), &scope, redis.patience());
    let refusals = refusals.map_err(|error| format!("redis.url: {error}"))?;
    tokio::spawn(tell(refusals.away(), stopping));
    Ok(Arc::new(refusals))
}

/// Writes into the log when Redis goes and when it is back.
async fn tell(mut away: watch::Receiver<Option<String>>, mut stopping: watch::Receiver<bool>) {
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
