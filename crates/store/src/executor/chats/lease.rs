//! Stores updates, and decides which process may poll for them.

use bellwire_core::person::ChannelName;

use crate::chats::{ChannelUpdate, LeaseRow, UpdateRow};
use crate::error::StoreError;
use crate::executor::{Executor, RowSource};

/// The longest lease.
const LEASE_MAX_MS: u64 = 10 * 60 * 1000;

impl Executor {
    /// Stores updates that are not stored yet. False = another process has the lease.
    pub(crate) async fn keep_updates(
        &mut self,
        channel: ChannelName,
        lease: Option<(String, i64)>,
        updates: Vec<ChannelUpdate>,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        if let Some((name, fence)) = lease
            && self.lease(&name, source).await?.is_none_or(|row| row.fence != fence)
        {
            return Ok(false);
        }
        let received_at = self.context.now;
        for ChannelUpdate { id, body } in updates {
            let new = UpdateRow::New { body, received_at };
            self.changes.people.chats.updates.entry((channel.clone(), id)).or_insert(new);
        }
        Ok(true)
    }

    /// The updates that are not handled, as they are committed.
    pub(crate) async fn waiting_updates(
        &mut self,
        channel: ChannelName,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<Vec<ChannelUpdate>, StoreError> {
        source.waiting_updates(&channel, limit).await
    }

    /// Takes or prolongs a lease. The fence changes with the holder.
    pub(crate) async fn take_lease(
        &mut self,
        name: String,
        holder: String,
        ttl_ms: u64,
        source: &mut impl RowSource,
    ) -> Result<Option<i64>, StoreError> {
        let now = self.context.now;
        let known = self.lease(&name, source).await?;
        let fence = match known {
            Some(row) if row.holder == holder => row.fence,
            // A lease that ends much later was taken before the clock was set back.
            Some(row) if row.until > now && row.until <= now.plus(LEASE_MAX_MS) => return Ok(None),
            known => known.map_or(1, |row| row.fence + 1),
        };
        let row = LeaseRow { holder, until: now.plus(ttl_ms.min(LEASE_MAX_MS)), fence };
        self.changes.people.chats.leases.insert(name, row);
        Ok(Some(fence))
    }

    /// Ends a lease, so that another process need not wait for its end.
    pub(crate) async fn release_lease(
        &mut self,
        name: String,
        holder: String,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        if let Some(row) = self.lease(&name, source).await?.filter(|row| row.holder == holder) {
            let row = LeaseRow { until: self.context.now, ..row };
            self.changes.people.chats.leases.insert(name, row);
        }
        Ok(())
    }

    async fn lease(&self, name: &str, source: &mut impl RowSource) -> Result<Option<LeaseRow>, StoreError> {
        match self.changes.people.chats.leases.get(name) {
            Some(row) => Ok(Some(row.clone())),
            None => source.lease(name).await,
        }
    }
}
