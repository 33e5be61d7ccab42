//! Whether the agent is working, and whether it may be woken.

use serde::{Deserialize, Serialize};

use crate::{InjectionPoint, Time};

/// A working agent that has sent nothing for this long counts as idle.
pub(crate) const SILENCE_MS: u64 = 10 * 60 * 1000;
/// The most wakes within any 60 minutes.
pub(crate) const WAKES_MAX: usize = 6;
const HOUR_MS: u64 = 60 * 60 * 1000;

/// The agent's last activity, from its injection points and turn events, and its recent wakes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Presence {
    /// When the agent was last active; `None` while it is idle.
    working: Option<Time>,
    /// The wakes of the last hour, oldest first.
    wakes: Vec<Time>,
}

impl Presence {
    pub(crate) fn is_working(&self, now: Time) -> bool {
        self.working.is_some_and(|seen| now < seen.plus(SILENCE_MS))
    }

    pub(crate) fn mark_working(&mut self, now: Time) {
        self.working = Some(now);
    }

    pub(crate) fn mark_idle(&mut self) {
        self.working = None;
    }

    /// Records an injection point. The agent becomes idle at the end of a turn, unless the response keeps it going.
    pub(crate) fn reached(&mut self, point: InjectionPoint, kept_going: bool, now: Time) {
        match point {
            InjectionPoint::TurnEnd if !kept_going => self.mark_idle(),
            _ => self.mark_working(now),
        }
    }

    /// When the agent counts as idle without further activity.
    pub(crate) fn idle_at(&self) -> Time {
        self.working.map_or(Time::NEVER, |seen| seen.plus(SILENCE_MS))
    }

    /// Uses up one wake of the hourly limit, or returns the time at which the next one is available.
    pub(crate) fn spend_wake(&mut self, now: Time) -> Result<(), Time> {
        self.wakes.retain(|wake| wake.plus(HOUR_MS) > now);
        match self.wakes.first() {
            Some(oldest) if self.wakes.len() >= WAKES_MAX => Err(oldest.plus(HOUR_MS)),
            _ => {
                self.wakes.push(now);
                Ok(())
            }
        }
    }

    /// When the next wake is allowed by the hourly limit.
    pub(crate) fn next_wake(&self, now: Time) -> Time {
        let recent: Vec<_> = self.wakes.iter().filter(|wake| wake.plus(HOUR_MS) > now).collect();
        match recent.first() {
            Some(oldest) if recent.len() >= WAKES_MAX => oldest.plus(HOUR_MS),
            _ => now,
        }
    }

    /// Moves every stored time back by this many milliseconds.
    pub(crate) fn set_back(&mut self, millis: u64) {
        self.working.iter_mut().chain(&mut self.wakes).for_each(|time| *time = time.minus(millis));
    }

    pub(crate) fn compact(&mut self, now: Time) {
        self.wakes.retain(|wake| wake.plus(HOUR_MS) > now);
        self.wakes.shrink_to_fit();
    }
}
