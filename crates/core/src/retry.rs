//! When to try a failed delivery again, and when to stop.
//!
//! The waits grow by a constant factor up to a cap, so that a short failure costs seconds and an outage of hours costs few
//! requests. It does not classify failures: callers must not retry a permanent one (a blocked bot, a mailbox that does not
//! exist), nor an unknown outcome on a channel that could deliver twice. [Quiet hours](crate::quiet) are not considered
//! either; holding a delivery back is not an attempt.
//!
//! **A retry is never earlier than the schedule and never earlier than the provider asked**, the latter up to
//! [`RETRY_AFTER_MAX_MS`]. Jitter only adds, so both are lower bounds. Time and random bits are arguments: the same
//! input gives the same answer, and no input makes it panic or overflow.
//!
//! ```
//! use bellwire_core::{Time, retry::{Next, RetryPolicy}};
//!
//! let policy = RetryPolicy::default();
//! let failed_at = Time::from_millis(0);
//! let random_bits = 0;
//!
//! // After the first attempt the schedule says five seconds, but the provider asks for a minute.
//! let next = policy.next(1, failed_at, Some(60_000), random_bits);
//! assert_eq!(next, Next::At(Time::from_millis(60_000)));
//!
//! // The tenth attempt was the last.
//! let next = policy.next(10, failed_at, None, random_bits);
//! assert_eq!(next, Next::GiveUp { attempts: 10 });
//! ```

use std::{error, fmt, ops::RangeInclusive};

use crate::Time;

const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 60 * 60 * SECOND_MS;

/// The longest Retry-After that is honoured: a day.
///
/// A provider that asks for more is asked again after a day, which costs it one request. Believing it would let one
/// mistaken header park a delivery for years.
pub const RETRY_AFTER_MAX_MS: u64 = 24 * HOUR_MS;

/// The most attempts a policy may allow.
pub const ATTEMPTS_LIMIT: u32 = 100;

/// The longest wait between two attempts a policy may allow: a week.
pub const CAP_LIMIT_MS: u64 = 7 * 24 * HOUR_MS;

/// The steepest growth from one wait to the next a policy may allow.
pub const FACTOR_LIMIT: u32 = 100;

/// The numbers of a retry schedule as written in a configuration; [`RetryPolicy::new`] checks them.
///
/// The default fits email through a relay and Telegram, ten attempts within about a day:
///
/// | after attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7, 8, 9 |
/// |---|---|---|---|---|---|---|---|
/// | wait | 5 s | 25 s | 2 min 5 s | 10 min 25 s | 52 min 5 s | 4 h 20 min 25 s | 6 h |
///
/// The first two waits get over a dropped connection while the news is fresh. The next three fit greylisting, which
/// wants minutes, and a provider's restart. The rest fit an outage that someone must come in to repair, and the cap of
/// six hours lets a recovery be noticed on the same day. The waits sum to 23 h 25 min, with all jitter 28 h: after a
/// day most notifications are history, and the inbox has kept them anyway. Mail servers try for four or five days, but
/// that is the relay's work once it has accepted the mail.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// How many attempts are made in all, the first included: 1 to [`ATTEMPTS_LIMIT`].
    pub attempts_max: u32,
    /// The wait after the first attempt: 1 to `cap_ms`.
    pub base_ms: u64,
    /// How many times longer each wait is than the one before: 1 (all alike) to [`FACTOR_LIMIT`].
    pub factor: u32,
    /// The longest scheduled wait, before jitter: 1 to [`CAP_LIMIT_MS`].
    pub cap_ms: u64,
    /// How much of a wait jitter may add to it: 0 to 100.
    ///
    /// Jitter keeps deliveries that failed together from returning together.
    pub jitter_percent: u32,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { attempts_max: 10, base_ms: 5 * SECOND_MS, factor: 5, cap_ms: 6 * HOUR_MS, jitter_percent: 20 }
    }
}

/// A retry schedule whose numbers have been checked.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryPolicy {
    settings: RetrySettings,
}

