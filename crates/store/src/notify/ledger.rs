use std::collections::BTreeMap;

use bellwire_core::Time;
use bellwire_core::notify::{ErrorClass, Intent};
use uuid::Uuid;

use crate::people::words;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A decision to record. It contains no text and no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerDraft {
    /// The authenticated origin.
    pub origin: String,
    /// The recipient, else the person the agent works for.
    pub user_id: Option<String>,
    /// The channel; empty if the call named none that exists.
    pub channel: String,
    /// The intent; none if the call named none that exists.
    pub intent: Option<Intent>,
    /// The decision.
    pub decision: LedgerDecision,
    /// The class of the error.
    pub class: Option<ErrorClass>,
    /// The reason, in a few words.
    pub reason: Option<String>,
    /// The item in the recipient's inbox.
    pub notification_id: Option<Uuid>,
    /// The id of the request.
    pub request_id: Option<Uuid>,
}

impl LedgerDraft {
    /// In characters: how much of an error the ledger keeps.
    const REASON_MAX: usize = 200;

    /// A reason, cut to the length that the ledger keeps.
    pub(crate) fn short(reason: &str) -> String {
        reason.chars().take(Self::REASON_MAX).collect()
    }
}

/// What was decided on a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerDecision {
    /// The provider accepted it.
    Delivered,
    /// Quiet hours hold it.
    Deferred,
    /// The hub refused it: the call was wrong or not allowed, or a limit was reached.
    Refused,
    /// The attempt failed.
    Failed,
    /// The attempt was made and its outcome is not known.
    Unknown,
}

words! {
    LedgerDecision {
        Delivered = "delivered",
        Deferred = "deferred",
        Refused = "refused",
        Failed = "failed",
        Unknown = "unknown",
    }
}

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its id, time-ordered.
    pub id: Uuid,
    /// When it was decided.
    pub at: Time,
    /// The decision.
    pub decided: LedgerDraft,
}

/// Which decisions to list.
#[derive(Clone, Debug, Default)]
pub struct LedgerQuery {
    /// Of this origin only.
    pub origin: Option<String>,
    /// About this person only.
    pub user_id: Option<String>,
    /// On this channel only.
    pub channel: Option<String>,
    /// Of this kind only.
    pub decision: Option<LedgerDecision>,
    /// Not older than this.
    pub since: Option<Time>,
    /// Older than this entry.
    pub before: Option<Uuid>,
    /// The page size.
    pub limit: usize,
}

impl LedgerQuery {
    /// How long entries and sums are kept.
    pub(crate) const KEPT_MS: u64 = 90 * 24 * 60 * 60 * 1000;
    /// How many rows one page reads.
    pub(crate) const SCANNED_MAX: usize = 5_000;

    /// Whether an entry belongs to the list. The order and the page are checked elsewhere.
    pub(crate) fn matches(&self, entry: &LedgerEntry) -> bool {
        let LedgerDraft { origin, user_id, channel, decision, .. } = &entry.decided;
        self.origin.as_ref().is_none_or(|wanted| wanted == origin)
            && self.user_id.as_ref().is_none_or(|wanted| Some(wanted) == user_id.as_ref())
            && self.channel.as_ref().is_none_or(|wanted| wanted == channel)
            && self.decision.is_none_or(|wanted| wanted == *decision)
    }

    /// The page of the rows that were read, newest first, and the cursor of the next page.
    pub(crate) fn page(&self, rows: Vec<LedgerEntry>) -> (Vec<LedgerEntry>, Option<Uuid>) {
        let last_read = rows.last().map(|entry| entry.id).filter(|_| rows.len() == Self::SCANNED_MAX);
        let mut wanted: Vec<LedgerEntry> = rows.into_iter().filter(|entry| self.matches(entry)).collect();
        if wanted.len() <= self.limit {
            return (wanted, last_read);
        }
        wanted.truncate(self.limit);
        let next = wanted.last().map(|entry| entry.id);
        (wanted, next)
    }
}

/// The number of decisions of one origin, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginSums {
    /// The origin.
    pub origin: String,
    /// The counts; kinds without any are missing.
    pub counts: BTreeMap<LedgerDecision, u64>,
}

impl OriginSums {
    /// The span over which origins are judged.
    pub const RECENT_MS: u64 = 7 * 24 * 60 * 60 * 1000;
    /// With fewer decisions than this, nothing is concluded.
    const FLAGGED_FROM: u64 = 3;

    /// The number of decisions of this kind.
    pub fn count(&self, decision: LedgerDecision) -> u64 {
        self.counts.get(&decision).copied().unwrap_or(0)
    }

    /// Whether the origin has tried several times and nothing was ever delivered. Deferred requests count as neither: what
    /// becomes of each is a decision of its own.
    pub fn never_gets_through(&self) -> bool {
        self.count(LedgerDecision::Delivered) == 0 && self.undelivered() >= Self::FLAGGED_FROM
    }

    /// How many requests were decided and not delivered.
    pub fn undelivered(&self) -> u64 {
        use LedgerDecision::{Failed, Refused, Unknown};
        [Refused, Failed, Unknown].into_iter().map(|decision| self.count(decision)).sum()
    }
}

/// A row of the ledger, and whether the row itself is written. Beyond a number of rows per origin and day, decisions are
/// only counted.
#[derive(Clone, Debug)]
pub(crate) struct LedgerRow {
    pub(crate) entry: LedgerEntry,
    pub(crate) is_listed: bool,
}

/// The day of a time, counted from 1970 in UTC.
pub(crate) fn day_of(time: Time) -> i64 {
    time.as_millis().div_euclid(DAY_MS)
}

/// Sums counts per origin, in the order of their names.
pub(crate) fn sum_up(counts: impl IntoIterator<Item = (String, LedgerDecision, u64)>) -> Vec<OriginSums> {
    let mut sums = BTreeMap::<String, BTreeMap<LedgerDecision, u64>>::new();
    for (origin, decision, count) in counts {
        *sums.entry(origin).or_default().entry(decision).or_default() += count;
    }
    sums.into_iter().map(|(origin, counts)| OriginSums { origin, counts }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use LedgerDecision::{Deferred, Delivered, Failed, Refused};

    fn sums(counts: &[(LedgerDecision, u64)]) -> OriginSums {
        OriginSums { origin: "health".into(), counts: counts.iter().copied().collect() }
    }

    #[test]
    fn an_origin_is_flagged_if_it_tried_and_nothing_was_delivered() {
        assert!(sums(&[(Refused, 120)]).never_gets_through());
        assert!(!sums(&[(Deferred, 164)]).never_gets_through(), "they wait for the end of quiet hours");
        assert!(sums(&[(Deferred, 164), (Failed, 3)]).never_gets_through(), "an outage that looks like quiet hours");
        assert!(!sums(&[(Deferred, 164), (Failed, 2)]).never_gets_through());
        assert!(!sums(&[(Refused, 120), (Delivered, 1)]).never_gets_through());
        assert!(!sums(&[(Refused, 2)]).never_gets_through());
        assert!(!sums(&[]).never_gets_through());
    }
}
