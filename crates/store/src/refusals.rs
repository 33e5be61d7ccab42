//! Until when a person's hour is known to be full, so that a storm of calls is refused without the database.
//!
//! This is a memory and never a count: how much a person was told is the number of rows, and only the commit that would
//! add one decides. What is remembered here was decided there, after its commit, and stays true until its time: rows of
//! an hour grow old and nothing else takes them away, but for an erasure, which is told here in the same order. So whoever
//! forgets, fails or is slow costs time and decides nothing: nobody is refused wrongly, and nobody is told too much.

mod local;
mod redis;

pub use local::LocalRefusalCache;
pub use redis::RedisRefusalCache;

use std::future::Future;
use std::pin::Pin;

use bellwire_core::Time;

use crate::people::Quota;

/// What is remembered, as soon as that is known.
pub type RecallFuture<'a> = Pin<Box<dyn Future<Output = Option<Time>> + Send + 'a>>;

/// Remembers refusals of the hourly cap until their time.
///
/// Duties: what is forgotten is not recalled, however late an earlier `remember` is carried out; nothing waits for long;
/// nothing fails, because there is always the database to ask.
pub trait RefusalCache: Send + Sync {
    /// Until when this quota is used up, if that is remembered.
    fn until<'a>(&'a self, quota: &'a Quota) -> RecallFuture<'a>;
    /// Remembers that it is. Called by the writer after the commit: it must not wait for anything.
    fn remember(&self, quota: &Quota, until: Time);
    /// Forgets what was remembered, because the rows are gone. It must not wait either.
    fn forget(&self, quotas: &[Quota]);
    /// How it does, for those who watch.
    fn status(&self) -> RefusalCacheStatus;
}

/// How a memory does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalCacheStatus {
    /// How often a refusal was recalled.
    pub recalled: u64,
    /// How often it failed to answer, or not in time.
    pub failed: u64,
    /// Why nothing can be recalled at the moment.
    pub away: Option<String>,
}

/// Remembers nothing: the database answers every call.
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