impl RetryPolicy {
    /// Accepts settings whose numbers are within their limits.
    ///
    /// # Errors
    ///
    /// The first of `attempts_max`, `cap_ms`, `base_ms`, `factor`, `jitter_percent` that is not.
    pub fn new(settings: RetrySettings) -> Result<Self, RetryError> {
        let RetrySettings { attempts_max, base_ms, factor, cap_ms, jitter_percent } = settings;
        within("attempts_max", attempts_max.into(), 1..=ATTEMPTS_LIMIT.into())?;
        within("cap_ms", cap_ms, 1..=CAP_LIMIT_MS)?;
        within("base_ms", base_ms, 1..=cap_ms)?;
        within("factor", factor.into(), 1..=FACTOR_LIMIT.into())?;
        within("jitter_percent", jitter_percent.into(), 0..=100)?;
        Ok(Self { settings })
    }

    /// Decides what follows a failure that may be retried.
    ///
    /// `attempts_made` counts the attempt that has just failed, so it is at least 1 (0 is read as 1). `retry_after_ms`
    /// is what the provider asked for, if it did. `jitter` is 64 random bits, spread evenly over the time that jitter
    /// may add: 0 adds nothing, `u64::MAX` adds all of it.
    pub fn next(&self, attempts_made: u32, failed_at: Time, retry_after_ms: Option<u64>, jitter: u64) -> Next {
        let attempts = attempts_made.max(1);
        if attempts >= self.settings.attempts_max {
            return Next::GiveUp { attempts };
        }
        let asked_ms = retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MAX_MS);
        let wait_ms = self.scheduled_ms(attempts).max(asked_ms);
        Next::At(failed_at.plus(wait_ms + self.jitter_ms(wait_ms, jitter)))
    }

    /// The wait after an attempt, counted from 1, without jitter.
    fn scheduled_ms(&self, attempt: u32) -> u64 {
        let growth = u64::from(self.settings.factor).saturating_pow(attempt - 1);
        self.settings.base_ms.saturating_mul(growth).min(self.settings.cap_ms)
    }

    fn jitter_ms(&self, wait_ms: u64, jitter: u64) -> u64 {
        // `wait_ms` is a week at most, so the product is small.
        let jitter_max_ms = wait_ms * u64::from(self.settings.jitter_percent) / 100;
        // The high half of the product maps the bits evenly onto 0 to jitter_max_ms, both included.
        ((u128::from(jitter) * u128::from(jitter_max_ms + 1)) >> u64::BITS) as u64
    }
}

/// What follows a failed attempt.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try again at this time, not before.
    At(Time),
    /// Stop: the policy's attempts are used up.
    GiveUp {
        /// How many were made.
        attempts: u32,
    },
}

/// A setting outside of its limits. Displays as a sentence: the field, the refused value, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryError {
    field: &'static str,
    value: u64,
    allowed: RangeInclusive<u64>,
}

impl RetryError {
    /// The field to correct, as [`RetrySettings`] spells it.
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, allowed } = self;
        write!(f, "{field}: {value} is out of range; allowed is {} to {}", allowed.start(), allowed.end())?;
        // The only limit that is itself a setting.
        if *field == "base_ms" { write!(f, " (cap_ms)") } else { Ok(()) }
    }
}

impl error::Error for RetryError {}

