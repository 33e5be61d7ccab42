//! Names for events and notifications, and the minter that makes them without any source of randomness of its own.

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
    /// The name of one event.
    EventId
}
id! {
    /// The name of one notification.
    NotificationId
}

/// Mints time-ordered UUIDs (version 7) from a seed the driver brings.
///
/// A hub seeds it from the operating system once; a test seeds it with a number and gets the same names every time.
/// The names are unique, not secret: the generator's state follows from a few of them, so nothing may rely on their being
/// hard to guess, and no secret comes from here. Secrets come from [`Randomness`](crate::Randomness).
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
    /// The millisecond of the latest name, and how many that millisecond had before it.
    at: u64,
    before: u16,
}

impl Ids {
    /// A minter whose names follow from `seed` alone.
    pub fn seeded(seed: u128) -> Self {
        Self { state: seed as u64 ^ (seed >> 64) as u64, at: 0, before: 0 }
    }

    /// A name for an event that happened at `now`.
    pub fn event(&mut self, now: Time) -> EventId {
        EventId(self.next(now))
    }

    /// A name for a notification decided at `now`.
    pub fn notification(&mut self, now: Time) -> NotificationId {
        NotificationId(self.next(now))
    }

    /// Any other time-ordered name, such as that of a synthetic tool call.
    ///
    /// Names of one millisecond are counted through (the first 4096 of them), so that their order is that of their making.
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

/// How far the state of a generator moves with each number.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number a state gives: splitmix64, which is small, well spread, and the same on every platform.
pub(crate) fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
