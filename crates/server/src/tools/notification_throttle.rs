//! Bounds how often rate-limited tool results contain notifications.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::Context;

/// The minimum interval per agent. Taking notifications is a commit, and an agent that keeps calling over its limit should
/// cost few; but a notification may be what stops that agent, so they are not withheld entirely.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// The map is cleared when it has this many agents.
const AGENTS_MAX: usize = 10_000;

/// User id, conversation id and agent.
type AgentKey = (Option<String>, Option<String>, Option<String>);

/// When each agent last got notifications with a refusal.
#[derive(Debug, Default)]
pub(crate) struct NotificationThrottle(Mutex<HashMap<AgentKey, Instant>>);

impl NotificationThrottle {
    /// Whether a refusal may contain notifications now. If so, records `now`.
    pub(super) fn permits(&self, context: &Context, now: Instant) -> bool {
        let agent = context.agent.as_ref().map(|agent| agent.as_str().to_owned());
        self.permits_agent((context.user_id.clone(), context.conversation_id.clone(), agent), now)
    }

    fn permits_agent(&self, agent: AgentKey, now: Instant) -> bool {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.get(&agent).is_some_and(|at| now.duration_since(*at) < INTERVAL_MIN) {
            return false;
        }
        if taken.len() >= AGENTS_MAX {
            taken.clear();
        }
        taken.insert(agent, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_gets_notifications_at_most_once_a_second() {
        let (throttle, start) = (NotificationThrottle::default(), Instant::now());
        let of = |agent: &str| (Some("ada".to_owned()), Some("chat".to_owned()), Some(agent.to_owned()));
        let at = |millis: u64| start + Duration::from_millis(millis);
        assert!(throttle.permits_agent(of("main"), at(0)));
        assert!(!throttle.permits_agent(of("main"), at(999)));
        assert!(throttle.permits_agent(of("scout"), at(999)));
        assert!(throttle.permits_agent(of("main"), at(1000)));
    }
}
