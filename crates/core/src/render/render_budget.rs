use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::State;
use minijinja::value::Object;
use minijinja::{Error, ErrorKind};

use super::template::TemplateEvent;
use crate::event::Payload;

/// How much data one rendering may read.
///
/// Fuel counts the engine's instructions, but a single instruction can compare two payloads or join a hundred texts.
/// This budget counts that work, in units of about 64 bytes read. Once it is spent, events yield no more data and the
/// rendering fails.
#[derive(Debug)]
pub(super) struct RenderBudget {
    left: AtomicUsize,
    /// The most characters of one text that the template sees.
    pub(super) text_max: usize,
}

/// Enough for a hundred events with several long texts each; spending all of it takes some tens of milliseconds.
const LOOKS_MAX: usize = 50_000;
const BYTES_PER_LOOK: usize = 64;
/// The most characters of one text that a template sees. A block within the default limits holds no more.
const TEXT_MAX: usize = 4096;

impl RenderBudget {
    /// The context variable in which filters find the budget. No template can name it.
    pub(super) const NAME: &'static str = "%effort";

    /// The budget for rendering these events.
    pub(super) fn new(events: &[TemplateEvent]) -> Arc<Self> {
        let whole = !events.is_empty() && events.iter().all(|one| one.event.is_shown_in_full());
        // No text in a payload is longer than the payload.
        let text_max = if whole { Payload::BYTES_MAX } else { TEXT_MAX };
        Arc::new(Self { left: AtomicUsize::new(LOOKS_MAX), text_max })
    }

    /// The budget of the current rendering.
    pub(super) fn of(state: &State<'_, '_>) -> Arc<Self> {
        let found = state.lookup(Self::NAME).and_then(|value| value.downcast_object());
        found.expect("every rendering has a budget")
    }

    /// Spends some units; false once none are left.
    pub(super) fn spend(&self, looks: usize) -> bool {
        // Only one thread renders, so that load and store need not be one atomic operation.
        let left = self.left.load(Ordering::Relaxed).saturating_sub(looks);
        self.left.store(left, Ordering::Relaxed);
        left > 0
    }

    /// Spends the units for reading this many bytes.
    pub(super) fn read(&self, bytes: usize) -> bool {
        self.spend(1 + bytes / BYTES_PER_LOOK)
    }

    /// [`Self::read`] for a filter, which can return an error.
    pub(super) fn try_read(&self, bytes: usize) -> Result<(), Error> {
        match self.read(bytes) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::OutOfFuel, Self::SPENT)),
        }
    }

    /// The error of a rendering that exceeded its budget.
    pub(super) const SPENT: &'static str = "it looks at more of its events than one rendering may";

    pub(super) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

impl Object for RenderBudget {}
