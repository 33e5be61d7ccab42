//! What an error of a call means for a delivery and for `notify`.

use std::time::Duration;

use bellwire_core::person::without_addresses;
use bellwire_store::AttemptOutcome;

use super::api::{ApiRefusal, CallError};
use crate::channels::{NotifyOutcome, Obstacle};

/// Errors of Telegram that say that the chat cannot be reached, now or later.
const UNREACHABLE: [&str; 4] = ["chat not found", "user is deactivated", "PEER_ID_INVALID", "bot was blocked"];

/// What can be done after an error.
enum Meaning {
    /// It was refused, and would be refused again.
    Refused,
    /// The chat does not exist, or its person has blocked the bot.
    Unreachable,
    /// Nothing was sent, for now.
    Later(Obstacle, Option<Duration>),
    /// It may have arrived.
    Unknown,
}

fn meaning(error: &CallError) -> Meaning {
    match error {
        CallError::NotSent { is_timeout: true, .. } => Meaning::Later(Obstacle::TimedOut, None),
        CallError::NotSent { .. } | CallError::Misconfigured { .. } => Meaning::Later(Obstacle::Unavailable, None),
        CallError::Unknown { .. } => Meaning::Unknown,
        CallError::Refused(ApiRefusal { code, description, retry_after }) => match code {
            403 => Meaning::Unreachable,
            400 if UNREACHABLE.iter().any(|words| description.contains(words)) => Meaning::Unreachable,
            429 => Meaning::Later(Obstacle::Unavailable, *retry_after),
            // Telegram says that it failed, and so that nothing was sent.
            500.. => Meaning::Later(Obstacle::Unavailable, *retry_after),
            _ => Meaning::Refused,
        },
    }
}

/// Whether it is proven that the call was not carried out, and it may succeed later.
pub(super) fn can_be_repeated(error: &CallError) -> bool {
    matches!(meaning(error), Meaning::Later(..))
}

/// The outcome as the outbox records it. `target` must not be shown to agents.
pub(super) fn attempt_outcome(error: &CallError, target: &str) -> AttemptOutcome {
    let reason = without_addresses(&error.to_string(), target);
    match meaning(error) {
        Meaning::Refused => AttemptOutcome::Refused { reason },
        Meaning::Unreachable => AttemptOutcome::Unreachable { reason },
        Meaning::Later(_, retry_after) => AttemptOutcome::TryAgain { reason, retry_after_ms: retry_after.map(millis) },
        Meaning::Unknown => AttemptOutcome::Unknown { reason },
    }
}

/// The outcome as the caller of `notify` reads it.
pub(super) fn notify_outcome(error: &CallError, target: &str) -> NotifyOutcome {
    let reason = without_addresses(&error.to_string(), target);
    match meaning(error) {
        Meaning::Refused => NotifyOutcome::Refused { reason },
        Meaning::Unreachable => NotifyOutcome::Unreachable { reason },
        Meaning::Later(obstacle, retry_after) => NotifyOutcome::TryAgain { obstacle, reason, retry_after },
        Meaning::Unknown => NotifyOutcome::Unknown { reason },
    }
}

pub(super) fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, description: &str) -> AttemptOutcome {
        let retry_after = (code == 429).then_some(Duration::from_secs(7));
        attempt_outcome(
            &CallError::Refused(ApiRefusal { code, description: description.to_owned(), retry_after }),
            "1815",
        )
    }

    #[test]
    fn each_error_means_what_can_be_proven() {
        assert!(matches!(refused(403, "Forbidden: bot was blocked by the user"), AttemptOutcome::Unreachable { .. }));
        assert!(matches!(refused(400, "Bad Request: chat not found"), AttemptOutcome::Unreachable { .. }));
        assert!(matches!(refused(400, "Bad Request: message is too long"), AttemptOutcome::Refused { .. }));
        assert!(matches!(refused(429, "slow"), AttemptOutcome::TryAgain { retry_after_ms: Some(7000), .. }));
        assert!(matches!(refused(500, "Internal Server Error"), AttemptOutcome::TryAgain { .. }));
        let unknown = CallError::Unknown { reason: "lost".to_owned() };
        assert!(matches!(attempt_outcome(&unknown, "1"), AttemptOutcome::Unknown { .. }));
        assert!(matches!(notify_outcome(&unknown, "1"), NotifyOutcome::Unknown { .. }));
        let late = CallError::NotSent { reason: "late".to_owned(), is_timeout: true };
        let obstacle = Obstacle::TimedOut;
        assert!(
            matches!(notify_outcome(&late, "1"), NotifyOutcome::TryAgain { obstacle: found, .. } if found == obstacle)
        );
    }

    #[test]
    fn no_outcome_shows_the_chat_to_agents() {
        let said = format!("{:?}", refused(400, "Bad Request: 1815 is no chat (1815)"));
        assert!(!said.contains("1815"), "{said}");
    }
}
