//! Detectors: budgets that run low and agents that repeat the same calls.
//!
//! The detectors observe the `tool.call.*` and `agent.turn.*` events of one agent. The events they make have the sources
//! `budget_monitor` and `loop_detector` and are decided in the same step as the observed event.

mod budget;
mod repetition;

pub(crate) use budget::Budgets;
pub(crate) use repetition::Repetition;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;
use crate::event::{Event, HashKey};

/// An event made by a detector, without id and timestamp.
#[derive(Debug)]
pub(crate) enum Detection {
    /// A threshold was crossed or a loop found: published like any event.
    News(Event),
    /// A newer measurement of a budget: only replaces a warning that still waits.
    Measurement(Event),
}

/// The detectors of one agent; part of its mailbox and saved with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detectors {
    budgets: Budgets,
    repetition: Repetition,
}

impl Detectors {
    /// Whether the detectors use events of this type.
    pub(crate) fn is_relevant(event: &Event) -> bool {
        let kind = event.kind().as_str();
        kind.starts_with("tool.call.") || kind.starts_with("agent.turn.")
    }

    /// Observes an event. Measurements are returned only if `measure` is set: the caller has nothing to replace
    /// otherwise.
    pub(crate) fn observe(&mut self, event: &Event, measure: bool, now: Time, secret: &HashKey) -> Vec<Detection> {
        let mut shown = Vec::new();
        if let Some(usage) = event.payload().get("usage").and_then(Value::as_object) {
            self.budgets.observe(usage, measure, &mut shown);
        }
        match event.kind().as_str() {
            "agent.turn.start" => self.repetition.next_turn(),
            // Only outcomes count: `tool.call.pending` announces the same call.
            "tool.call.success" | "tool.call.failure" | "tool.call.timeout" => {
                shown.extend(self.repetition.observe(event.payload(), now, secret).map(Detection::News));
            }
            _ => {}
        }
        shown
    }

    /// A turn began at an injection point, without an `agent.turn.start` event.
    pub(crate) fn next_turn(&mut self) {
        self.repetition.next_turn();
    }

    /// Moves everything that was observed back by this many milliseconds.
    pub(crate) fn set_back(&mut self, millis: u64) {
        self.repetition.set_back(millis);
    }

    /// Whether the loaded state satisfies the detectors' invariants. Damaged bytes may not.
    pub(crate) fn is_valid(&self) -> bool {
        self.repetition.is_valid()
    }

    /// Drops calls too old to be part of a loop; returns whether the state is back to its default.
    pub(crate) fn compact(&mut self, now: Time) -> bool {
        self.repetition.compact(now);
        *self == Self::default()
    }
}
