use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::State;
use minijinja::value::Object;
use minijinja::{Error, ErrorKind};

/// How much one rendering may look at.
///
/// Fuel counts the engine's instructions, but a single instruction can compare two payloads or join a hundred texts.
/// What that costs is counted here, in looks of about 64 bytes each. Once it is spent, events show nothing more and the
/// rendering counts as failed.
#[derive(Debug)]
pub(super) struct Effort {
    left: AtomicUsize,
}

/// Enough for a hundred events with several long texts each, and spent in some hundredths of a second.
const LOOKS_MAX: usize = 50_000;
const BYTES_PER_LOOK: usize = 64;

impl Effort {
    /// The variable under which filters find it; no template can spell it.
    pub(super) const NAME: &'static str = "%effort";

    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(LOOKS_MAX) })
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

impl Object for Effort {}
