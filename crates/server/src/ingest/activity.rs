//! What came from a source since the hub started, for `doctor` and the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bellwire_core::Time;

/// The outcome of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// Its events are stored.
    Published,
    /// It is authentic and no event.
    Skipped,
    /// It is not authentic.
    Refused,
    /// It is authentic, and its body cannot be understood.
    Invalid,
    /// It came too fast.
    Limited,
}

impl CallOutcome {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Skipped => "skipped",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::Limited => "limited",
        }
    }

    /// Whether the call was carried out.
    pub(crate) const fn is_accepted(self) -> bool {
        matches!(self, Self::Published | Self::Skipped)
    }
}

/// What came from one source.
#[derive(Debug, Default)]
pub(crate) struct Activity(Mutex<ActivityState>);

#[derive(Clone, Debug, Default)]
pub(crate) struct ActivityState {
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) last_accepted_at: Option<Time>,
    /// When and why a call was last refused. The reason contains nothing that was sent.
    pub(crate) last_refusal: Option<(Time, String)>,
    logged_at: Option<Instant>,
}

/// How often refusals of one source are logged.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

impl Activity {
    /// Notes a call that was carried out.
    pub(crate) fn accepted(&self, now: Time) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.accepted += 1;
        state.last_accepted_at = Some(now);
    }

    /// Notes a call that was not carried out. Returns whether to log it.
    pub(crate) fn refused(&self, reason: String, now: Time, monotonic_now: Instant) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused += 1;
        state.last_refusal = Some((now, reason));
        let is_due = state.logged_at.is_none_or(|at| monotonic_now.duration_since(at) >= LOG_INTERVAL);
        if is_due {
            state.logged_at = Some(monotonic_now);
        }
        is_due
    }

    pub(crate) fn state(&self) -> ActivityState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_and_logged_once_a_minute() {
        let (activity, start) = (Activity::default(), Instant::now());
        let refuse = |seconds| activity.refused("wrong".into(), Time::ZERO, start + Duration::from_secs(seconds));
        assert_eq!([0, 1, 59, 60, 61].map(refuse), [true, false, false, true, false]);
        activity.accepted(Time::from_millis(7));
        let state = activity.state();
        assert_eq!((state.refused, state.accepted, state.last_accepted_at), (5, 1, Some(Time::from_millis(7))));
    }
}