fn within(field: &'static str, value: u64, allowed: RangeInclusive<u64>) -> Result<(), RetryError> {
    if allowed.contains(&value) { Ok(()) } else { Err(RetryError { field, value, allowed }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAILED_AT: Time = Time::from_millis(1_767_225_600_000);

    /// The wait that `next` decides on; a policy that gives up fails the test.
    #[track_caller]
    fn wait_ms(policy: RetryPolicy, attempts: u32, retry_after_ms: Option<u64>, jitter: u64) -> u64 {
        match policy.next(attempts, FAILED_AT, retry_after_ms, jitter) {
            Next::At(time) => time.millis_since(FAILED_AT),
            Next::GiveUp { attempts } => panic!("gave up after {attempts} attempts"),
        }
    }

    #[test]
    fn the_default_schedule_is_the_documented_one() {
        let waits: Vec<u64> = (1..10).map(|attempts| wait_ms(RetryPolicy::default(), attempts, None, 0)).collect();
        let seconds = [5, 25, 125, 625, 3_125, 15_625, 21_600, 21_600, 21_600];
        assert_eq!(waits, seconds.map(|seconds| seconds * SECOND_MS));

        let sum_ms: u64 = waits.iter().sum();
        assert_eq!(sum_ms, 23 * HOUR_MS + (25 * 60 + 30) * SECOND_MS);
        assert_eq!(sum_ms * 120 / 100 / HOUR_MS, 28);
    }

    #[test]
    fn the_default_is_within_the_limits() {
        assert_eq!(RetryPolicy::new(RetrySettings::default()), Ok(RetryPolicy::default()));
    }

    #[test]
    fn no_retry_after_the_last_attempt() {
        let policy = RetryPolicy::default();
        assert!(matches!(policy.next(9, FAILED_AT, None, 0), Next::At(_)));
        assert_eq!(policy.next(10, FAILED_AT, None, 0), Next::GiveUp { attempts: 10 });
        assert_eq!(policy.next(11, FAILED_AT, Some(1), 0), Next::GiveUp { attempts: 11 });
    }

    #[test]
    fn one_attempt_means_no_retry() {
        let settings = RetrySettings { attempts_max: 1, ..RetrySettings::default() };
        let policy = RetryPolicy::new(settings).expect("one attempt is allowed");
        assert_eq!(policy.next(0, FAILED_AT, None, 0), Next::GiveUp { attempts: 1 });
    }

    #[test]
    fn retry_after_lengthens_a_wait_and_never_shortens_it() {
        let policy = RetryPolicy::default();
        assert_eq!(wait_ms(policy, 1, Some(30 * SECOND_MS), 0), 30 * SECOND_MS);
        assert_eq!(wait_ms(policy, 5, Some(30 * SECOND_MS), 0), 3_125 * SECOND_MS);
    }

    #[test]
    fn retry_after_is_limited_to_a_day() {
        assert_eq!(wait_ms(RetryPolicy::default(), 1, Some(u64::MAX), 0), RETRY_AFTER_MAX_MS);
    }

    #[test]
    fn jitter_adds_up_to_its_percentage() {
        let policy = RetryPolicy::default();
        assert_eq!(wait_ms(policy, 1, None, u64::MAX), 6 * SECOND_MS);
        assert_eq!(wait_ms(policy, 1, None, u64::MAX / 2), 5_500);
        assert_eq!(wait_ms(policy, 9, None, u64::MAX), 6 * HOUR_MS * 120 / 100);
    }

    #[test]
    fn errors_name_the_field_the_value_and_what_is_allowed() {
        let refusal = |change: fn(&mut RetrySettings)| {
            let mut settings = RetrySettings::default();
            change(&mut settings);
            RetryPolicy::new(settings).expect_err("the test writes a wrong setting").to_string()
        };
        assert_eq!(
            refusal(|settings| settings.attempts_max = 0),
            "attempts_max: 0 is out of range; allowed is 1 to 100"
        );
        assert_eq!(refusal(|settings| settings.cap_ms = 0), "cap_ms: 0 is out of range; allowed is 1 to 604800000");
        assert_eq!(
            refusal(|settings| settings.base_ms = 0),
            "base_ms: 0 is out of range; allowed is 1 to 21600000 (cap_ms)"
        );
        assert_eq!(refusal(|settings| settings.factor = 101), "factor: 101 is out of range; allowed is 1 to 100");
        assert_eq!(
            refusal(|settings| settings.jitter_percent = 101),
            "jitter_percent: 101 is out of range; allowed is 0 to 100"
        );
    }

    fn any_policy() -> impl Strategy<Value = RetryPolicy> {
        let cap_ms = prop_oneof![1..=CAP_LIMIT_MS, Just(1), Just(CAP_LIMIT_MS)];
        let bounded = (1..=ATTEMPTS_LIMIT, cap_ms, any::<u64>(), 1..=FACTOR_LIMIT, 0..=100u32);
        bounded.prop_map(|(attempts_max, cap_ms, base, factor, jitter_percent)| {
            let settings = RetrySettings { attempts_max, base_ms: 1 + base % cap_ms, factor, cap_ms, jitter_percent };
            RetryPolicy::new(settings).expect("drawn from within the limits")
        })
    }

    /// A policy and an attempt that is not its last.
    fn policy_and_attempt() -> impl Strategy<Value = (RetryPolicy, u32)> {
        let retries = any_policy().prop_filter("one attempt has no retry", |policy| policy.settings.attempts_max > 1);
        retries.prop_flat_map(|policy| (Just(policy), 1..policy.settings.attempts_max))
    }

    proptest! {
        #[test]
        fn a_wait_is_within_its_bounds(
            (policy, attempt) in policy_and_attempt(),
            retry_after_ms in any::<Option<u64>>(),
            jitter in any::<u64>(),
        ) {
            let RetrySettings { base_ms, cap_ms, jitter_percent, .. } = policy.settings;
            let asked_ms = retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MAX_MS);
            let wait = wait_ms(policy, attempt, retry_after_ms, jitter);
            prop_assert!(wait >= base_ms.max(asked_ms));
            prop_assert!(wait <= cap_ms.max(asked_ms) * (100 + u64::from(jitter_percent)) / 100);
        }

        #[test]
        fn later_or_larger_inputs_never_retry_sooner(
            (policy, attempt) in policy_and_attempt(),
            asked in (any::<u64>(), any::<u64>()),
            jitter in (any::<u64>(), any::<u64>()),
        ) {
            let (asked_low, asked_high) = (asked.0.min(asked.1), asked.0.max(asked.1));
            let (jitter_low, jitter_high) = (jitter.0.min(jitter.1), jitter.0.max(jitter.1));
            let least = wait_ms(policy, attempt, Some(asked_low), jitter_low);
            prop_assert!(wait_ms(policy, attempt, Some(asked_high), jitter_low) >= least);
            prop_assert!(wait_ms(policy, attempt, Some(asked_low), jitter_high) >= least);
            prop_assert!(least >= wait_ms(policy, 1, Some(asked_low), jitter_low));
            prop_assert!(least >= wait_ms(policy, attempt, None, jitter_low));
        }

        #[test]
        fn each_wait_grows_by_the_factor_until_the_cap((policy, attempt) in policy_and_attempt()) {
            let RetrySettings { factor, cap_ms, .. } = policy.settings;
            let grown = policy.scheduled_ms(attempt).saturating_mul(factor.into());
            prop_assert_eq!(policy.scheduled_ms(attempt + 1), grown.min(cap_ms));
        }

        #[test]
        fn every_policy_ends((policy, extra) in (any_policy(), any::<u32>())) {
            let attempts = policy.settings.attempts_max.saturating_add(extra);
            let next = policy.next(attempts, FAILED_AT, Some(1), 1);
            prop_assert_eq!(next, Next::GiveUp { attempts });
        }

        #[test]
        fn no_input_panics_and_equal_inputs_give_equal_results(
            policy in any_policy(),
            attempts in prop_oneof![any::<u32>(), 0..=ATTEMPTS_LIMIT],
            failed_at in prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX)],
            retry_after_ms in any::<Option<u64>>(),
            jitter in prop_oneof![any::<u64>(), Just(u64::MAX)],
        ) {
            let failed_at = Time::from_millis(failed_at);
            let next = policy.next(attempts, failed_at, retry_after_ms, jitter);
            prop_assert_eq!(next, policy.next(attempts, failed_at, retry_after_ms, jitter));
            if let Next::At(time) = next {
                prop_assert!(time >= failed_at);
            }
        }

        #[test]
        fn settings_are_accepted_exactly_within_their_limits(
            attempts_max in prop_oneof![any::<u32>(), 0..=101u32],
            base_ms in prop_oneof![any::<u64>(), 0..=10u64],
            factor in prop_oneof![any::<u32>(), 0..=101u32],
            cap_ms in prop_oneof![any::<u64>(), 0..=10u64],
            jitter_percent in prop_oneof![any::<u32>(), 0..=101u32],
        ) {
            let settings = RetrySettings { attempts_max, base_ms, factor, cap_ms, jitter_percent };
            let valid = (1..=ATTEMPTS_LIMIT).contains(&attempts_max)
                && (1..=CAP_LIMIT_MS).contains(&cap_ms)
                && (1..=cap_ms).contains(&base_ms)
                && (1..=FACTOR_LIMIT).contains(&factor)
                && jitter_percent <= 100;
            prop_assert_eq!(RetryPolicy::new(settings).is_ok(), valid);
        }
    }
}
