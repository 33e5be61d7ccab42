//! What nobody reports and somebody should notice: a budget running out, an agent going in circles.
//!
//! The detectors are fed by the events of an agent's own loop and answer with events of their own, decided in the same
//! step. They speak as `budget_monitor` and `loop_detector`.

mod budget;
mod repetition;

pub(crate) use budget::Budgets;
pub(crate) use repetition::Repetition;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;
use crate::event::{Event, Secret};

/// Everything that watches one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detectors {
    budgets: Budgets,
    repetition: Repetition,
}

impl Detectors {
    /// Whether an event tells the detectors anything.
    pub(crate) fn hear(event: &Event) -> bool {
        let kind = event.kind().as_str();
        kind.starts_with("tool.call.") || kind.starts_with("agent.turn.")
    }

    /// Looks at an event and says what it shows, as events without id and time.
    pub(crate) fn observe(&mut self, event: &Event, now: Time, secret: &Secret) -> Vec<Event> {
        let mut shown = Vec::new();
        if let Some(usage) = event.payload().get("usage").and_then(Value::as_object) {
            self.budgets.observe(usage, &mut shown);
        }
        match event.kind().as_str() {
            "agent.turn.start" => self.repetition.next_turn(),
            // A call is one step of the loop however it is reported: `pending` announces it, the outcome repeats it.
            "tool.call.success" | "tool.call.failure" | "tool.call.timeout" => {
                shown.extend(self.repetition.observe(event.payload(), now, secret));
            }
            _ => {}
        }
        shown
    }

    /// A turn began without an event that says so.
    pub(crate) fn next_turn(&mut self) {
        self.repetition.next_turn();
    }

    /// Moves everything that was observed back by this many milliseconds.
    pub(crate) fn set_back(&mut self, millis: u64) {
        self.repetition.set_back(millis);
    }

    /// Whether they can have come to be as they are.
    pub(crate) fn is_sound(&self) -> bool {
        self.repetition.is_sound()
    }

    /// Forgets what is too old to be part of a loop; true if nothing is left to remember.
    pub(crate) fn rest(&mut self, now: Time) -> bool {
        self.repetition.rest(now);
        *self == Self::default()
    }
}
