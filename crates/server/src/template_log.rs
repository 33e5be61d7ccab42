//! Logs templates that fail while rendering, at a bounded rate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bellwire_core::Time;
use bellwire_store::FailedTemplate;

/// The least time between two lines about one subscriber.
const INTERVAL_MS: u64 = 60_000;
/// The most subscribers remembered. Beyond that all are forgotten, and each may log again.
const SUBSCRIBERS_MAX: usize = 2_000;

/// When each subscriber's failing template was last logged. A template that fails on every event must not flood the log.
#[derive(Default)]
pub(crate) struct TemplateLog {
    logged: Mutex<HashMap<Arc<str>, LastLine>>,
}

struct LastLine {
    at: Time,
    /// Failures since then.
    unlogged: u64,
}

impl TemplateLog {
    /// Logs the failure, unless its subscriber has a line of the last minute.
    pub(crate) fn report(&self, failed: &FailedTemplate, now: Time) {
        let Some(failures) = self.due(&failed.subscriber, now) else { return };
        let (subscriber, error) = (&*failed.subscriber, failed.error.as_str());
        tracing::warn!(subscriber, error, failures, "a subscriber's template failed; the built-in form was used");
    }

    /// The number of failures since the subscriber's last line, this one included; `None` if no line is due yet.
    fn due(&self, subscriber: &Arc<str>, now: Time) -> Option<u64> {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= SUBSCRIBERS_MAX && !logged.contains_key(subscriber) {
            logged.clear();
        }
        let last = logged.get_mut(subscriber);
        // A clock that was set back must not silence the log.
        let is_recent = |last: &LastLine| last.at <= now && now < last.at.plus(INTERVAL_MS);
        if let Some(last) = last.filter(|last| is_recent(last)) {
            last.unlogged += 1;
            return None;
        }
        let before = logged.insert(subscriber.clone(), LastLine { at: now, unlogged: 0 });
        Some(1 + before.map_or(0, |last| last.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_has_one_line_a_minute_with_the_number_of_failures_since() {
        let (log, start) = (TemplateLog::default(), Time::from_millis(1_000_000));
        let (ci, deploy): (Arc<str>, Arc<str>) = ("ci".into(), "deploy".into());
        assert_eq!(log.due(&ci, start), Some(1));
        for later in 0..59 {
            assert_eq!(log.due(&ci, start.plus(later * 1_000)), None);
        }
        assert_eq!(log.due(&deploy, start.plus(1)), Some(1), "another subscriber has its own line");
        assert_eq!(log.due(&ci, start.plus(60_000)), Some(60));
        assert_eq!(log.due(&ci, start), Some(1), "after the clock was set back");
    }

    #[test]
    fn the_subscribers_remembered_are_bounded() {
        let (log, now) = (TemplateLog::default(), Time::from_millis(1));
        for number in 0..2 * SUBSCRIBERS_MAX {
            assert_eq!(log.due(&format!("s{number}").into(), now), Some(1));
        }
        assert!(log.logged.lock().unwrap_or_else(PoisonError::into_inner).len() <= SUBSCRIBERS_MAX);
    }
}
