//! Timestamps in milliseconds since the Unix epoch.
//!
//! The core reads no clock: the driver passes [`Time`] values in. So a test can simulate a week in microseconds, and
//! equal inputs give equal results.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A timestamp: milliseconds since 1970-01-01T00:00:00Z, negative before.
///
/// ```
/// use bellwire_core::Time;
///
/// let noon: Time = "2026-01-03T12:00:00Z".parse().unwrap();
/// assert_eq!(noon.plus(1_500).to_string(), "2026-01-03T12:00:01.500Z");
/// assert_eq!(noon.plus(1_500).millis_since(noon), 1_500);
/// ```
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

impl Time {
    /// The epoch; the time of a mailbox that has handled no input.
    pub const ZERO: Self = Self(0);
    /// Later than every other time; the value of a timer that is not set.
    pub const NEVER: Self = Self(i64::MAX);

    /// The time this many milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The time `millis` later, saturating at [`Time::NEVER`].
    pub const fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add_unsigned(millis))
    }

    /// The moment `millis` earlier; stops at the beginning of time instead of wrapping. [`Time::NEVER`] stays what it is.
    pub const fn minus(self, millis: u64) -> Self {
        match self {
            Self::NEVER => Self::NEVER,
            Self(time) => Self(time.saturating_sub_unsigned(millis)),
        }
    }

    /// Milliseconds from `earlier` to this time; 0 if `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        let millis = self.0.saturating_sub(earlier.0);
        if millis < 0 { 0 } else { millis as u64 }
    }

    /// The time of day in UTC, such as `15:30:01`.
    pub fn clock(self) -> String {
        let second = self.0.div_euclid(1000).rem_euclid(86_400);
        format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
    }
}

/// RFC 3339 in UTC with `Z`; milliseconds are omitted if they are 0.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(stamp) if self.0.rem_euclid(1000) == 0 => write!(f, "{stamp:.0}"),
            Ok(stamp) => write!(f, "{stamp:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl std::str::FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let stamp: jiff::Timestamp = text.parse().map_err(|_| TimeError(text.chars().take(64).collect()))?;
        Ok(Self(stamp.as_millisecond()))
    }
}

/// The first 64 characters of a text that is not an RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeError(String);

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        if text.parse::<f64>().is_ok() {
            return write!(f, "{text} is a number; write the time in RFC 3339, such as 2026-01-03T15:30:00Z");
        }
        match text.parse::<jiff::civil::DateTime>() {
            Ok(_) => write!(f, "{text:?} has no UTC offset; append Z for UTC, or an offset such as +01:00"),
            Err(_) => write!(f, "{text:?} is not an RFC 3339 time such as 2026-01-03T15:30:00Z"),
        }
    }
}

impl std::error::Error for TimeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_number_and_a_missing_offset_are_named() {
        let problem = |text: &str| text.parse::<Time>().map_err(|error| error.to_string());
        let number = "write the time in RFC 3339, such as 2026-01-03T15:30:00Z";
        assert_eq!(problem("1767454200"), Err(format!("1767454200 is a number; {number}")));
        assert_eq!(problem("1767454200.5"), Err(format!("1767454200.5 is a number; {number}")));
        for local in ["2026-01-03T15:30:00", "2026-01-03 15:30", "2026-01-03"] {
            let expected = "has no UTC offset; append Z for UTC, or an offset such as +01:00";
            assert_eq!(problem(local), Err(format!("{local:?} {expected}")));
        }
        let expected = "\"soon\" is not an RFC 3339 time such as 2026-01-03T15:30:00Z";
        assert_eq!(problem("soon"), Err(expected.to_owned()));
        assert!(problem("2026-01-03T15:30:00+01:00").is_ok());
    }
}
