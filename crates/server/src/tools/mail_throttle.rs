//! How often the results of calls over a limit carry mail.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::Context;

/// An agent that storms against a limit hears its news this often. Taking mail is a commit, and a storm should cost none;
/// but the news may be just what ends the storm, so it does not have to wait for the limit.
const EVERY: Duration = Duration::from_secs(1);
/// More agents than this and the memory is started anew.
const AGENTS_MAX: usize = 10_000;

/// Whose mail: the person, the conversation, the agent.
type AgentKey = (Option<String>, Option<String>, Option<String>);

/// When each agent's mail was last taken with a refusal.
#[derive(Debug, Default)]
pub(crate) struct MailThrottle(Mutex<HashMap<AgentKey, Instant>>);

impl MailThrottle {
    /// Whether a refusal may carry mail again.
    pub(super) fn permits(&self, context: &Context, now: Instant) -> bool {
        let agent = context.agent.as_ref().map(|agent| agent.as_str().to_owned());
        self.permits_to((context.user_id.clone(), context.conversation_id.clone(), agent), now)
    }

    fn permits_to(&self, whose: AgentKey, now: Instant) -> bool {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.get(&whose).is_some_and(|at| now.duration_since(*at) < EVERY) {
            return false;
        }
        if taken.len() >= AGENTS_MAX {
            taken.clear();
        }
        taken.insert(whose, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_its_mail_once_a_second_and_another_is_not_held_back_by_it() {
        let (mail_throttle, start) = (MailThrottle::default(), Instant::now());
        let of = |agent: &str| (Some("ada".to_owned()), Some("chat".to_owned()), Some(agent.to_owned()));
        let at = |millis: u64| start + Duration::from_millis(millis);
        assert!(mail_throttle.permits_to(of("main"), at(0)));
        assert!(!mail_throttle.permits_to(of("main"), at(999)));
        assert!(mail_throttle.permits_to(of("scout"), at(999)));
        assert!(mail_throttle.permits_to(of("main"), at(1000)));
    }
}
