//! Said already within the window? Then it is counted, not repeated.
//!
//! A window is fixed: it begins with the first event and does not move. Nothing is indexed and nothing is swept until
//! it has to be: a mailbox that sees a handful of events keeps a handful of entries and scans them.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::subscriber::SubscriberKey;
use crate::{EventId, Time};

/// The most windows a mailbox keeps open.
pub(crate) const WINDOWS_MAX: usize = 1024;
/// How many of the oldest close early when there are too many.
const EVICTED_AT_ONCE: usize = 128;
/// Below this many, scanning is faster than any index.
const SCANNED_MAX: usize = 24;

/// The open windows, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dedupe {
    windows: Vec<Window>,
    index: Option<Box<Index>>,
    /// How many windows there may be before the next look for elapsed ones; doubles what was alive at the last.
    sweep_at: usize,
    /// How many windows hold repeats nobody has been told of.
    unreported: usize,
}

type Index = HashMap<u128, u32, BuildHasherDefault<IdentityHasher>>;

/// One window: everything equal to its first event counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) key: u128,
    /// The event that opened it.
    pub(crate) of: EventId,
    /// Whose window it is.
    pub(crate) subscriber: SubscriberKey,
    pub(crate) closes: Time,
    pub(crate) repeats: u32,
    /// How many of the repeats a block has told.
    pub(crate) told: u32,
}

impl Window {
    /// How many of its repeats nobody was told of.
    pub(crate) fn unreported(&self) -> u32 {
        self.repeats - self.told
    }
}

impl Dedupe {
    /// Counts a repeat, if the key's window is open.
    pub(crate) fn count(&mut self, key: u128, now: Time) -> Option<&Window> {
        let at = self.position(key).filter(|at| self.windows[*at].closes > now)?;
        let window = &mut self.windows[at];
        self.unreported += usize::from(window.repeats == window.told);
        window.repeats = window.repeats.saturating_add(1);
        Some(window)
    }

    /// Opens a window. Gives back those that had to close early for it and still hold untold repeats.
    pub(crate) fn open(&mut self, window: Window, now: Time) -> Vec<Window> {
        let closed_early = if self.windows.len() >= WINDOWS_MAX { self.make_room(now) } else { Vec::new() };
        if self.windows.len() >= self.sweep_at.max(SCANNED_MAX) {
            self.sweep(now);
        }
        // An elapsed window of the same key may still lie here; the newer one is found before it.
        if let Some(index) = &mut self.index {
            index.insert(window.key, self.windows.len() as u32);
        }
        self.windows.push(window);
        if self.index.is_none() && self.windows.len() > SCANNED_MAX {
            self.reindex();
        }
        closed_early
    }

    /// Takes out the windows that have closed with repeats nobody was told of, oldest first.
    pub(crate) fn take_closed_unreported(&mut self, now: Time) -> Vec<Window> {
        if self.unreported == 0 {
            return Vec::new();
        }
        let closed: Vec<Window> =
            self.windows.extract_if(.., |window| window.closes <= now && window.repeats > window.told).collect();
        self.unreported -= closed.len();
        if !closed.is_empty() {
            self.reindex();
        }
        closed
    }

    /// When the next window with untold repeats closes.
    pub(crate) fn next_close(&self) -> Time {
        if self.unreported == 0 {
            return Time::NEVER;
        }
        let unreported = self.windows.iter().filter(|window| window.repeats > window.told);
        unreported.map(|window| window.closes).min().unwrap_or(Time::NEVER)
    }

    /// Marks the untold repeats of those windows as told for which `told` finds a place.
    pub(crate) fn tell(&mut self, mut told: impl FnMut(&Window) -> bool) {
        if self.unreported == 0 {
            return;
        }
        for window in &mut self.windows {
            if window.unreported() > 0 && told(window) {
                window.told = window.repeats;
                self.unreported -= 1;
            }
        }
    }

