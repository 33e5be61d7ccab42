use std::collections::BTreeMap;

use bellwire_core::person::ChannelName;

use super::{Delivery, DeliveryState};

/// The number of waiting deliveries by channel, or the change of these numbers by one commit.
///
/// The writer counts them, so that no report of their number reads rows. Which rows a commit changes is known to the
/// backend only, so each commit returns its change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutboxCounts(BTreeMap<ChannelName, i64>);

impl OutboxCounts {
    /// Counts a row before a commit replaces it.
    pub(crate) fn replace(&mut self, before: &Delivery) {
        self.add(&before.channel, -is_waiting(before));
    }

    /// Counts a row that a commit writes.
    pub(crate) fn write(&mut self, row: &Delivery) {
        self.add(&row.channel, is_waiting(row));
    }

    /// Adds to the number of one channel.
    pub(crate) fn add(&mut self, channel: &ChannelName, count: i64) {
        if count != 0 {
            *self.0.entry(channel.clone()).or_default() += count;
        }
    }

    /// Adds the change of a commit.
    pub(crate) fn apply(&mut self, change: &Self) {
        change.0.iter().for_each(|(channel, count)| self.add(channel, *count));
    }

    /// The channels with waiting deliveries and their numbers.
    pub(crate) fn waiting(&self) -> Vec<(ChannelName, usize)> {
        let count = |(channel, count): (&ChannelName, &i64)| Some((channel.clone(), usize::try_from(*count).ok()?));
        self.0.iter().filter(|(_, count)| **count > 0).filter_map(count).collect()
    }
}

fn is_waiting(row: &Delivery) -> i64 {
    i64::from(row.state == DeliveryState::Waiting)
}
