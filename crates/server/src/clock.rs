//! The only file of the server that reads the clock and the operating system's randomness.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bellwire_core::Time;
use bellwire_store::Clock;
use uuid::Uuid;

/// The machine's wall clock and monotonic clock, as a store reads them.
pub fn system() -> Clock {
    let start = Instant::now();
    Clock::new(now, move || start.elapsed())
}

/// The wall clock, for comparison with times set by people, such as the expiry of a token. For stored times use the
/// store's time instead.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A new time-ordered id (UUID version 7).
pub(crate) fn new_id() -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(now().as_millis().unsigned_abs(), &random()).into_uuid()
}

/// Random bits for ids, boundaries and secrets.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system provides random bits; without them no secret is safe");
    bytes
}
