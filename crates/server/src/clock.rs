//! The one file that reads the time and the operating system's randomness.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bellwire_core::Time;
use bellwire_store::Clock;

/// The machine's time.
pub fn system() -> Clock {
    Arc::new(now)
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Random bits for ids, boundaries and secrets.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bits, or nothing can be safe");
    bytes
}
