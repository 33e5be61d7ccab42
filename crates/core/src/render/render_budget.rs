use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::State;
use minijinja::value::Object;
use minijinja::{Error, ErrorKind};

use super::template::TemplateEvent;
use crate::event::Payload;

/// How much one rendering may look at.
///
/// Fuel counts the engine's instructions, but a single instruction can compare two payloads or join a hundred texts.
/// What that costs is counted here, in looks of about 64 bytes each. Once it is spent, events show nothing more and the
/// rendering counts as failed.
#[derive(Debug)]
pub(super) struct RenderBudget {
    left: AtomicUsize,
    /// The most characters of one text that the template sees.
    pub(super) text_max: usize,
}

/// Enough for a hundred events with several long texts each, and spent in some hundredths of a second.
const LOOKS_MAX: usize = 50_000;
const BYTES_PER_LOOK: usize = 64;
/// The most characters of one text that a template sees; a block of the default limits holds no more.
const TEXT_MAX: usize = 4096;

impl RenderBudget {
    /// The variable under which filters find it; no template can spell it.
    pub(super) const NAME: &'static str = "%effort";

    /// The effort of rendering these events.
    pub(super) fn new(events: &[TemplateEvent]) -> Arc<Self> {
        let whole = !events.is_empty() && events.iter().all(|one| one.event.is_told_whole());
        // No text in a payload is longer than the payload.
        let text_max = if whole { Payload::BYTES_MAX } else { TEXT_MAX };
        Arc::new(Self { left: AtomicUsize::new(LOOKS_MAX), text_max })
    }

    /// The effort of the rendering that goes on.
    pub(super) fn of(state: &State<'_, '_>) -> Arc<Self> {
        let found = state.lookup(Self::NAME).and_then(|value| value.downcast_object());
        found.expect("every rendering is given one")
    }

    /// Spends some of it; false once there is none left.
    pub(super) fn spend(&self, looks: usize) -> bool {
        // One thread renders, so nobody writes between the two.
        let left = self.left.load(Ordering::Relaxed).saturating_sub(looks);
        self.left.store(left, Ordering::Relaxed);
        left > 0
    }

    /// Spends what looking at so many bytes takes.
    pub(super) fn read(&self, bytes: usize) -> bool {
        self.spend(1 + bytes / BYTES_PER_LOOK)
    }

    /// The same for a filter, which can fail at once.
    pub(super) fn try_read(&self, bytes: usize) -> Result<(), Error> {
        match self.read(bytes) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::OutOfFuel, Self::SPENT)),
        }
    }

    /// What a rendering says that looked at too much.
    pub(super) const SPENT: &'static str = "it looks at more of its events than one rendering may";

    pub(super) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

impl Object for RenderBudget {}
