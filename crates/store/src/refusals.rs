//! A cache of hourly limits that are reached, so that a storm of calls is refused without the database.
//!
//! The cache never counts: the inbox rows decide, in the commit that would add one. After a commit has refused a call, the
//! writer stores here until when the limit is reached. That stays true until its time, because the rows of an hour are only
//! removed by an erasure, which deletes the entry in the same order. So a cache that forgets, fails or is slow costs time but
//! cannot refuse a call wrongly or admit too many.

mod local;
mod redis;

pub use local::LocalRefusalCache;
pub use redis::RedisRefusalCache;

use std::future::Future;
use std::pin::Pin;

use bellwire_core::Time;

use crate::people::Quota;

/// The cached entry, if there is one.
pub type RecallFuture<'a> = Pin<Box<dyn Future<Output = Option<Time>> + Send + 'a>>;

/// A cache of refusals of the hourly limits.
///
/// Duties: after `forget`, an entry is not returned, even if an earlier `remember` is carried out later; no call blocks for
/// long; no call fails, because the database can always decide.
pub trait RefusalCache: Send + Sync {
    /// Until when this quota is used up, if it is cached.
    fn until<'a>(&'a self, quota: &'a Quota) -> RecallFuture<'a>;
    /// Caches that a quota is used up. Called by the writer after the commit; must not block.
    fn remember(&self, quota: &Quota, until: Time);
    /// Removes entries, because the person was erased. Must not block.
    fn forget(&self, quotas: &[Quota]);
    /// Its state and counters, for metrics and `/readyz`.
    fn status(&self) -> RefusalCacheStatus;
}

/// The state and counters of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalCacheStatus {
    /// How often an entry was found.
    pub recalled: u64,
    /// How often it failed or timed out.
    pub failed: u64,
    /// Why the cache is unavailable now, if it is.
    pub away: Option<String>,
}

/// A cache without entries: the database decides every call.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoRefusalCache;

impl RefusalCache for NoRefusalCache {
    fn until<'a>(&'a self, _: &'a Quota) -> RecallFuture<'a> {
        Box::pin(std::future::ready(None))
    }

    fn remember(&self, _: &Quota, _: Time) {}

    fn forget(&self, _: &[Quota]) {}

    fn status(&self) -> RefusalCacheStatus {
        RefusalCacheStatus::default()
    }
}
