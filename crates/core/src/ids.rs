//! Ids of events and notifications, and their generator.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Time;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Identifies one event.
    EventId
}
id! {
    /// Identifies one notification.
    NotificationId
}

/// Generates time-ordered UUIDs (version 7) from a seed that the driver passes in.
///
/// A hub takes the seed from the operating system once; a test passes a number and gets the same ids every time. Ids
/// are unique, not secret: a few of them reveal the generator's state, so nothing may rely on them being hard to guess.
/// Secrets come from [`Randomness`](crate::Randomness).
///
/// ```
/// use bellwire_core::{Ids, Time};
///
/// let mut ids = Ids::seeded(7);
/// let first = ids.event(Time::from_millis(1_000));
/// assert!(first < ids.event(Time::from_millis(1_000)));
/// assert_eq!(first, Ids::seeded(7).event(Time::from_millis(1_000)));
/// ```
#[derive(Clone, Debug)]
pub struct Ids {
    state: u64,
    /// The millisecond of the latest id, and the number of ids generated in that millisecond before it.
    at: u64,
    before: u16,
}

impl Ids {
    /// A generator whose ids depend on `seed` and the times alone.
    pub fn seeded(seed: u128) -> Self {
        Self { state: seed as u64 ^ (seed >> 64) as u64, at: 0, before: 0 }
    }

    /// A new id for an event at `now`.
    pub fn event(&mut self, now: Time) -> EventId {
        EventId(self.next(now))
    }

    /// A new id for a notification at `now`.
    pub fn notification(&mut self, now: Time) -> NotificationId {
        NotificationId(self.next(now))
    }

    /// Any other time-ordered id, such as that of a synthetic tool call.
    ///
    /// A counter orders the ids of one millisecond (the first 4096 of them).
    pub fn next(&mut self, now: Time) -> Uuid {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        self.before = if millis == self.at { (self.before + 1).min(0xfff) } else { 0 };
        self.at = millis;
        let mut rest = [0; 10];
        rest[..2].copy_from_slice(&self.before.to_be_bytes());
        rest[2..].copy_from_slice(&self.bits().to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(millis, &rest).into_uuid()
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }
}

/// The increment of splitmix64.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of splitmix64: small, well distributed, and the same on every platform.
pub(crate) fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