    /// Closes a subscriber's window of an event whose place a newer one took: if the old state comes back, it is news
    /// again. Other subscribers may count the same event.
    pub(crate) fn forget(&mut self, event: EventId, subscriber: SubscriberKey) {
        let is_it = |window: &Window| window.of == event && window.subscriber == subscriber;
        if let Some(at) = self.windows.iter().position(is_it) {
            self.close_early(at);
        }
    }

    /// The same for many events and their subscribers, in one pass.
    pub(crate) fn forget_all(&mut self, events: &BTreeSet<(EventId, SubscriberKey)>) {
        if events.is_empty() {
            return;
        }
        for at in 0..self.windows.len() {
            if events.contains(&(self.windows[at].of, self.windows[at].subscriber)) {
                self.close_early(at);
            }
        }
    }

    fn close_early(&mut self, at: usize) {
        let window = &mut self.windows[at];
        self.unreported -= usize::from(window.repeats > window.told);
        window.told = window.repeats;
        window.closes = Time::ZERO;
    }

    /// The windows worth saving: all that are open, oldest first.
    pub(crate) fn open_windows(&self, now: Time) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(move |window| window.closes > now || window.repeats > window.told)
    }

    /// The windows with repeats nobody was told of.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = &Window> {
        let any = self.unreported > 0;
        self.windows.iter().filter(move |window| any && window.unreported() > 0)
    }

    /// How many windows are kept, elapsed ones included.
    pub(crate) fn len(&self) -> usize {
        self.windows.len()
    }

    pub(crate) fn restore(windows: Vec<Window>) -> Self {
        let unreported = windows.iter().filter(|window| window.repeats > window.told).count();
        let mut dedupe = Self { windows, unreported, ..Self::default() };
        dedupe.reindex();
        dedupe
    }

    /// Lets every window close this many milliseconds earlier.
    pub(crate) fn set_back(&mut self, millis: u64) {
        self.windows.iter_mut().for_each(|window| window.closes = window.closes.minus(millis).max(Time::ZERO));
    }

    /// Lets go of the memory of everything that has elapsed.
    pub(crate) fn rest(&mut self, now: Time) {
        self.sweep(now);
        self.windows.shrink_to_fit();
    }

    fn position(&self, key: u128) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&key).map(|at| *at as usize),
            None => self.windows.iter().rposition(|window| window.key == key),
        }
    }

    /// Forgets elapsed windows. Those with untold repeats stay until they are taken out by [`Self::take_closed_unreported`].
    fn sweep(&mut self, now: Time) {
        self.windows.retain(|window| window.closes > now || window.repeats > window.told);
        self.sweep_at = (self.windows.len() * 2).min(WINDOWS_MAX);
        self.reindex();
    }

    fn make_room(&mut self, now: Time) -> Vec<Window> {
        self.sweep(now);
        if self.windows.len() < WINDOWS_MAX {
            return Vec::new();
        }
        let unreported: Vec<Window> =
            self.windows.drain(..EVICTED_AT_ONCE).filter(|window| window.repeats > window.told).collect();
        self.unreported -= unreported.len();
        self.reindex();
        unreported
    }

    fn reindex(&mut self) {
        if self.windows.len() <= SCANNED_MAX {
            self.index = None;
            return;
        }
        let index = self.index.get_or_insert_default();
        index.clear();
        index.extend(self.windows.iter().zip(0..).map(|(window, at)| (window.key, at)));
    }
}

/// Equal windows are equal memories; how they are looked up is nobody's business.
impl PartialEq for Dedupe {
    fn eq(&self, other: &Self) -> bool {
        self.windows == other.windows
    }
}

/// A key is a hash already; its low half is as good as any.
#[derive(Clone, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut low = [0; 8];
        let length = bytes.len().min(8);
        low[..length].copy_from_slice(&bytes[..length]);
        self.0 = u64::from_le_bytes(low);
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
